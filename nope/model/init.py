"""Initialisation of parameters: normal distributions with a standard deviation by role.

tinyllama: sqrt(2 / (5 D)) for every matrix, 1 / (sqrt(D) layers) for those that write to the
    residual stream.
sharp: tinyllama with queries and keys of twice that deviation, and so logits of four times it.
t5: for attention without 1 / sqrt(H) (arXiv 1910.10683). The embedding has 1, queries have
    (D H)^-1/2, all others the inverse square root of their inputs.
"""

from __future__ import annotations

from collections.abc import Callable

import flax.linen as nn
import jax

from nope.model.config import ModelConfig

_TINYLLAMA: dict[str, Callable[[ModelConfig], float]] = dict.fromkeys(
    ('embedding', 'head', 'query', 'key', 'value', 'gate', 'mlp_in'),
    lambda c: (2 / (5 * c.width)) ** 0.5,
) | dict.fromkeys(('output', 'mlp_out', 'token_out'), lambda c: 1 / (c.width**0.5 * c.layers))

_SHARP = _TINYLLAMA | dict.fromkeys(('query', 'key'), lambda c: 2 * _TINYLLAMA['query'](c))

_T5: dict[str, Callable[[ModelConfig], float]] = {
    'embedding': lambda c: 1.0,
    'head': lambda c: c.width**-0.5,
    'query': lambda c: (c.width * c.head_dim) ** -0.5,
    'key': lambda c: c.width**-0.5,
    'value': lambda c: c.width**-0.5,
    'gate': lambda c: c.width**-0.5,
    'output': lambda c: (c.heads * c.head_dim) ** -0.5,
    'mlp_in': lambda c: c.width**-0.5,
    'mlp_out': lambda c: c.mlp_width**-0.5,
    'token_out': lambda c: (c.token_width or 1) ** -0.5,
}


def initializer(config: ModelConfig, role: str) -> jax.nn.initializers.Initializer:
    """N(0, stddev) for a matrix of that role."""
    rules = {'tinyllama': _TINYLLAMA, 'sharp': _SHARP, 't5': _T5}[config.init]
    return nn.initializers.normal(rules[role](config))
