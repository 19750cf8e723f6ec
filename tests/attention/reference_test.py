"""The definition itself keeps the contract."""

from __future__ import annotations

from tests.attention.contract import AttentionContract


class TestReference(AttentionContract):
    implementation = 'reference'
