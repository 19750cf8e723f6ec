"""The TPU kernels, interpreted."""

from __future__ import annotations

import functools

import jax
from jax.experimental.pallas import tpu as pltpu

from nope.attention import attention
from nope.attention.cases import Case, make_inputs
from nope.attention.flash import flash_attention
from nope.attention.pallas_tpu import PallasTpu
from tests.attention.contract import (
    TOLERANCE,
    AttentionContract,
    assert_close,
    value_and_gradients,
)


class TestPallasTpu(AttentionContract):
    implementation = 'pallas_tpu_interpret'


def test_on_a_simulated_tpu() -> None:
    """With the blocks of a TPU and its memories, where what was never written is NaN and copies
    that race are an error."""
    case = Case('', 1, 260, 300, 4, 2, 64, True, 'packed', 'float32', 100, 40, 'buckets')
    inputs = make_inputs(case)
    wanted = value_and_gradients(functools.partial(attention, implementation='reference'), inputs)
    simulated = pltpu.InterpretParams(uninitialized_memory='nan', detect_races=True)
    with pltpu.force_tpu_interpret_mode(simulated):
        found = value_and_gradients(functools.partial(flash_attention, PallasTpu()), inputs)
    for array, right in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert_close(array, right, TOLERANCE['float32'])
