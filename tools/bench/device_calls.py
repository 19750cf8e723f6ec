"""Single calls on a device, which the stages of `device` start: a JSON line each.

    python -m tools.bench device_calls ceilings
    python -m tools.bench device_calls attention --implementation=mosaic_gpu --case=h64_8k \\
        --pass=gradient_entropy [--kernels]

`ceilings` prints installed versions, the rates of a bfloat16 matrix product and of a copy beside
the data sheet's, and the attention backends chosen here. `attention` makes one call, for a profiler
or a sanitizer to watch. --kernels adds the milliseconds of each kernel, by CUPTI.
"""

from __future__ import annotations

import argparse
import importlib.metadata

import jax
import jax.numpy as jnp

from nope.attention.api import BACKENDS, choose
from nope.attention.backend import describe
from nope.attention.cases import ACCELERATOR_CASES, Trial, make_inputs
from nope.runtime import hardware
from nope.runtime.platform import target_device
from tools.bench import attention, harness

PACKAGES = (
    *('jax', 'jaxlib', 'jax-cuda12-plugin', 'jax-cuda13-plugin', 'libtpu', 'flax', 'optax'),
    *('nvidia-cudnn-cu12', 'nvidia-cudnn-cu13'),
)
# Every rule in blocks that are cut, for tools under which a call takes minutes.
PACKED = Trial('packed', 1, 384, 384, 4, 2, 64, segments='packed', dtype='bfloat16')
CASES = {case.name: case for case in (*ACCELERATOR_CASES, PACKED)}
SECONDS = 0.2


def rates(side: int, copied: int) -> dict[str, float]:
    """TFLOP/s of a [side, side] product, TB/s of reading and writing `copied` numbers."""
    square = jnp.ones((side, side), jnp.bfloat16)
    array = jnp.ones(copied, jnp.bfloat16)
    product, copy = jax.jit(lambda x: x @ x), jax.jit(lambda x: x + 1)
    wait = jax.block_until_ready
    wait((product(square), copy(array)))
    return {
        'product_tflops': 2e-12
        * side**3
        / harness.per_call(lambda: product(square), wait, SECONDS),
        'copy_tb_per_s': 2e-12
        * array.nbytes
        / harness.per_call(lambda: copy(array), wait, SECONDS),
    }


def chosen() -> dict[str, str]:
    """The backends of a plain call and of one with the entropy, bfloat16 and float32."""
    found = {}
    for dtype in ('bfloat16', 'float32'):
        inputs = make_inputs(Trial('', 1, 256, 256, 8, 2, 64, dtype=dtype))
        for name, entropy in (('plain', False), ('entropy', True)):
            call = describe(inputs.q_BTNH, inputs.k_BSKH, inputs.mask, None, entropy, lse=entropy)
            found[f'{name} {dtype}'] = choose(call, None).name
    return found


def versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def ceilings() -> None:
    platform, kind = target_device()
    harness.emit({'platform': platform, 'device': kind, 'versions': versions()})
    side, copied = (256, 2**20) if platform == 'cpu' else (8192, 2**30)
    sheet = hardware.known(kind)
    expected = {}
    if sheet is not None:
        expected = {'sheet_tflops': sheet.flops / 1e12, 'sheet_tb_per_s': sheet.bandwidth / 1e12}
    harness.emit({'device': kind, **rates(side, copied), **expected})
    harness.emit({'device': kind, 'chosen': chosen()})


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n')[0])
    calls = parser.add_subparsers(dest='call', required=True)
    calls.add_parser('ceilings')
    one = calls.add_parser('attention')
    one.add_argument('--implementation', choices=BACKENDS, required=True)
    one.add_argument('--case', choices=CASES, required=True)
    one.add_argument('--pass', choices=attention.PRODUCTS, dest='kind', required=True)
    one.add_argument('--kernels', action='store_true', help='on a CUDA device')
    options = parser.parse_args()
    if options.call == 'ceilings':
        ceilings()
        return 0
    inputs = make_inputs(CASES[options.case])
    program = attention.lower(options.kind, options.implementation, inputs).compile()
    result = jax.block_until_ready(program(inputs))
    finite = all(bool(jnp.all(jnp.isfinite(x))) for x in jax.tree.leaves(result))
    found = {
        'case': options.case,
        'implementation': options.implementation,
        'pass': options.kind,
        'finite': finite,
    }
    if options.kernels:
        from jax.experimental.mosaic.gpu import profiler

        _, kernels = profiler.measure(program, aggregate=False)(inputs)
        found['kernels_ms'] = dict(sorted(kernels or [], key=lambda kernel: -kernel[1]))
    harness.emit(found)
    return int(not finite)
