"""Shapes and dtypes that public signatures say hold, and the argument that breaks them is named."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jaxtyping
import pytest

from nope import Transformer, apply, losses
from nope.attention import attention
from nope.model import lam
from tests import tiny

B, T, S, N, K, H, D, V, L = 3, 8, 9, 4, 2, 16, 64, 5, 2
MODEL = dataclasses.replace(tiny.MODEL, layers=L, heads=N, head_dim=H, width=D, vocab_size=V)


def of(*axes: int, dtype: Any = jnp.float32) -> jax.Array:
    return jnp.zeros(axes, dtype)


def ints(*axes: int) -> jax.Array:
    return of(*axes, dtype=jnp.int32)


# A function, arguments that fit, and of its arguments shapes and dtypes that do not.
SIGNATURES: list[tuple[Callable[..., Any], dict[str, Any], dict[str, tuple[jax.Array, ...]]]] = [
    (
        attention,
        {
            'q_BTNH': of(B, T, N, H),
            'k_BSKH': of(B, T, K, H),
            'v_BSKH': of(B, T, K, H),
            'key_bias_BNS': of(B, N, T),
        },
        {
            'q_BTNH': (of(B, T, N), ints(B, T, N, H)),
            'k_BSKH': (of(B + 1, T, K, H), ints(B, T, K, H)),
            'v_BSKH': (of(B, S, K, H), ints(B, T, K, H)),
            'key_bias_BNS': (of(B, K, T), of(B, N, T, dtype=jnp.bfloat16)),
        },
    ),
    *(
        (
            loss,
            {'hidden_BTD': of(B, T, D), 'head_DV': of(D, V), 'targets_BT': ints(B, T)},
            {
                'hidden_BTD': (of(B, D), ints(B, T, D)),
                'head_DV': (of(V, D), ints(D, V)),
                'targets_BT': (ints(B, S), of(B, T)),
            },
        )
        for loss in (losses.token_loss, losses.token_choices)
    ),
    (
        losses.logits,
        {'hidden': of(T, D), 'head_DV': of(D, V)},
        {'hidden': (ints(T, D),), 'head_DV': (of(V, D), ints(D, V))},
    ),
    (
        losses.mean_loss,
        {'nll_BT': of(B, T), 'weights_BT': of(B, T), 'total': of()},
        {'nll_BT': (of(T), ints(B, T)), 'weights_BT': (of(B, S),), 'total': (of(B), ints())},
    ),
    (
        lam.scale_queries,
        {'q_BTNH': of(B, T, N, H), 'multipliers_N': of(B, N)},
        {'q_BTNH': (of(T, N, H), ints(B, T, N, H)), 'multipliers_N': (of(B, K), ints(N))},
    ),
    (
        lam.Constant().multipliers,
        {'coefficients_LN': of(L, N), 'length': ints(), 'positions_T': ints(T)},
        {
            'coefficients_LN': (of(L), ints(L, N)),
            'length': (ints(B),),
            'positions_T': (ints(B, T), of(T)),
        },
    ),
]
REFUSED = [
    pytest.param(function, fitting, name, value, id=f'{function.__name__}-{name}-{value.aval}')
    for function, fitting, unfitting in SIGNATURES
    for name, values in unfitting.items()
    for value in values
]


@pytest.mark.parametrize(('function', 'fitting', 'name', 'value'), REFUSED)
def test_what_a_signature_does_not_say_is_refused_by_name(
    function: Callable[..., Any], fitting: dict[str, Any], name: str, value: jax.Array
) -> None:
    jax.eval_shape(function, **fitting)
    with pytest.raises(jaxtyping.TypeCheckError, match=f"parameter '{name}'"):
        function(**{**fitting, name: value})


@pytest.mark.parametrize(
    ('tokens', 'name', 'value'),
    [
        (of(B, T), 'tokens_BT', None),
        (ints(T), 'tokens_BT', None),
        (ints(B, T), 'segments_BT', ints(B, S)),
        (ints(B, T), 'positions_BT', of(B, T)),
        (ints(B, T), 'length', ints(B + 1)),
    ],
)
def test_the_model_refuses_it_too(tokens: jax.Array, name: str, value: jax.Array | None) -> None:
    given = {} if value is None else {name: value}
    with pytest.raises(jaxtyping.TypeCheckError, match=f"parameter '{name}'"):
        apply(MODEL, {}, tokens, **given)


def test_a_uniform_lambda_has_the_shape_of_the_model() -> None:
    with pytest.raises(jaxtyping.TypeCheckError, match='heads'):
        lam.uniform(1.0, L, of(N))
    assert lam.uniform(1.0, L, N).shape == (L, N)


def test_outputs_have_the_shapes_that_their_fields_say() -> None:
    """Letters mean one size in all fields; here each has its own."""
    q_BTNH, k_BSKH = of(B, T, N, H), of(B, T, K, H)
    attended = attention(q_BTNH, k_BSKH, k_BSKH, entropy=True, max_logit=True)
    tokens_BT = ints(B, T)
    variables = Transformer(MODEL).init(jax.random.key(0), tokens_BT)
    asked = {'entropy': True, 'max_logit': True, 'queries_R': jnp.arange(6)}
    modelled = apply(MODEL, variables, tokens_BT, **asked)
    for output in (attended, modelled):
        said = typing.get_type_hints(type(output))
        with jaxtyping.jaxtyped('context'):
            for name, value in output._asdict().items():
                assert isinstance(value, said[name]), name
