"""Speed and memory of text evaluations: one JSON line per measurement.

    python tools/bench_eval.py [--only=passkey --only=greedy] [--quick] [--seconds=30]
        [--peer-python=PATH]
    python tools/bench_eval.py --dtype=bfloat16 --rows=64 --batch-tokens=131072    # a GPU

Perplexity in sliding windows, the passkey grid, greedy generation and beam search of a random
model of 8 layers and width 512. A line holds the median seconds of a call, compilation apart
(what the first call took longer); tokens a second; for generation the seconds to the first token,
the milliseconds of each after it, and the rate at which a step reads weights and cache as a share
of that of a matrix-vector product; the resident memory that a call adds to the process; and how
many cores other processes kept busy meanwhile.

On a CPU, in float32, with PyTorch and transformers in PATH (default: this interpreter, where it
has both), the same evaluations of the same weights run there too, in processes of their own: all
take turns, and their results must be the same. Some fifteen minutes on two cores with the peer.
"""

from __future__ import annotations

from nope.runtime import door, memory

if __name__ == '__main__':  # before the imports below, whose threads allocate
    door.enter(__file__)
    memory.restart_with_huge_pages()
    memory.few_arenas()

import argparse
import contextlib
import dataclasses
import functools
import pathlib
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any

import _bench
import jax
import jax.numpy as jnp
from _eval_cases import QUICK, Case, Sizes, Subject, cases
from _peer import Peer
from _shapes import MIDDLE
from bench_train import peer_python

from nope import sharding
from nope.positions import Rotary
from nope.variables import fresh_variables

MODEL = dataclasses.replace(MIDDLE, position=Rotary(), unroll=1)
MOST_TURNS = 20
MATRIX = 8192, 4096  # numbers that a matrix-vector product reads: more than caches hold
COSTS = ('seconds', 'first_seconds', 'ms_per_token')
Timers = Mapping[str, Callable[[], float]]


def measure(case: Case, python: str | None, budget: float, limits: Timers) -> dict[str, Any]:
    """Runs all parts of a case, ours and the peers', in turns; the line to print.

    python: of the peers; None for none. limits: timers of what ours is held against.
    Raises `Different` where results are not the same.
    """
    results, compiling, memory = {}, 0.0, 0.0
    for part, run in case.ours.items():
        start = time.perf_counter()
        results[part] = run()
        compiling += time.perf_counter() - start
        memory = max(memory, _bench.peak_above_base(run))
    ours = {part: functools.partial(_bench.seconds, run) for part, run in case.ours.items()}
    sides: dict[str, Timers] = {'ours': ours, 'limits': limits}
    with contextlib.ExitStack() as stack:
        peers: dict[str, dict[str, Peer]] = {}
        for name, parts in case.peers.items() if python else ():
            peers[name] = {}
            for part, asked in parts.items():
                peer = peers[name][part] = Peer(str(python), 'bench_eval_peer.py', asked)
                stack.callback(peer.close)
                case.check(part, results[part], peer.result)
            sides[name] = {part: peer.seconds for part, peer in peers[name].items()}
        load = _bench.Load()
        taken = _interleaved(sides, budget)
        living = [peer for parts in peers.values() for peer in parts.values()]
        others = load.others(mine=sum(peer.cpu_seconds for peer in living))
    figures = case.figures(taken['ours'])
    line = {**case.facts, **figures, 'memory_mib': memory}
    line['process_peak_mib'] = _bench.peak()
    line['compile_seconds'] = max(compiling - sum(taken['ours'].values()), 0.0)
    if case.bytes_per_step is not None:
        line |= _reading(case.bytes_per_step, figures['ms_per_token'], taken['limits']['read'])
    for name, processes in peers.items():
        line[f'peer_{name}'] = _against(case.figures(taken[name]), figures, processes, memory)
    return line | {'cores_busy_elsewhere': others}


def _interleaved(sides: Mapping[str, Timers], budget: float) -> dict[str, dict[str, float]]:
    """Median seconds by side and part, all taken in turns."""
    timers = {(side, part): timer for side, parts in sides.items() for part, timer in parts.items()}
    taken = _bench.interleaved({f'{s} {p}': t for (s, p), t in timers.items()}, MOST_TURNS, budget)
    return {
        side: {part: taken[f'{side} {part}'] for part in parts} for side, parts in sides.items()
    }


def _reading(step_bytes: float, ms_per_token: float, read_seconds: float) -> dict[str, float]:
    """Memory read rates of a generation step and of a matrix-vector product."""
    rate = step_bytes / max(ms_per_token, 1e-6) / 1e6
    limit = 4 * MATRIX[0] * MATRIX[1] / read_seconds / 1e9
    return {'gb_per_second': rate, 'matvec_gb_per_second': limit, 'share_of_matvec': rate / limit}


def _against(
    theirs: Mapping[str, float], ours: Mapping[str, float], parts: Mapping[str, Peer], memory: float
) -> dict[str, Any]:
    """One peer, and ours over it: below 1, ours is faster and smaller."""
    most = max(peer.memory_mib for peer in parts.values())
    return {
        **theirs,
        'memory_mib': most,
        **{f'our_{name}_over_it': ours[name] / theirs[name] for name in COSTS if name in theirs},
        'our_memory_over_it': memory / max(most, 1e-9),
        'versions': next(iter(parts.values())).versions,
    }


def read_timer() -> Callable[[], float]:
    """Times a float32 matrix-vector product, whose rate of reading shares refer to."""
    matrix, vector = jnp.ones(MATRIX, jnp.float32), jnp.ones(MATRIX[1], jnp.float32)
    product = jax.jit(jnp.matmul).lower(matrix, vector).compile()
    return lambda: _bench.seconds(lambda: jax.block_until_ready(product(matrix, vector)))


def main() -> None:
    options = _parser().parse_args()
    python = None
    if jax.default_backend() == 'cpu' and options.dtype == 'float32':
        python = peer_python(options.peer_python)
    elif options.peer_python:
        raise SystemExit('--peer-python is for a CPU and --dtype=float32')
    sizes = dataclasses.replace(QUICK if options.quick else Sizes(), rows=options.rows)
    chosen = {name: make for name, make in cases(sizes).items() if _chosen(name, options.only)}
    if not chosen:
        raise SystemExit(f'--only={options.only} names no case')
    config = dataclasses.replace(MODEL, dtype=options.dtype)
    mesh = sharding.make_mesh(sharding.MeshConfig(fsdp=jax.device_count()))
    limits = {'read': read_timer()}
    with tempfile.TemporaryDirectory() as folder:
        subject = Subject(
            config,
            fresh_variables(config, mesh, 0),
            mesh,
            pathlib.Path(folder),
            options.batch_tokens,
        )
        if python:
            subject.export(sizes.prompt + sizes.new_tokens + 1)
        for name, make in chosen.items():
            line = measure(make(subject), python, options.seconds, limits)
            about = {'device': jax.devices()[0].device_kind, 'dtype': config.dtype}
            _bench.emit({'case': name, **line, **about, 'jax': jax.__version__})


def _chosen(name: str, only: list[str] | None) -> bool:
    return not only or any(part in name for part in only)


def _parser() -> argparse.ArgumentParser:
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
    return parser


if __name__ == '__main__':
    main()
