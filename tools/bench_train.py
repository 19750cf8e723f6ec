"""Speed and memory of training, search and evaluation: one JSON line per measurement.

    python tools/bench_train.py [--only=pretrain --only=evaluate] [--quick] [--seconds=30]
        [--peer-python=PATH]

A line holds the median seconds of one call, compilation apart; the temporary memory of the
compiled program, and the resident memory that its first call added to the process; the useful
rate (causal half of attention, recomputation not counted) as a share of that of a plain float32
matrix product; and how many cores other processes kept busy meanwhile. With PyTorch and
transformers in PATH (default: this interpreter, where it has both), the same work in Hugging
Face's Llama runs in a process of its own. All of them take turns, so that a busy machine slows
all alike. About ten minutes on two cores; half of that without the peer.
"""

from __future__ import annotations

from nope.data import Batch
from nope.model import counts
from nope.runtime import door, memory

if __name__ == '__main__':  # before the imports below, whose threads allocate
    door.enter(__file__)
    memory.restart_with_huge_pages()
    memory.few_arenas()

import argparse
import contextlib
import dataclasses
import functools
import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import _bench
import jax
import jax.numpy as jnp
import numpy as np
from _peer import Peer
from _shapes import LONG, LOOPED, MIDDLE, SMALL

from nope import sharding
from nope.evals import forward
from nope.model import ModelConfig
from nope.training import optim
from nope.training.state import fresh_state
from nope.training.step import make_step
from nope.variables import fresh_variables

MATMUL_SIZE = 1536
MOST_TURNS = 20


class Work(NamedTuple):
    """kind: 'pretrain', 'head_scale' or 'evaluate' (with or without entropy)."""

    name: str
    kind: str
    entropy: bool = False


FULL_STEP = Work('full_step', 'pretrain')
HEAD_SCALE = Work('head_scale_step', 'head_scale')
LOSS = Work('loss', 'evaluate')
LOSS_AND_ENTROPY = Work('loss_and_entropy', 'evaluate', entropy=True)


@dataclasses.dataclass(frozen=True)
class Case:
    """Work at one shape. ours, peers: what takes turns, on our side and on the other."""

    name: str
    model: ModelConfig
    length: int
    batch: int
    ours: tuple[Work, ...]
    peers: tuple[Work, ...] = ()
    quick: bool = False

    @property
    def tokens(self) -> int:
        return self.batch * self.length


def _evaluate(length: int) -> Case:
    """The peer's entropy needs eager attention's [N, T, T]: beyond 4k that is gigabytes."""
    return Case(
        f'evaluate_{length // 1024}k',
        LOOPED,
        length,
        batch=1,
        ours=(LOSS_AND_ENTROPY, LOSS),
        peers=(LOSS, LOSS_AND_ENTROPY) if length <= 4096 else (LOSS,),
        quick=length == 1024,
    )


CASES = (
    Case('pretrain_4x128', SMALL, 64, 32, (FULL_STEP,), (FULL_STEP,), quick=True),
    Case('pretrain_8x512', MIDDLE, 512, 4, (FULL_STEP,), (FULL_STEP,)),
    Case('search_8x512_2k', LOOPED, 2048, 1, (HEAD_SCALE, FULL_STEP), (HEAD_SCALE, FULL_STEP)),
    *(_evaluate(1024 * k) for k in (1, 2, 4, 8, 16)),
    Case('search_4x256_16k', LONG, 16_384, 1, (HEAD_SCALE,)),
)


class Program:
    """A compiled training step or evaluation pass on random tokens; calling it runs it once."""

    def __init__(self, case: Case, work: Work) -> None:
        kind, model, mesh = work.kind, case.model, sharding.make_mesh(sharding.MeshConfig())
        variables = fresh_variables(model, mesh, 0)
        blocks = np.random.default_rng(0).integers(
            0, model.vocab_size, (case.batch, case.length + 1), np.int32
        )
        arguments: tuple[Any, ...]
        with sharding.use(mesh):
            if kind == 'evaluate':
                weights = np.ones(case.batch, np.float32)
                place = functools.partial(sharding.put, sharding=sharding.rows(mesh))
                arguments = variables, place(blocks), place(weights)
                lowered = forward.batch_sums.lower(model, work.entropy, *arguments)
            else:
                optimizer = _optimizer(kind)
                state, frozen = fresh_state(variables, optimizer, mesh)
                batch = Batch.of_blocks(blocks)
                arguments = state, frozen, sharding.place_micro_batches(mesh, 1, case.batch, batch)
                lowered = jax.jit(make_step(model, optimizer), donate_argnums=0).lower(*arguments)
            start = time.perf_counter()
            self._compiled = lowered.compile()
            self.compile_seconds = time.perf_counter() - start
        self._trains, self._arguments = kind != 'evaluate', arguments
        memory = self._compiled.memory_analysis()
        self.temp_mib = None if memory is None else memory.temp_size_in_bytes / _bench.MIB
        self.flops = case.tokens * _flops_per_token(model, case.length, kind)

    def __call__(self) -> None:
        result = jax.block_until_ready(self._compiled(*self._arguments))
        if self._trains:  # the old state was donated
            self._arguments = result[0], *self._arguments[1:]


def _optimizer(kind: str) -> optim.OptimizerConfig:
    if kind == 'pretrain':
        return optim.OptimizerConfig(1e-3, weight_decay=0.1)
    return optim.OptimizerConfig(0.1, trains='lam', bound=1.0)


def _flops_per_token(model: ModelConfig, length: int, kind: str) -> float:
    total = counts.training_flops(model, length, frozen=kind == 'head_scale')
    return total / 3 if kind == 'evaluate' else total


def start_peer(
    python: str, case: Case, work: Work, on: str = 'cpu', dtype: str = 'float32'
) -> Peer:
    """`bench_peer.py` at one case, in its own interpreter. on, dtype: PyTorch's device, and of what
    it computes by autocast."""
    shape = {
        name: getattr(case.model, name)
        for name in ('layers', 'width', 'heads', 'kv_heads', 'mlp_width', 'vocab_size')
    }
    asked = {
        'kind': work.kind,
        'entropy': work.entropy,
        'shape': shape,
        'length': case.length,
        'batch': case.batch,
        'on': on,
        'dtype': dtype,
        'remat': case.model.remat != 'none',
    }
    return Peer(python, 'bench_peer.py', asked)


def measure(case: Case, python: str | None, budget: float) -> None:
    """Compiles and times all work of `case`, in turns; prints a line for each of ours."""
    programs = {work: Program(case, work) for work in case.ours}
    memory = {work: _bench.peak_above_base(program) for work, program in programs.items()}
    timers = {'matmul': matmul_timer()}
    timers |= {f'ours {w.name}': functools.partial(_bench.seconds, p) for w, p in programs.items()}
    with contextlib.ExitStack() as stack:
        peers: dict[Work, Peer] = {}
        for work in case.peers if python else ():
            peers[work] = start_peer(str(python), case, work)
            stack.callback(peers[work].close)
        timers |= {f'peer {w.name}': peer.seconds for w, peer in peers.items()}
        load = _bench.Load()
        taken = _bench.interleaved(timers, MOST_TURNS, budget)
        others = load.others(mine=sum(peer.cpu_seconds for peer in peers.values()))
    for work, program in programs.items():
        seconds = taken[f'ours {work.name}']
        _bench.emit(
            describe(case, work, program, seconds, memory[work], taken['matmul'])
            | {
                f'seconds_over_{other.name}': seconds / taken[f'ours {other.name}']
                for other in programs
                if other != work
            }
            | {
                f'peer_{other.name}': against(
                    peer, taken[f'peer {other.name}'], seconds, memory[work]
                )
                for other, peer in peers.items()
            }
            | {
                'cores_busy_elsewhere': others,
                'device': jax.devices()[0].device_kind,
                'jax': jax.__version__,
            }
        )


def describe(
    case: Case, work: Work, program: Program, seconds: float, memory_mib: float, matmul: float
) -> dict[str, Any]:
    """JSON fields of one of our programs; `matmul` is the time of a plain product in seconds."""
    rate, matmul_rate = program.flops / seconds, 2 * MATMUL_SIZE**3 / matmul
    return {
        'case': case.name,
        'work': work.name,
        'layers': case.model.layers,
        'width': case.model.width,
        'length': case.length,
        'batch': case.batch,
        'seconds': seconds,
        'tokens_per_second': case.tokens / seconds,
        'compile_seconds': program.compile_seconds,
        'temp_mib': program.temp_mib,
        'memory_mib': memory_mib,
        'process_peak_mib': _bench.peak(),
        'gflops': rate / 1e9,
        'matmul_gflops': matmul_rate / 1e9,
        'share_of_matmul': rate / matmul_rate,
    }


def against(peer: Peer, peer_seconds: float, seconds: float, memory_mib: float) -> dict[str, Any]:
    """One peer, and ours over it: below 1, ours is faster and smaller."""
    return {
        'seconds': peer_seconds,
        'memory_mib': peer.memory_mib,
        'our_seconds_over_it': seconds / peer_seconds,
        'our_memory_over_it': memory_mib / max(peer.memory_mib, 1e-9),
        'versions': peer.versions,
    }


def matmul_timer() -> Callable[[], float]:
    """Times a float32 [1536, 1536] product, the rate that shares refer to."""
    x = jnp.ones((MATMUL_SIZE, MATMUL_SIZE), jnp.float32)
    product = jax.jit(jnp.matmul).lower(x, x).compile()
    jax.block_until_ready(product(x, x))
    return lambda: _bench.seconds(lambda: jax.block_until_ready(product(x, x)))


def peer_python(asked: str | None) -> str | None:
    """The interpreter asked for, or this one where it has PyTorch and transformers."""
    if asked:
        return asked
    missing = [name for name in ('torch', 'transformers') if not importlib.util.find_spec(name)]
    if missing:
        print(f'no comparison: {" and ".join(missing)} not installed here', file=sys.stderr)
        return None
    return sys.executable


def chosen(only: list[str] | None, quick: bool) -> Iterator[Case]:
    for case in CASES:
        if (not quick or case.quick) and (not only or any(part in case.name for part in only)):
            yield case


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n')[0])
    parser.add_argument(
        '--only', action='append', help=f'part of a name: {", ".join(c.name for c in CASES)}'
    )
    parser.add_argument('--quick', action='store_true', help='two small cases, a few calls each')
    parser.add_argument('--seconds', type=float, default=30.0, help='per case')
    parser.add_argument('--peer-python', help='interpreter with torch and transformers')
    options = parser.parse_args()
    cases = list(chosen(options.only, options.quick))
    if not cases:
        parser.error(f'--only={options.only} names no case')
    python = peer_python(options.peer_python)
    for case in cases:
        measure(case, python, min(options.seconds, 3.0) if options.quick else options.seconds)


if __name__ == '__main__':
    main()
