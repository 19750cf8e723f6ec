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
import dataclasses
import functools
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from tools.bench import harness

SHARD_BYTES = 1 << 30


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--layers', type=int, help='TinyLlama has 22')
    parser.add_argument('--small', action='store_true', help='width 64, and 2 layers')
    parser.add_argument('--length', type=int, default=2048, help='tokens to evaluate')
    parser.add_argument('--folder', type=pathlib.Path, help='where the checkpoints go')
    parser.add_argument('--peer', action='store_true', help='compare with transformers')
    parser.add_argument('--side', choices=('source', 'ours', 'peer'), help=argparse.SUPPRESS)
    parser.add_argument('--source', type=pathlib.Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side == 'source':
        make(options.source, options.small, options.layers)
    elif options.side:
        measure = {'ours': measure_ours, 'peer': measure_peer}[options.side]
        measure(options.source, options.length)
    else:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            for side in ('source', 'ours', 'peer') if options.peer else ('source', 'ours'):
                command = [sys.executable, '-m', 'tools.bench', 'interop', *sys.argv[1:]]
                command += [f'--side={side}', f'--source={folder}/source']
                subprocess.run(command, check=True)


def make(source: pathlib.Path, small: bool, layers: int | None) -> None:
    """A random checkpoint, as others write them: without checksums."""
    import jax

    from nope import interop, sharding
    from nope.positions import RoPE
    from nope.variables import fresh_variables
    from tools.bench.shapes import LARGE, decoder

    model = dataclasses.replace(decoder(2, 64, 4, 176, 512), kv_heads=2) if small else LARGE
    layers = model.layers if layers is None else layers
    model = dataclasses.replace(model, position=RoPE(), layers=layers)
    mesh = sharding.make_mesh(sharding.MeshConfig(fsdp=jax.device_count()))
    described = interop.Described(model, 2048, bos=1, eos=2)
    export = interop.Export(dtype='bfloat16', shard_bytes=SHARD_BYTES)
    interop.save(source, fresh_variables(model, mesh, 0), described, export=export)
    (source / interop.EXPORT_FACTS).unlink()


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
