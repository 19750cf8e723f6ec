"""Attention kernels for TPUs."""

from nope.attention.pallas_tpu.kernel import BACKEND, PallasTpu

__all__ = ['BACKEND', 'PallasTpu']
