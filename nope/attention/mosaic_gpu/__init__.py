"""Attention kernels for Hopper GPUs."""

from nope.attention.mosaic_gpu.kernel import BACKENDS, MosaicGpu

__all__ = ['BACKENDS', 'MosaicGpu']
