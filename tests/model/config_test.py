from __future__ import annotations

import dataclasses
from typing import Any

import jax
import pytest

from nope.model import ModelConfig
from nope.positions import Rotary
from nope.state import abstract_variables
from tests import tiny


@pytest.mark.parametrize(
    'config',
    [
        tiny.MODEL,
        tiny.model(tied_head=True, layers=3),
        tiny.model(kv_heads=4, head_dim=6, position=Rotary()),
    ],
)
def test_the_count_of_parameters_is_that_of_the_model(config: ModelConfig) -> None:
    params = abstract_variables(config, tiny.mesh())['params']
    assert config.parameters == sum(leaf.size for leaf in jax.tree.leaves(params))


def test_tinyllama_has_its_published_size() -> None:
    params = abstract_variables(tiny.TINYLLAMA, tiny.mesh())['params']
    assert tiny.TINYLLAMA.parameters == 1_100_048_384
    assert sum(leaf.size for leaf in jax.tree.leaves(params)) == 1_100_048_384
    assert sum(leaf.size for leaf in jax.tree.leaves(params['layers'])) == 22 * 44_044_288
    assert params['embedding'].size == params['head'].size == 65_536_000


def test_a_training_step_costs_six_flops_per_weight_and_the_causal_half_of_attention() -> None:
    weights = 2 * (32 * 8 * (4 + 2 + 2 + 4) + 3 * 32 * 48) + 32 * 64
    attention = 2 * 3 * (2 * 4 * 8) * 100  # layers, passes, both products, half the keys
    assert tiny.MODEL.training_flops_per_token(100) == 6 * weights + attention
    tied = tiny.model(tied_head=True)
    assert tied.training_flops_per_token(100) == tiny.MODEL.training_flops_per_token(100)


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'layers': 0}, r'model\.layers is 0; it must be at least 1'),
        ({'head_dim': 0}, r'model\.head_dim is 0'),
        ({'vocab_size': -1}, r'model\.vocab_size is -1'),
        ({'kv_heads': 3}, r'model\.heads is 4 and model\.kv_heads is 3; .* multiple'),
        ({'head_dim': 7, 'position': Rotary()}, r'model\.head_dim is 7; .* even'),
        ({'dtype': 'float16'}, r"model\.dtype is 'float16'; accepted: float32, bfloat16"),
        ({'remat': 'some'}, r"model\.remat is 'some'; accepted: none, full, dots"),
        ({'unroll': 3}, r'model\.unroll is 3; accepted is 0 to model\.layers = 2'),
    ],
)
def test_errors_name_the_field_and_what_is_accepted(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tiny.model(**changes)


def test_fields_of_execution_are_no_part_of_the_identity() -> None:
    outside = {f.name for f in dataclasses.fields(ModelConfig) if not f.metadata.get('identity', 1)}
    assert outside == {'remat', 'attention', 'unroll'}
