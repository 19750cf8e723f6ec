"""Attention backends whose kernels run in JAX's interpreters, on any device, slowly.

Their names are accepted where the fixture `interpreted_kernels` is used, by that of `attention` as
by the field of a model.
"""

from __future__ import annotations

import jax

from nope.attention import mosaic_gpu, pallas_gpu, pallas_tpu
from nope.attention.backend import Backend, Call, of_kernel
from nope.attention.pallas_tpu.sizes import TpuBlocks
from nope.runtime import processors

_SMALL_BLOCKS = ('forward', TpuBlocks(64, 64, 32)), ('backward', TpuBlocks(64, 64, 32))
# The program, its three warpgroups, and one that copies arrays for them meanwhile.
_THREADS = 5


def _unsupported_by_threads(call: Call) -> str | None:
    if jax.__version_info__ < (0, 12):
        return f'the interpreter of JAX {jax.__version__} has no wgmma; accepted: 0.12 and later'
    try:
        threads = max(processors.usable(), len(jax.local_devices(backend='cpu')))
    except RuntimeError:
        return 'the interpreter runs on the CPU, which is not among the platforms of JAX here'
    if threads < _THREADS:
        return (
            f'{threads} threads run programs on this CPU, and the interpreter may wait forever '
            f'with fewer than {_THREADS}; jax_num_cpu_devices=8 gives it 8'
        )
    return mosaic_gpu.kernel.unsupported_anywhere(call)


MOSAIC_GPU = of_kernel(
    'mosaic_gpu_interpret', mosaic_gpu.MosaicGpu(interpret=True), _unsupported_by_threads
)
PALLAS_GPU = of_kernel(
    'pallas_gpu_interpret',
    pallas_gpu.PallasGpu(interpret=True),
    pallas_gpu.kernel.unsupported_anywhere,
)
PALLAS_TPU = of_kernel('pallas_tpu_interpret', pallas_tpu.PallasTpu(True, _SMALL_BLOCKS))
BACKENDS: dict[str, Backend] = {
    backend.name: backend for backend in (MOSAIC_GPU, PALLAS_GPU, PALLAS_TPU)
}
