"""Speed and memory of training, search and evaluation: one JSON line per measurement.

    python -m tools.bench train [--only=pretrain --only=evaluate] [--quick] [--seconds=30]
        [--peer-python=PATH]

A line has the median seconds of a call without compilation, the temporary memory of the compiled
program, and the resident memory that its first call added. The useful rate counts the causal half
of attention and no recomputation, and is compared with that of a float32 matrix product. The line
also says how many cores other processes kept busy.

The same work in Hugging Face's Llama runs in a process of its own. PATH is an interpreter with
PyTorch and transformers; the default is this one. All take turns, so that a busy machine slows all
alike. That takes ten minutes on two cores, and half of it without the peer.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from nope import sharding
from nope.data import Batch
from nope.evals import forward
from nope.model import ModelConfig, counts
from nope.runtime import hardware
from nope.training import optim, remat
from nope.training.state import fresh_state
from nope.training.stepping import jitted_step
from nope.variables import fresh_variables
from tools.bench import harness
from tools.bench.shapes import LONG, LOOPED, MIDDLE, SMALL

MATMUL_SIZE = 1536


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
class Workload:
    """Work at one shape. ours, peers: what takes turns, on our side and on the other."""

    name: str
    model: ModelConfig
    length: int
    batch: int
    ours: tuple[Work, ...] = ()
    peers: tuple[Work, ...] = ()
    quick: bool = False

    @property
    def tokens(self) -> int:
        return self.batch * self.length


CASES = (
    Workload('pretrain_4x128', SMALL, 64, 32, (FULL_STEP,), (FULL_STEP,), quick=True),
    Workload('pretrain_8x512', MIDDLE, 512, 4, (FULL_STEP,), (FULL_STEP,)),
    Workload('search_8x512_2k', LOOPED, 2048, 1, (HEAD_SCALE, FULL_STEP), (HEAD_SCALE, FULL_STEP)),
    # The peer's entropy needs eager attention's [N, T, T]: beyond 4k that is gigabytes.
    *(
        Workload(
            f'evaluate_{k}k',
            LOOPED,
            1024 * k,
            1,
            (LOSS_AND_ENTROPY, LOSS),
            (LOSS, LOSS_AND_ENTROPY) if k <= 4 else (LOSS,),
            quick=k == 1,
        )
        for k in (1, 2, 4, 8, 16)
    ),
    Workload('search_4x256_16k', LONG, 16_384, 1, (HEAD_SCALE,)),
)


class Runnable:
    """A compiled training step or evaluation pass on random tokens; calling it runs it once.

    model: that of the case, with the `remat` that was chosen where it is 'fit'.
    """

    def __init__(self, case: Workload, work: Work) -> None:
        kind, mesh = work.kind, sharding.make_mesh(sharding.MeshConfig())
        self.model = model = case.model
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
                start = time.perf_counter()
                lowered = forward.batch_sums.lower(model, work.entropy, *arguments)
            else:
                optimizer = (
                    optim.OptimizerConfig(1e-3, weight_decay=0.1)
                    if kind == 'pretrain'
                    else optim.OptimizerConfig(0.1, trains='lam', bound=1.0)
                )
                state, frozen = fresh_state(variables, optimizer, mesh)
                batch = Batch.of_blocks(blocks)
                arguments = state, frozen, sharding.place_micro_batches(mesh, 1, case.batch, batch)

                lower = functools.partial(_lowered_step, optimizer, arguments)
                start = time.perf_counter()
                capacity = hardware.memory_of(jax.local_devices()[0])
                self.model = remat.fitting(model, optimizer.trains, lower, capacity)
                lowered = lower(self.model)
            self._compiled = lowered.compile()
            self.compile_seconds = time.perf_counter() - start
        self._trains, self._arguments = kind != 'evaluate', arguments
        memory = self._compiled.memory_analysis()
        self.temp_mib = None if memory is None else memory.temp_size_in_bytes / harness.MIB
        total = counts.training_flops(model, case.length, frozen=kind == 'head_scale')
        self.flops = case.tokens * total / (3 if kind == 'evaluate' else 1)

    def __call__(self) -> None:
        result = jax.block_until_ready(self._compiled(*self._arguments))
        if self._trains:  # the old state was donated
            self._arguments = result[0], *self._arguments[1:]


def _lowered_step(
    optimizer: optim.OptimizerConfig, arguments: tuple[Any, ...], model: ModelConfig
) -> jax.stages.Lowered:
    return jitted_step(model, optimizer, arguments[0]).lower(*arguments)


def start_peer(
    python: str,
    case: Workload,
    work: Work,
    on: str = 'cpu',
    dtype: str = 'float32',
    new_tokens: int = 0,
) -> harness.Peer:
    """`peer.py` at one case, in its own interpreter. on, dtype: PyTorch's device, and of what
    it computes by autocast. On a GPU it compiles."""
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
        'new_tokens': new_tokens,
        'compiled': on == 'cuda',
        'remat': case.model.remat not in ('none', 'fit'),
    }
    return harness.Peer(python, asked)


def measure(case: Workload, python: str | None, budget: float) -> None:
    """Compiles and times all work of `case`, in turns; prints a line for each of ours."""
    programs = {work: Runnable(case, work) for work in case.ours}
    memory = {work: harness.peak_above_base(program) for work, program in programs.items()}
    timers = {('matmul', ''): matmul_timer()}
    for work, program in programs.items():
        timers['ours', work.name] = functools.partial(harness.seconds, program)
    with contextlib.ExitStack() as stack:
        peers: dict[Work, harness.Peer] = {}
        for work in case.peers if python else ():
            peers[work] = start_peer(str(python), case, work)
            stack.callback(peers[work].close)
        timers |= {('peer', work.name): peer.seconds for work, peer in peers.items()}
        taken, others = harness.beside_load(timers, budget, peers=peers.values())
    matmul_rate = 2 * MATMUL_SIZE**3 / taken['matmul', '']
    for work, program in programs.items():
        seconds = taken['ours', work.name]
        rate = program.flops / seconds
        line: dict[str, Any] = {
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
            'memory_mib': memory[work],
            'process_peak_mib': harness.peak(),
            'gflops': rate / 1e9,
            'matmul_gflops': matmul_rate / 1e9,
            'share_of_matmul': rate / matmul_rate,
        }
        for other in programs:
            if other != work:
                line[f'seconds_over_{other.name}'] = seconds / taken['ours', other.name]
        for other, peer in peers.items():
            theirs = taken['peer', other.name]
            line[f'peer_{other.name}'] = {
                'seconds': theirs,
                'memory_mib': peer.memory_mib,
                'our_seconds_over_it': seconds / theirs,  # below 1, ours is faster and smaller
                'our_memory_over_it': memory[work] / max(peer.memory_mib, 1e-9),
                'versions': peer.versions,
            }
        harness.emit({**line, 'cores_busy_elsewhere': others, **harness.about()})


def matmul_timer() -> Callable[[], float]:
    """Times a float32 [1536, 1536] product, the rate that shares refer to."""
    x = jnp.ones((MATMUL_SIZE, MATMUL_SIZE), jnp.float32)
    product = jax.jit(jnp.matmul).lower(x, x).compile()
    jax.block_until_ready(product(x, x))
    return lambda: harness.seconds(lambda: jax.block_until_ready(product(x, x)))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n')[0])
    parser.add_argument(
        '--only', action='append', help=f'part of a name: {", ".join(c.name for c in CASES)}'
    )
    parser.add_argument('--quick', action='store_true', help='two small cases, a few calls each')
    parser.add_argument('--seconds', type=float, default=30.0, help='per case')
    parser.add_argument('--peer-python', help='interpreter with torch and transformers')
    options = parser.parse_args()
    cases = [
        case
        for case in CASES
        if (not options.quick or case.quick)
        and (not options.only or any(part in case.name for part in options.only))
    ]
    if not cases:
        parser.error(f'--only={options.only} names no case')
    python = harness.peer_python(options.peer_python)
    for case in cases:
        measure(case, python, min(options.seconds, 3.0) if options.quick else options.seconds)
