"""Attention kernels for GPUs from Ampere on."""

from nope.attention.pallas_gpu.kernel import BACKEND, PallasGpu

__all__ = ['BACKEND', 'PallasGpu']
