"""Ministral3ForCausalLM: Mistral whose queries grow by position, as `llama_4_scaling_beta` in the
rotary settings says.

    "rope_parameters": {"rope_type": "yarn", ..., "original_max_position_embeddings": 16384,
                        "llama_4_scaling_beta": 0.1}
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from nope.interop import rope
from nope.interop.families import kinds
from nope.interop.families.decoder import Decoder, Defaults
from nope.interop.families.mistral import OneWindow
from nope.interop.fields import MAX_LENGTH, Fields
from nope.model import LayerKind, ModelConfig
from nope.positions import Rotary

_RATE, _SPAN, _LONGEST = (
    'llama_4_scaling_beta',
    'original_max_position_embeddings',
    'max_position_embeddings',
)
# Of stock's class, where a file has no settings.
_DEFAULT = {
    'rope_type': 'yarn',
    'rope_theta': 1e6,
    'factor': 16.0,
    'beta_fast': 32.0,
    'beta_slow': 1.0,
    'mscale': 1.0,
    'mscale_all_dim': 1.0,
    _SPAN: 16_384,
    _RATE: 0.1,
}


class _Ministral3(Decoder):
    def _read_layers(
        self, fields: Fields, shape: Mapping[str, int]
    ) -> tuple[Rotary, Sequence[LayerKind]]:
        key = fields.agreed('rope_parameters', 'rope_scaling')
        given = fields.section(key) if fields.has(key) else Fields(_DEFAULT, fields.where)
        rate = given.number(_RATE, zero=True)
        span = given.integer(_SPAN, MAX_LENGTH)
        longest = fields.integer(_LONGEST, MAX_LENGTH, self.defaults.longest)
        given.only(_LONGEST, longest, why='what it is outside')
        kind = given.text(given.agreed('rope_type', 'type'), rope.KINDS, 'default')
        others = {_RATE, _LONGEST} if _SPAN in rope.KINDS[kind] else {_RATE, _LONGEST, _SPAN}
        plain = {key: value for key, value in given.values.items() if key not in others}
        settings = Fields(plain, given.where)
        rotary = rope.read(fields, longest=self.defaults.longest, settings=settings)
        if rate:
            rotary = dataclasses.replace(rotary, rate=rate, span=span)
        return rotary, self.layers.read(fields, shape['layers'], rotary)

    def _unwritable_positions(self, config: ModelConfig) -> str | None:
        rotary, found = kinds.rotary_of(config), self.layers.unwritable(config)
        if found is not None or rotary is None:
            return found
        if not rotary.rate:
            return 'its queries do not grow by position'
        length = getattr(rotary.scaling, 'train_length', rotary.span)
        if length != rotary.span:
            return f'its queries grow in spans of {rotary.span}, and its scaling is from {length}'
        return rope.unwritable(_plain(rotary), config.head_dim)

    def _write_positions(self, config: ModelConfig, longest: int | None) -> dict[str, Any]:
        rotary = kinds.rotary_of(config)
        assert rotary is not None
        keys = rope.write(_plain(rotary), config.head_dim, longest)
        settings = {
            'rope_type': 'default',
            **(keys.pop('rope_scaling') or {}),
            'rope_theta': keys.pop('rope_theta'),
            _SPAN: rotary.span,
            _RATE: rotary.rate,
        }
        return {**keys, 'rope_parameters': settings, **self.layers.write(config)}


def _plain(rotary: Rotary) -> Rotary:
    """The same rotation, with queries as they are."""
    return dataclasses.replace(rotary, rate=0.0, span=Rotary.span)


MINISTRAL3 = _Ministral3(
    name='ministral3',
    architecture='Ministral3ForCausalLM',
    defaults=Defaults(longest=262_144, kv_heads=8, head_dim=128, epsilon=1e-5),
    layers=OneWindow(default=None),
)
