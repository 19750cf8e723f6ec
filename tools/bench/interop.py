"""Benchmark of import, evaluation and export of a full-size checkpoint: seconds and memory.

    python -m tools.bench interop                   # TinyLlama's shape: 1.1 billion, bfloat16
    python -m tools.bench interop --peer            # and PyTorch + transformers, where installed
    python -m tools.bench interop --layers=2        # fewer layers
    python -m tools.bench interop --small           # two layers of width 64

The checkpoint is random, in shards, in a temporary folder (`--folder` chooses the disk). A stage is
one JSON line: seconds, CPU seconds of all threads, and the peak of resident memory (GiB). The load
of a shared machine changes CPU seconds least. On a CPU the peak includes the tensors themselves;
`device_gib` is their size.
"""

from __future__ import annotations

import argparse
import functools
import json
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from tools.bench import harness

SHARD_BYTES = 1 << 30
CONFIG: dict[str, Any] = {
    'architectures': ['LlamaForCausalLM'],
    'model_type': 'llama',
    'hidden_size': 2048,
    'intermediate_size': 5632,
    'num_attention_heads': 32,
    'num_key_value_heads': 4,
    'rms_norm_eps': 1e-5,
    'rope_theta': 10000.0,
    'max_position_embeddings': 2048,
    'vocab_size': 32000,
    'num_hidden_layers': 22,
    'hidden_act': 'silu',
    'tie_word_embeddings': False,
    'bos_token_id': 1,
    'eos_token_id': 2,
    'torch_dtype': 'bfloat16',
}

SMALL = {
    'hidden_size': 64,
    'intermediate_size': 176,
    'num_attention_heads': 4,
    'num_key_value_heads': 2,
    'vocab_size': 512,
    'num_hidden_layers': 2,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--layers', type=int, help='TinyLlama has 22')
    parser.add_argument('--small', action='store_true', help='width 64, and 2 layers')
    parser.add_argument('--length', type=int, default=2048, help='tokens to evaluate')
    parser.add_argument('--folder', type=pathlib.Path, help='where the checkpoints go')
    parser.add_argument('--peer', action='store_true', help='compare with transformers')
    parser.add_argument('--side', choices=('ours', 'peer'), help=argparse.SUPPRESS)
    parser.add_argument('--source', type=pathlib.Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        measure = {'ours': measure_ours, 'peer': measure_peer}[options.side]
        measure(options.source, options.length)
        return
    config = CONFIG | (SMALL if options.small else {})
    if options.layers is not None:
        config['num_hidden_layers'] = options.layers
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        source = pathlib.Path(folder) / 'source'
        make(source, config)
        for side in ('ours', 'peer') if options.peer else ('ours',):
            command = [sys.executable, '-m', 'tools.bench', 'interop', f'--side={side}']
            command += [f'--source={source}', f'--length={options.length}']
            subprocess.run(command, check=True)


def make(source: pathlib.Path, config: dict[str, Any]) -> None:
    """A random checkpoint: one shard a gigabyte, tensor by tensor."""
    import ml_dtypes
    import numpy as np

    from nope.interop import safetensors
    from nope.interop.directory import INDEX
    from nope.interop.families import family_of

    family = family_of(config, frozenset())
    model = family.read_config(config, frozenset()).model
    tensors = {tensor.name: tensor.shape for tensor in family.tensors(model, frozenset())}
    draw = np.random.default_rng(0)
    dtype = np.dtype(ml_dtypes.bfloat16)

    def array(name: str) -> np.ndarray:
        shape = tensors[name]
        if len(shape) == 1:
            return np.ones(shape, dtype)
        return (0.014 * draw.standard_normal(shape, np.float32)).astype(dtype)

    shards: list[dict[str, Any]] = [{}]
    filled = 0
    for name, shape in tensors.items():
        size = 2 * int(np.prod(shape))
        if filled and filled + size > SHARD_BYTES:
            shards.append({})
            filled = 0
        shards[-1][name] = (dtype, shape)
        filled += size
    files = [f'model-{i + 1:05d}-of-{len(shards):05d}.safetensors' for i in range(len(shards))]
    for file, planned in zip(files, shards, strict=True):
        safetensors.write(source / file, planned, array, {'format': 'pt'})
    weight_map = {n: file for file, planned in zip(files, shards, strict=True) for n in planned}
    (source / INDEX).write_text(json.dumps({'metadata': {}, 'weight_map': weight_map}))
    (source / 'config.json').write_text(json.dumps(config))


def stage(name: str, side: str, function: Callable[[], Any], **facts: Any) -> Any:
    """Runs one stage and prints its line; returns what it made."""
    made: list[Any] = []
    taken: list[float] = []
    start = time.process_time()
    harness.peak_above_base(lambda: taken.append(harness.seconds(lambda: made.append(function()))))
    spent = {'seconds': taken[0], 'cpu_seconds': time.process_time() - start}
    harness.emit({'stage': name, 'side': side, **spent, 'peak_gib': harness.peak() / 1024} | facts)
    return made[0]


def measure_ours(source: pathlib.Path, length: int) -> None:
    import jax
    import numpy as np

    from nope import interop, sharding
    from nope.evals.forward import batch_sums
    from nope.interop import safetensors

    mesh = sharding.make_mesh(sharding.MeshConfig(fsdp=jax.device_count()))
    directory = interop.open_directory(source)
    described = interop.describe(directory)
    model = described.model
    variables = stage('import', 'ours', lambda: interop.load(directory, model, mesh))
    gib = sum(leaf.nbytes for leaf in jax.tree.leaves(variables)) / 2**30
    draw = np.random.default_rng(1)
    tokens = draw.integers(0, model.vocab_size, (1, length + 1)).astype(np.int32)
    given = variables, tokens, np.ones(1, np.float32)
    with sharding.use(mesh):
        lower = functools.partial(batch_sums.lower, model, True, *given)
        program = stage('compile', 'ours', lambda: lower().compile())
    sums = stage(
        'evaluate with entropy',
        'ours',
        lambda: jax.block_until_ready(program(*given)),
        tokens=length,
        device_gib=gib,
    )
    assert np.isfinite(np.asarray(sums.loss)).all()
    export = interop.Export(dtype='bfloat16', shard_bytes=SHARD_BYTES)
    out = source.with_name('exported')
    stage('export', 'ours', lambda: interop.save(out, variables, described, export=export))
    exported = interop.open_directory(out)
    for name in directory.tensors:
        if safetensors.digest(directory.read(name)) != exported.checksums[name]:
            raise AssertionError(f'tensor {name} is not what it was')
    harness.emit({'stage': 'compare', 'side': 'ours', 'tensors_equal': len(directory.tensors)})


def measure_peer(source: pathlib.Path, length: int) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    load = functools.partial(AutoModelForCausalLM.from_pretrained, source, dtype=torch.float32)
    model = stage('import', 'peer', load)
    tokens = torch.randint(0, model.config.vocab_size, (1, length))

    @torch.no_grad()
    def evaluate() -> float:
        return float(model(tokens, labels=tokens, use_cache=False).loss)

    stage('evaluate', 'peer', evaluate, tokens=length)
    out = source.with_name('exported_by_peer')
    stage('export', 'peer', lambda: model.to(torch.bfloat16).save_pretrained(out))
