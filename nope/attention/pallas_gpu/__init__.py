"""Attention kernels for GPUs from Ampere on."""

from nope.attention.pallas_gpu.kernel import BACKENDS, PallasGpu

__all__ = ['BACKENDS', 'PallasGpu']
