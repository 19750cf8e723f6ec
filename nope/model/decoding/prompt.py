"""Reading a prompt into a cache, a piece at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax

from nope import losses
from nope.model.cache import Cache
from nope.model.config import ModelConfig
from nope.model.transformer import ModelOutput, apply


def read(
    config: ModelConfig, weights: Mapping[str, Any], tokens_BT: jax.Array, cache: Cache
) -> tuple[ModelOutput, Cache]:
    """The model's output at the next T tokens, and the cache with them. weights: `unstack`ed."""
    output = apply(config, weights, tokens_BT, cache=cache)
    assert output.cache is not None
    return output, output.cache


def next_logits(
    config: ModelConfig, weights: Mapping[str, Any], tokens_BT: jax.Array, cache: Cache
) -> tuple[jax.Array, Cache]:
    """Logits [B, V] float32 of the token after the T given ones, and the cache with these."""
    output, cache = read(config, weights, tokens_BT, cache)
    return losses.logits(output.hidden[:, -1], output.head, config.logit_cap), cache
