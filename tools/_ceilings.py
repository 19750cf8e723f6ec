"""Peak rates of an accelerator and the attention backends chosen on it: JSON lines.

The rates of a bfloat16 matrix product and of a copy, next to the data sheet's, and the versions of
what is installed.
"""

from __future__ import annotations

from nope.runtime import door

if __name__ == '__main__':  # before what it imports
    door.enter(__file__)

import importlib.metadata

import _bench
import jax
import jax.numpy as jnp

from nope.attention.api import choose
from nope.attention.backend import describe
from nope.attention.cases import Trial, make_inputs
from nope.runtime import hardware
from nope.runtime.platform import target_device

PACKAGES = (
    *('jax', 'jaxlib', 'jax-cuda12-plugin', 'jax-cuda13-plugin', 'libtpu', 'flax', 'optax'),
    *('nvidia-cudnn-cu12', 'nvidia-cudnn-cu13'),
)
SECONDS = 0.2


def rates(side: int, copied: int) -> dict[str, float]:
    """TFLOP/s of a [side, side] product, TB/s of reading and writing `copied` numbers."""
    square = jnp.ones((side, side), jnp.bfloat16)
    array = jnp.ones(copied, jnp.bfloat16)
    product, copy = jax.jit(lambda x: x @ x), jax.jit(lambda x: x + 1)
    wait = jax.block_until_ready
    wait((product(square), copy(array)))
    return {
        'product_tflops': 2e-12 * side**3 / _bench.per_call(lambda: product(square), wait, SECONDS),
        'copy_tb_per_s': 2e-12 * array.nbytes / _bench.per_call(lambda: copy(array), wait, SECONDS),
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


def main() -> None:
    platform, kind = target_device()
    _bench.emit({'platform': platform, 'device': kind, 'versions': versions()})
    side, copied = (256, 2**20) if platform == 'cpu' else (8192, 2**30)
    sheet = hardware.known(kind)
    expected = {}
    if sheet is not None:
        expected = {'sheet_tflops': sheet.flops / 1e12, 'sheet_tb_per_s': sheet.bandwidth / 1e12}
    _bench.emit({'device': kind, **rates(side, copied), **expected})
    _bench.emit({'device': kind, 'chosen': chosen()})


if __name__ == '__main__':
    main()
