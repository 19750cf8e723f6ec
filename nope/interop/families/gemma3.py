"""Gemma3ForCausalLM, the text models of Gemma 3: norms at both ends of attention and MLP, QK-norm
of each head, windows in five of six layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nope.interop.families.base import Described
from nope.interop.families.by_type import ByType
from nope.interop.families.decoder import Defaults
from nope.interop.families.interleaved import Interleaved
from nope.interop.fields import MAX_WIDTH, Fields
from nope.model import ModelConfig

_SCALAR = 'query_pre_attn_scalar'


class _Gemma3(ByType):
    """Embeddings times the square root of their width, queries divided by that of `_SCALAR`."""

    def _read_values(self, fields: Fields, shape: Mapping[str, int]) -> dict[str, Any]:
        scalar = fields.integer(_SCALAR, MAX_WIDTH, 256)
        return {
            'embedding_multiplier': shape['width'] ** 0.5,
            'softmax_scale': None if scalar == shape['head_dim'] else scalar**-0.5,
        }

    def unwritable(self, config: ModelConfig) -> str | None:
        if config.embedding_multiplier != config.width**0.5:
            return f'its embeddings are multiplied by {config.embedding_multiplier:g}'
        scale = config.softmax_scale
        if scale is not None and _scalar(config) ** -0.5 != scale:
            return f'softmax_scale is {scale:g}, not 1 / sqrt of a whole number'
        return super().unwritable(config)

    def write_config(self, config: ModelConfig, described: Described) -> dict[str, Any]:
        return {**super().write_config(config, described), _SCALAR: _scalar(config)}


def _scalar(config: ModelConfig) -> int:
    scale = config.softmax_scale
    return config.head_dim if scale is None else max(round(scale**-2), 1)


GEMMA3 = _Gemma3(
    name='gemma3_text',
    architecture='Gemma3ForCausalLM',
    defaults=Defaults(
        longest=131_072,
        heads=8,
        vocabulary=262_208,
        kv_heads=4,
        head_dim=256,
        tied=True,
        theta=1e6,
        activation='gelu_pytorch_tanh',
        tokens={'bos_token_id': 2, 'eos_token_id': 1, 'pad_token_id': 0},
    ),
    layers=Interleaved(interval=6),
    biases={'attention_bias': ('qkv_bias', 'output_bias')},
    qk_norm=True,
    whole_heads=True,
    fixed={'block': 'both', 'norm_offset': True},
    free=('embedding_multiplier', 'softmax_scale'),
    activation='hidden_activation',
    notes={'use_bidirectional_attention': (False,)},
    sliding_theta=10_000.0,
    sliding_key='rope_local_base_freq',
)
