"""The definition itself keeps the contract."""

from __future__ import annotations

import pytest

from nope.attention.cases import Case
from tests.attention.contract import AttentionContract, covering
from tests.attention.factor_contract import FactorContract
from tests.attention.key_bias_contract import KeyBiasContract


class TestReference(AttentionContract):
    implementation = 'reference'

    @pytest.mark.parametrize('case', covering(others=pytest.mark.slow))
    def test_agrees_with_the_definition(self, case: Case) -> None:
        super().test_agrees_with_the_definition(case)


class TestFactors(FactorContract):
    implementation = 'reference'


class TestKeyBias(KeyBiasContract):
    implementation = 'reference'
