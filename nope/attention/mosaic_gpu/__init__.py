"""Attention kernels for Hopper GPUs."""

from nope.attention.mosaic_gpu.kernel import BACKEND, MosaicGpu

__all__ = ['BACKEND', 'MosaicGpu']
