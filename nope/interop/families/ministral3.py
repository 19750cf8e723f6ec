"""Ministral3ForCausalLM: Mistral whose queries grow by position, as `llama_4_scaling_beta` in the
RoPE settings says.

    "rope_parameters": {"rope_type": "yarn", ..., "original_max_position_embeddings": 16384,
                        "llama_4_scaling_beta": 0.1}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nope.interop import rope_settings
from nope.interop.families import kinds
from nope.interop.families.decoder import Decoder, Defaults
from nope.interop.families.mistral import OneWindow
from nope.interop.fields import MAX_LENGTH, Fields
from nope.interop.rope_settings import ORIGINAL
from nope.model import ModelConfig
from nope.model.lam import GivenLaw, LogFloor
from nope.positions import RoPE

_RATE, _LONGEST = 'llama_4_scaling_beta', 'max_position_embeddings'
# Of stock's class, where a file has no settings.
_DEFAULT = {
    'rope_type': 'yarn',
    'rope_theta': 1e6,
    'factor': 16.0,
    'beta_fast': 32.0,
    'beta_slow': 1.0,
    'mscale': 1.0,
    'mscale_all_dim': 1.0,
    ORIGINAL: 16_384,
    _RATE: 0.1,
}


class _Ministral3(Decoder):
    def _read_rope(self, fields: Fields, shape: Mapping[str, int]) -> RoPE:
        given = _settings(fields)
        longest = fields.integer(_LONGEST, MAX_LENGTH, self.defaults.longest)
        given.only(_LONGEST, longest, why='what it is outside')
        kind = given.text(given.agreed('rope_type', 'type'), rope_settings.KINDS, 'default')
        others = {_RATE, _LONGEST, ORIGINAL} - {*rope_settings.KINDS[kind]}
        plain = {key: value for key, value in given.values.items() if key not in others}
        settings = Fields(plain, given.where)
        return rope_settings.read(fields, longest=self.defaults.longest, settings=settings)

    def _read_values(self, fields: Fields, shape: Mapping[str, int]) -> dict[str, Any]:
        given = _settings(fields)
        rate, span = given.number(_RATE, zero=True), given.integer(ORIGINAL, MAX_LENGTH)
        return {'law': GivenLaw(LogFloor(span), rate, first=0) if rate else None}

    def _unwritable_positions(self, config: ModelConfig) -> str | None:
        if config.law is None:
            return 'its queries do not grow by position'
        span = getattr(config.law.law, 'train_length', 1)
        if config.law != GivenLaw(LogFloor(span), config.law.coefficient, first=0):
            return f'its law is {config.law}, not LogFloor in all heads with first 0'
        rope = kinds.rope_of(config)
        length = span if rope is None else getattr(rope.scaling, 'train_length', span)
        if length != span:
            return f'its queries grow in spans of {span}, and its scaling is from {length}'
        return super()._unwritable_positions(config)

    def _write_rope(self, config: ModelConfig, rope: RoPE, longest: int | None) -> dict[str, Any]:
        assert config.law is not None and isinstance(config.law.law, LogFloor)
        keys = rope_settings.write(rope, config.head_dim, longest)
        settings = {
            **rope_settings.in_one(keys),
            ORIGINAL: config.law.law.train_length,
            _RATE: config.law.coefficient,
        }
        rest = {key: keys[key] for key in keys if key not in ('rope_scaling', 'rope_theta')}
        return {**rest, 'rope_parameters': settings}


def _settings(fields: Fields) -> Fields:
    key = fields.agreed('rope_parameters', 'rope_scaling')
    return fields.section(key) if fields.has(key) else Fields(_DEFAULT, fields.where)


MINISTRAL3 = _Ministral3(
    name='ministral3',
    architecture='Ministral3ForCausalLM',
    defaults=Defaults(
        longest=262_144,
        kv_heads=8,
        head_dim=128,
        epsilon=1e-5,
        tokens={'bos_token_id': 1, 'eos_token_id': 2, 'pad_token_id': 11},
    ),
    layers=OneWindow(default=None),
    free=('law',),
)
