"""GraniteForCausalLM (Granite 3): Llama with multipliers of embeddings, attention, what layers add,
and logits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from nope.interop.families.base import Described
from nope.interop.families.decoder import Decoder, Defaults
from nope.interop.fields import Fields
from nope.model import ModelConfig

FREE = ('embedding_multiplier', 'residual_multiplier', 'softmax_scale', 'logit_multiplier')
BIASES = {'attention_bias': ('qkv_bias', 'output_bias'), 'mlp_bias': ('mlp_bias',)}


class Granite(Decoder):
    """A `Decoder` with these multipliers; logits are divided by `logits_scaling`."""

    def _read_values(self, fields: Fields, shape: Mapping[str, int]) -> dict[str, Any]:
        scale = fields.number('attention_multiplier', 1.0)
        return {
            'embedding_multiplier': fields.number('embedding_multiplier', 1.0),
            'residual_multiplier': fields.number('residual_multiplier', 1.0),
            'softmax_scale': None if scale == shape['head_dim'] ** -0.5 else scale,
            'logit_multiplier': 1 / fields.number('logits_scaling', 1.0, above=1e-30),
        }

    def unwritable(self, config: ModelConfig) -> str | None:
        if _divisor(config.logit_multiplier) is None:
            return f'logit_multiplier is {config.logit_multiplier!r}, 1 over no float'
        return super().unwritable(config)

    def write_config(self, config: ModelConfig, described: Described) -> dict[str, Any]:
        scale = config.softmax_scale
        return {
            **super().write_config(config, described),
            'embedding_multiplier': config.embedding_multiplier,
            'residual_multiplier': config.residual_multiplier,
            'attention_multiplier': config.head_dim**-0.5 if scale is None else scale,
            'logits_scaling': _divisor(config.logit_multiplier),
        }


def _divisor(multiplier: float) -> float | None:
    """A number to divide by in place of multiplying; None where rounding leaves none."""
    near = 1 / multiplier
    around = near, math.nextafter(near, math.inf), math.nextafter(near, 0.0)
    return next((divisor for divisor in around if 1 / divisor == multiplier), None)


GRANITE = Granite(
    name='granite',
    architecture='GraniteForCausalLM',
    defaults=Defaults(longest=2048, tokens={'bos_token_id': 1, 'eos_token_id': 2}),
    biases=BIASES,
    free=FREE,
)
