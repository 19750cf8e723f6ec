"""The TPU kernels, interpreted."""

from __future__ import annotations

from tests.attention.contract import AttentionContract


class TestPallasTpu(AttentionContract):
    implementation = 'pallas_tpu_interpret'
