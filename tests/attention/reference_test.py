"""The definition itself keeps the contract."""

from __future__ import annotations

from tests.attention.contract import AttentionContract
from tests.attention.factor_contract import FactorContract
from tests.attention.key_bias_contract import KeyBiasContract


class TestReference(AttentionContract):
    implementation = 'reference'


class TestFactors(FactorContract):
    implementation = 'reference'


class TestKeyBias(KeyBiasContract):
    implementation = 'reference'
