"""Block-size search for the attention kernels on the device present.

    python -m tools.bench tune [--kernel pallas_gpu] [--head-dim 64] [--length 8192]
    python -m tools.bench tune --target h200    # only which candidates compile, anywhere

Times each kernel that runs here with its present blocks and with each candidate, by pass, dtype and
head dim, the nearest to a guess first. A measurement is one JSON line, on 16,384 tokens of 32 heads
on 4. A refused candidate has the compiler's words; one of the same program is left out.

A candidate that is 2 % faster goes into the device's table, nope/attention/tuned/DEVICE.json, which
kernels read from then on; commit it. Entries of other kernels and head dims stay. With --seconds
every pass has its share of that time; --folder puts the table elsewhere.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import itertools
import json
import math
import pathlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from nope.attention import block_sizes
from nope.attention.api import BACKENDS
from nope.attention.backend import describe
from nope.attention.cases import Inputs, Trial, abstract_inputs, make_inputs
from nope.attention.flash import Kernel, flash_attention
from nope.attention.mosaic_gpu import MosaicGpu
from nope.attention.mosaic_gpu.sizes import HopperBlocks
from nope.attention.pallas_gpu import PallasGpu
from nope.attention.pallas_gpu.programs import Blocks
from nope.attention.pallas_tpu import PallasTpu
from nope.attention.pallas_tpu.sizes import TpuBlocks
from nope.runtime import targets
from tools.bench import harness

TOKENS, HEADS, KV_HEADS = 16384, 32, 4
TURNS = 5
QUEUED_SECONDS = 0.05
NOISE = 0.02  # share by which times of the same program differ


@dataclasses.dataclass(frozen=True)
class Tunable:
    """A kernel with its present blocks, its maker from a candidate, and candidates by pass. guess:
    blocks for half precision, from which candidates are tried outwards."""

    now: Kernel
    make: Callable[[str, Sequence[int]], Kernel]
    guess: tuple[int, ...]
    candidates: dict[str, list[tuple[int, ...]]]

    def outwards(self, kind_of_pass: str) -> list[tuple[int, ...]]:
        """Candidates of a pass, those nearest to the guess first."""

        def distance(blocks: Sequence[int]) -> float:
            pairs = zip(blocks, self.guess, strict=True)
            return sum(abs(math.log2(number / guess)) for number, guess in pairs)

        return sorted(self.candidates[kind_of_pass], key=distance)


TUNABLE = {
    'pallas_tpu': Tunable(
        PallasTpu(),
        lambda name, blocks: PallasTpu(blocks=((name, TpuBlocks(*blocks)),)),
        (1024, 1024, 512),
        {
            name: list(itertools.product((512, 1024, 2048), (512, 1024, 2048), (256, 512, 1024)))
            for name in ('forward', 'backward')
        },
    ),
    'pallas_gpu': Tunable(
        PallasGpu(),
        lambda name, blocks: PallasGpu(blocks=((name, Blocks(*blocks)),)),
        (64, 64, 8, 2),
        {
            name: list(itertools.product((32, 64, 128), (32, 64, 128), (4, 8), (1, 2, 3, 4)))
            for name in ('forward', 'd_q', 'd_kv')
        },
    ),
    'mosaic_gpu': Tunable(
        MosaicGpu(),
        lambda name, blocks: MosaicGpu(blocks=((name, HopperBlocks(*blocks)),)),
        (128, 200),
        {
            name: list(itertools.product((128, 64), (200, 100)))
            for name in ('forward', 'd_q', 'd_kv')
        },
    ),
}


def lower(kernel: Kernel, inputs: Inputs, *, forward: bool) -> jax.stages.Lowered:
    """The forward pass with its entropy, or that and the backward pass."""

    def run(inputs: Inputs):
        def attend(q_BTNH, k_BSKH, v_BSKH):
            result = flash_attention(
                kernel, q_BTNH, k_BSKH, v_BSKH, mask=inputs.mask, bias=None, entropy=True
            )
            return result.out, result.entropy

        arrays = inputs.q_BTNH, inputs.k_BSKH, inputs.v_BSKH
        if forward:
            return attend(*arrays)
        (out, _), back = jax.vjp(attend, *arrays)
        return back((inputs.d_out_BTNH.astype(out.dtype), inputs.d_entropy_BNT))

    return jax.jit(run).lower(inputs)


def tune(
    name: str, kind_of_pass: str, case: Trial, inputs: Inputs, timed: bool, ends: float = math.inf
) -> list[int] | None:
    """The fastest candidate begun before `time.perf_counter()` is at `ends`. None where the kernel
    is as fast with its present blocks, or fails with them."""
    facts = {'kernel': name, 'pass': kind_of_pass, 'dtype': case.dtype, 'head_dim': case.head_dim}
    tunable = TUNABLE[name]
    best: tuple[float, list[int] | None] | None = None
    seen: set[str] = set()
    tried: list[tuple[int, ...] | None] = [None, *tunable.outwards(kind_of_pass)]
    for place, blocks in enumerate(tried):
        if time.perf_counter() > ends:
            harness.emit(facts | {'error': f'left out: {len(tried) - place}, the time is over'})
            break
        found: dict[str, Any] = facts | {'blocks': blocks or 'as they are'}
        try:
            kernel = tunable.now if blocks is None else tunable.make(kind_of_pass, blocks)
            lowered = lower(kernel, inputs, forward=kind_of_pass == 'forward')
            text = lowered.as_text()
            if text in seen:
                continue
            seen.add(text)
            compiled = lowered.compile()
            if timed:
                found['seconds'] = seconds(functools.partial(compiled, inputs))
                if blocks is None:
                    best = (1 - NOISE) * found['seconds'], None
                elif best is not None and found['seconds'] < best[0]:
                    best = found['seconds'], list(blocks)
        except Exception as error:  # too large for the device: the compiler's word is the result
            found['error'] = f'{type(error).__name__}: {error}'[:200]
        harness.emit(found)
    return None if best is None else best[1]


def seconds(call: Callable[[], Any]) -> float:
    """Seconds of a call: the median of a few queues of calls."""
    timer = functools.partial(harness.per_call, call, jax.block_until_ready, QUEUED_SECONDS)
    timer()
    return harness.interleaved({'call': timer}, 5.0, TURNS)['call']


def write(
    path: pathlib.Path, kernel: str, kind_of_pass: str, case: Trial, blocks: list[int]
) -> None:
    """Adds an entry to the table, and with what it was measured."""
    table = json.loads(path.read_text()) if path.exists() else {}
    itemsize, head_dim = str(jnp.dtype(case.dtype).itemsize), str(case.head_dim)
    by_size = table.setdefault(kernel, {}).setdefault(kind_of_pass, {})
    by_size.setdefault(itemsize, {})[head_dim] = blocks
    table.setdefault('jax', {})[kernel] = jax.__version__
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(table, indent=1, sort_keys=True) + '\n')


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n')[0])
    parser.add_argument('--kernel', action='append', choices=TUNABLE)
    parser.add_argument('--head-dim', action='append', type=int, help='default: 64 and 128')
    parser.add_argument('--dtype', action='append', choices=['bfloat16', 'float32'])
    parser.add_argument('--length', type=int, default=8192)
    parser.add_argument('--seconds', type=float, default=math.inf, help='in all, shared by passes')
    parser.add_argument('--folder', type=pathlib.Path, default=block_sizes.FOLDER)
    parser.add_argument('--target', help='compile for this device (h200, v5e:1x1) and run nothing')
    options = parser.parse_args()
    names = options.kernel or TUNABLE
    sizes = itertools.product(options.head_dim or [64, 128], options.dtype or ['bfloat16'])
    cases = [
        Trial(
            'tune', max(TOKENS // options.length, 1), options.length, options.length, HEADS,
            KV_HEADS, head_dim, dtype=dtype,
        )
        for head_dim, dtype in sizes
    ]  # fmt: skip
    chosen = jax.devices()[:1] if options.target is None else targets.devices(options.target)[:1]
    mesh = Mesh(np.array(chosen), ('x',), axis_types=(AxisType.Auto,))
    path = options.folder / block_sizes.file_name(chosen[0].device_kind)
    ends = time.perf_counter() + options.seconds
    passes_left = len(cases) * sum(len(TUNABLE[name].candidates) for name in names)
    with jax.set_mesh(mesh):
        for case, name in itertools.product(cases, names):
            inputs = abstract_inputs(case, NamedSharding(mesh, PartitionSpec()))
            reason = BACKENDS[name].unsupported(
                describe(inputs.q_BTNH, inputs.k_BSKH, inputs.mask, None, True)
            )
            if reason is not None:
                print(f'{name} cannot: {reason}', flush=True)
                passes_left -= len(TUNABLE[name].candidates)
                continue
            if options.target is None:
                inputs = make_inputs(case)
            for kind_of_pass in TUNABLE[name].candidates:
                now = time.perf_counter()
                share = now + max(ends - now, 0) / passes_left
                passes_left -= 1
                blocks = tune(name, kind_of_pass, case, inputs, options.target is None, share)
                if blocks is not None:
                    write(path, name, kind_of_pass, case, blocks)
                    print(f'{path}: {name} {kind_of_pass} {blocks}', flush=True)
