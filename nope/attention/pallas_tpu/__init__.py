"""Attention kernels for TPUs."""

from nope.attention.pallas_tpu.kernel import BACKENDS, PallasTpu

__all__ = ['BACKENDS', 'PallasTpu']
