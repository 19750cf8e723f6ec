"""Speed and memory of text evaluations: one JSON line per measurement.

    python -m tools.bench evals [--only=passkey --only=greedy] [--quick] [--seconds=30]
        [--peer-python=PATH]
    python -m tools.bench evals --dtype=bfloat16 --rows=64 --batch-tokens=131072    # a GPU

Perplexity in sliding windows, the passkey grid, greedy generation and beam search of a random
model of 8 layers and width 512. A line has the median seconds of a call without compilation, the
resident memory that a call adds, and the cores that other processes kept busy. Generation also has
its seconds to the first token and milliseconds of each later one. Its rate of reading weights and
cache is compared with that of a matrix-vector product.

On a CPU in float32 the same evaluations run in PyTorch and transformers too, each in a process of
its own. PATH is an interpreter that has both; the default is this one. All take turns, and their
results must be the same. That takes some fifteen minutes on two cores.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import pathlib
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from nope import sharding
from nope.positions import RoPE
from nope.variables import fresh_variables
from tools.bench import harness
from tools.bench.eval_cases import QUICK, Comparison, Sizes, Subject, cases
from tools.bench.shapes import MIDDLE

MODEL = dataclasses.replace(MIDDLE, position=RoPE(), unroll=1)
MATRIX = 8192, 4096  # numbers that a matrix-vector product reads: more than caches hold
COSTS = ('seconds', 'first_seconds', 'ms_per_token')
Timers = Mapping[str, Callable[[], float]]


def measure(case: Comparison, python: str | None, budget: float, limits: Timers) -> dict[str, Any]:
    """Runs all parts of a case, ours and the peers', in turns; the line to print.

    python: of the peers; None for none. limits: timers of what ours is held against.
    Raises `Different` where results are not the same.
    """
    results, compiling, memory = {}, 0.0, 0.0
    for part, run in case.ours.items():
        start = time.perf_counter()
        results[part] = run()
        compiling += time.perf_counter() - start
        memory = max(memory, harness.peak_above_base(run))
    timers = {('limits', name): timer for name, timer in limits.items()}
    timers |= {('ours', p): functools.partial(harness.seconds, run) for p, run in case.ours.items()}
    with contextlib.ExitStack() as stack:
        peers: dict[tuple[str, str], harness.Peer] = {}
        for name, parts in case.peers.items() if python else ():
            for part, asked in parts.items():
                peer = peers[name, part] = harness.Peer(str(python), asked)
                stack.callback(peer.close)
                case.check(part, results[part], peer.result)
        timers |= {key: peer.seconds for key, peer in peers.items()}
        taken, others = harness.beside_load(timers, budget, peers=peers.values())

    def figures_of(side: str) -> dict[str, float]:
        return case.figures({part: seconds for (of, part), seconds in taken.items() if of == side})

    figures = figures_of('ours')
    line = {**case.facts, **figures, 'memory_mib': memory}
    line['process_peak_mib'] = harness.peak()
    line['compile_seconds'] = max(compiling - sum(taken['ours', p] for p in case.ours), 0.0)
    if case.bytes_per_step is not None:
        rate = case.bytes_per_step / max(figures['ms_per_token'], 1e-6) / 1e6
        limit = 4 * MATRIX[0] * MATRIX[1] / taken['limits', 'read'] / 1e9
        line |= {'gb_per_second': rate, 'matvec_gb_per_second': limit}
        line['share_of_matvec'] = rate / limit
    for name in dict.fromkeys(name for name, _ in peers):
        theirs = figures_of(name)
        processes = [peer for (of, _), peer in peers.items() if of == name]
        most = max(peer.memory_mib for peer in processes)
        line[f'peer_{name}'] = {
            **theirs,
            'memory_mib': most,
            # Below 1, ours is faster and smaller.
            **{f'our_{x}_over_it': figures[x] / theirs[x] for x in COSTS if x in theirs},
            'our_memory_over_it': memory / max(most, 1e-9),
            'versions': processes[0].versions,
        }
    return line | {'cores_busy_elsewhere': others}


def read_timer() -> Callable[[], float]:
    """Times a float32 matrix-vector product, whose rate of reading shares refer to."""
    matrix, vector = jnp.ones(MATRIX, jnp.float32), jnp.ones(MATRIX[1], jnp.float32)
    product = jax.jit(jnp.matmul).lower(matrix, vector).compile()
    return lambda: harness.seconds(lambda: jax.block_until_ready(product(matrix, vector)))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n')[0])
    parser.add_argument(
        '--only', action='append', help='part of a name: perplexity, passkey, greedy_N, beams_N'
    )
    parser.add_argument('--quick', action='store_true', help='less of everything')
    parser.add_argument('--seconds', type=float, default=30.0, help='per case, one round at least')
    parser.add_argument('--peer-python', help='interpreter with torch and transformers')
    parser.add_argument('--dtype', choices=('float32', 'bfloat16'), default='float32')
    parser.add_argument('--rows', type=int, default=Sizes().rows, help='of the larger batch')
    parser.add_argument(
        '--batch-tokens', type=int, default=8192, help='of windows and prompts, per device'
    )
    options = parser.parse_args()
    python = None
    if jax.default_backend() == 'cpu' and options.dtype == 'float32':
        python = harness.peer_python(options.peer_python)
    elif options.peer_python:
        raise SystemExit('--peer-python is for a CPU and --dtype=float32')
    sizes = dataclasses.replace(QUICK if options.quick else Sizes(), rows=options.rows)
    chosen = {
        name: make
        for name, make in cases(sizes).items()
        if not options.only or any(part in name for part in options.only)
    }
    if not chosen:
        raise SystemExit(f'--only={options.only} names no case')
    config = dataclasses.replace(MODEL, dtype=options.dtype)
    mesh = sharding.make_mesh(sharding.MeshConfig(fsdp=jax.device_count()))
    limits = {'read': read_timer()}
    with tempfile.TemporaryDirectory() as folder:
        variables = fresh_variables(config, mesh, 0)
        subject = Subject(config, variables, mesh, pathlib.Path(folder), options.batch_tokens)
        if python:
            subject.export(sizes.prompt + sizes.new_tokens + 1)
        for name, make in chosen.items():
            line = measure(make(subject), python, options.seconds, limits)
            harness.emit({'case': name, **line, 'dtype': config.dtype, **harness.about()})
