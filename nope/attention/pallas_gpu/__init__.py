"""Attention kernels for GPUs from Ampere on."""

from nope.attention.pallas_gpu.kernel import BACKENDS, PallasGPU

__all__ = ['BACKENDS', 'PallasGPU']
