"""Olmo3ForCausalLM: OLMo 2 with windows in three of four layers, and scaled rotary positions in the
others alone.

Read are the settings of each type of layers,

    "rope_parameters": {"full_attention": {...}, "sliding_attention": {...}}

and those of transformers 4, `rope_theta` and `rope_scaling`, the latter of the layers without a
window. Written is the second where it says all: stock takes 500,000 for the base of layers with a
window there, whatever `rope_theta` is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from nope.interop import rope
from nope.interop.families import kinds
from nope.interop.families.decoder import Decoder, Defaults
from nope.interop.families.interleaved import Interleaved
from nope.interop.fields import Fields
from nope.model import LayerKind, ModelConfig
from nope.positions import Rotary, Unscaled

_THETA = 500_000.0
_SETTINGS = 'rope_parameters'


class _Olmo3(Decoder):
    def _read_layers(self, fields: Fields, count: int) -> tuple[Rotary, Sequence[LayerKind]]:
        full, sliding = self._read_rotaries(fields)
        found = [
            dataclasses.replace(kind, position=full if kind.window is None else sliding)
            for kind in self.layers.read(fields, count, full)
        ]
        whole = not fields.has(_SETTINGS)
        if whole and full.base != _THETA and any(kind.window is not None for kind in found):
            accepted = f'{_THETA:g}, or {_SETTINGS} with settings of both types of layers'
            raise fields.wrong('rope_theta', accepted)
        return full, found

    def _read_rotaries(self, fields: Fields) -> tuple[Rotary, Rotary]:
        """Of the layers that see every key, and of those with a window."""
        longest = self.defaults.longest
        if not fields.has(_SETTINGS):
            full = rope.read(fields, theta=_THETA, longest=longest)
            return full, Rotary(full.base)
        for key in ('rope_theta', 'rope_scaling'):
            fields.only(key, why=f'{_SETTINGS} has the settings of both types of layers')
        both = fields.section(_SETTINGS)
        both.known((kinds.FULL, kinds.SLIDING), 'the types of layers')
        settings = both.section(kinds.FULL), both.section(kinds.SLIDING)
        full, sliding = (
            rope.read(fields, theta=_THETA, longest=longest, settings=part) for part in settings
        )
        if sliding != Rotary(sliding.base):
            raise settings[1].wrong('rope_type', 'default')
        return full, sliding

    def _unwritable_positions(self, config: ModelConfig) -> str | None:
        both = _rotaries(config)
        if both is None or any(config.without_position):
            return (
                f'its layers have {config.describe_position()}, not one rotary encoding with a '
                'window and one without'
            )
        sliding = both[1]
        if not isinstance(sliding.scaling, Unscaled) or sliding.share != 1:
            return f'its layers with a window have {sliding.describe()}'
        reasons = (rope.unwritable(rotary, config.head_dim) for rotary in both)
        return kinds.several_windows(config) or next(filter(None, reasons), None)

    def _write_positions(self, config: ModelConfig, longest: int | None) -> dict[str, Any]:
        both = _rotaries(config)
        assert both is not None
        full, sliding = (rope.write(rotary, config.head_dim, longest) for rotary in both)
        if full['rope_theta'] == sliding['rope_theta'] == _THETA:
            return {**full, **self.layers.write(config)}
        settings = {
            name: {'rope_type': 'default', **(keys['rope_scaling'] or {})}
            | {'rope_theta': keys['rope_theta']}
            for name, keys in ((kinds.FULL, full), (kinds.SLIDING, sliding))
        }
        rest = {key: full[key] for key in full if key not in ('rope_theta', 'rope_scaling')}
        return {**rest, _SETTINGS: settings, **self.layers.write(config)}


def _rotaries(config: ModelConfig) -> tuple[Rotary, Rotary] | None:
    """Of the layers that see every key, and of those with a window, one of them for both where
    there are no others; None unless each is one rotary encoding."""
    full, sliding = (
        {kind.position for kind in config.kinds if (kind.window is None) == whole}
        for whole in (True, False)
    )
    found = full or sliding, sliding or {Rotary(_base_of(full))}
    if any(len(positions) > 1 for positions in found):
        return None
    first, second = (next(iter(positions)) for positions in found)
    if not isinstance(first, Rotary) or not isinstance(second, Rotary):
        return None
    return first, second


def _base_of(positions: set) -> float:
    return next((p.base for p in positions if isinstance(p, Rotary)), _THETA)


OLMO3 = _Olmo3(
    name='olmo3',
    architecture='Olmo3ForCausalLM',
    defaults=Defaults(longest=2048, theta=_THETA, epsilon=1e-5),
    layers=Interleaved(),
    biases={'attention_bias': ('qkv_bias', 'output_bias')},
    qk_norm=True,
    fixed={'block': 'post', 'qk_norm_over': 'projection'},
    notes={'sliding_window_pattern': (4,)},
)
