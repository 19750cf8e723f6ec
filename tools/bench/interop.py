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
import json
import pathlib
import subprocess
import sys
import tempfile
import time
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
    options = _parser().parse_args()
    if options.side:
        {'ours': _ours, 'peer': _peer}[options.side](options.source, options.length)
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        source = pathlib.Path(folder) / 'source'
        _make(source, _shape(options))
        for side in ('ours', 'peer') if options.peer else ('ours',):
            command = [
                sys.executable,
                '-m',
                'tools.bench',
                'interop',
                f'--side={side}',
                f'--source={source}',
            ]
            subprocess.run([*command, f'--length={options.length}'], check=True)


def _shape(options: argparse.Namespace) -> dict[str, Any]:
    """The directory's config.json."""
    layers = {} if options.layers is None else {'num_hidden_layers': options.layers}
    return {**CONFIG, **(SMALL if options.small else {}), **layers}


def _make(source: pathlib.Path, config: dict[str, Any]) -> None:
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


def _stage(name: str, side: str, function: Any, **facts: Any) -> Any:
    """Runs one stage and prints its line; returns what it made."""
    made: list[Any] = []
    taken: list[float] = []
    start = time.process_time()
    harness.peak_above_base(lambda: taken.append(harness.seconds(lambda: made.append(function()))))
    spent = {'seconds': taken[0], 'cpu_seconds': time.process_time() - start}
    harness.emit({'stage': name, 'side': side, **spent, 'peak_gib': harness.peak() / 1024} | facts)
    return made[0]


def _ours(source: pathlib.Path, length: int) -> None:
    import jax
    import numpy as np

    from nope import interop, sharding
    from nope.evals.forward import batch_sums

    mesh = sharding.make_mesh(sharding.MeshConfig(fsdp=jax.device_count()))
    directory = interop.open_directory(source)
    described = interop.describe(directory)
    variables = _stage('import', 'ours', lambda: interop.load(directory, described.model, mesh))
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(variables))
    tokens = (
        np.random.default_rng(1)
        .integers(0, described.model.vocab_size, (1, length + 1))
        .astype(np.int32)
    )
    weights = np.ones(1, np.float32)
    with sharding.use(mesh):
        program = _stage(
            'compile',
            'ours',
            lambda: batch_sums.lower(described.model, True, variables, tokens, weights).compile(),
        )
    sums = _stage(
        'evaluate with entropy',
        'ours',
        lambda: jax.block_until_ready(program(variables, tokens, weights)),
        tokens=length,
        device_gib=size / 2**30,
    )
    assert np.isfinite(np.asarray(sums.loss)).all()
    export = interop.Export(dtype='bfloat16', shard_bytes=SHARD_BYTES)
    out = source.with_name('exported')
    _stage('export', 'ours', lambda: interop.save(out, variables, described, export=export))
    _check_same(directory, interop.open_directory(out))


def _check_same(source: Any, exported: Any) -> None:
    """Import and export change no bit."""
    from nope.interop import safetensors

    for name in source.tensors:
        if safetensors.digest(source.read(name)) != exported.checksums[name]:
            raise AssertionError(f'tensor {name} is not what it was')
    harness.emit({'stage': 'compare', 'side': 'ours', 'tensors_equal': len(source.tensors)})


def _peer(source: pathlib.Path, length: int) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    model = _stage(
        'import',
        'peer',
        lambda: AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32),
    )
    tokens = torch.randint(0, model.config.vocab_size, (1, length))
    with torch.no_grad():
        _stage(
            'evaluate',
            'peer',
            lambda: float(model(tokens, labels=tokens, use_cache=False).loss),
            tokens=length,
        )
    out = source.with_name('exported_by_peer')
    _stage('export', 'peer', lambda: model.to(torch.bfloat16).save_pretrained(out))


def _parser() -> argparse.ArgumentParser:
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
    return parser
