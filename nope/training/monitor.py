"""Monitors of attention in training: entropy and largest logit of every layer."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from nope.data.batch import Batch
from nope.model import ModelConfig, apply
from nope.training.step import Metrics
from nope.variables import Variables

ENTROPY, MAX_LOGIT = 'entropy', 'max_logit'


@functools.partial(jax.jit, static_argnums=0)
def attention_metrics(config: ModelConfig, variables: Variables, batch: Batch) -> Metrics:
    """Attention of every layer on the first micro-batch of a batch [A, B / A, T], float32 [L] each.

    entropy: mean over rows, heads and positions, nats. max_logit: the largest logit of any query
    and key that it sees; one that grows from look to look precedes a loss that diverges. Targets
    and weights of the batch are not used: what fills it up counts too.
    """
    micro: Batch = jax.tree.map(lambda array: array[0], batch)
    output = apply(
        config,
        variables,
        micro.tokens,
        segments_BT=micro.segments,
        positions_BT=micro.positions,
        entropy=True,
        max_logit=True,
    )
    assert output.entropy is not None and output.max_logit is not None
    return {
        ENTROPY: jnp.mean(output.entropy, axis=(1, 2, 3)),
        MAX_LOGIT: jnp.max(output.max_logit, axis=(1, 2, 3)),
    }
