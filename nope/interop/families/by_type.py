"""Decoder families with RoPE by the type of layer. Layers with a window have one encoding. Layers
that see every key have another, which may be scaled.

Read are the settings of each type, of transformers 5,

    "rope_parameters": {"full_attention": {...}, "sliding_attention": {...}}

and those of transformers 4: `rope_theta` and `rope_scaling` of the layers without a window, and the
base of the others under a key of the family. Written are the second where they say all.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from nope.interop import rope_settings
from nope.interop.families import kinds
from nope.interop.families.decoder import Decoder
from nope.interop.fields import Fields
from nope.model import LayerKind, ModelConfig
from nope.positions import ByParts, RoPE, Unscaled

SETTINGS = 'rope_parameters'


def both_types(full: dict[str, Any], sliding: dict[str, Any]) -> dict[str, Any]:
    """Keys of transformers 5 for the encodings of both types of layers, as `rope_settings.write`
    has each."""
    settings = {
        kinds.FULL: rope_settings.in_one(full),
        kinds.SLIDING: rope_settings.in_one(sliding),
    }
    rest = {key: full[key] for key in full if key not in ('rope_theta', 'rope_scaling')}
    return {**rest, SETTINGS: settings}


@dataclasses.dataclass(eq=False)
class ByType(Decoder):
    """sliding_theta: the default base of layers with a window. sliding_key: its key in files of
    transformers 4; None if they have none."""

    sliding_theta: float = rope_settings.THETA
    sliding_key: str | None = None

    def _read_layers(
        self, fields: Fields, shape: Mapping[str, int]
    ) -> tuple[RoPE, Sequence[LayerKind]]:
        full, sliding = self._read_ropes(fields)
        found = [
            dataclasses.replace(kind, position=full if kind.window is None else sliding)
            for kind in self.layers.read(fields, shape['layers'], full)
        ]
        if self._unnamed(fields, full) and any(kind.window is not None for kind in found):
            # Stock takes its default for these layers.
            accepted = f'{sliding.base:g}, or {SETTINGS} with settings of both types of layers'
            raise fields.wrong('rope_theta', accepted)
        return full, found

    def _unnamed(self, fields: Fields, full: RoPE) -> bool:
        """Whether a file has another base than layers with a window have by default, and no place
        for theirs."""
        named = fields.has(SETTINGS) or self.sliding_key is not None
        return not named and full.base != self.sliding_theta

    def _read_ropes(self, fields: Fields) -> tuple[RoPE, RoPE]:
        """Of the layers that see every key, and of those with a window."""
        theta, longest = self.defaults.theta, self.defaults.longest
        if not fields.has(SETTINGS):
            base = self.sliding_theta
            if self.sliding_key is not None:
                base = fields.number(self.sliding_key, base, above=1.0)
            scaling = fields.section('rope_scaling')
            if not scaling.has('rope_type'):
                why = 'stock looks for rope_type alone in this class'
                scaling.only('type', 'default', why=why)
            _check_scaling(fields, scaling)
            return rope_settings.read(fields, theta=theta, longest=longest), RoPE(base)
        for key in filter(None, ('rope_theta', 'rope_scaling', self.sliding_key)):
            fields.only(key, why=f'{SETTINGS} has the settings of both types of layers')
        both = fields.section(SETTINGS)
        both.known((kinds.FULL, kinds.SLIDING), 'the types of layers')
        whole, windowed = both.section(kinds.FULL), both.section(kinds.SLIDING)
        _check_scaling(fields, whole)
        full = rope_settings.read(fields, theta=theta, longest=longest, settings=whole)
        sliding = rope_settings.read(
            fields, theta=self.sliding_theta, longest=longest, settings=windowed
        )
        if sliding != RoPE(sliding.base):
            raise windowed.wrong('rope_type', 'default')
        return full, sliding

    def _unwritable_positions(self, config: ModelConfig) -> str | None:
        both = self._ropes(config)
        if both is None or any(config.without_position):
            return (
                f'its layers have {config.describe_position()}, not RoPE of one kind with a '
                'window and one without'
            )
        full, sliding = both
        if isinstance(full.scaling, ByParts) and not full.scaling.truncate:
            return f'its layers without a window have {full.describe()} whose ramp is not truncated'
        if not isinstance(sliding.scaling, Unscaled) or sliding.share != 1:
            return f'its layers with a window have {sliding.describe()}'
        reasons = (rope_settings.unwritable(rope, config.head_dim) for rope in both)
        return kinds.several_windows(config) or next(filter(None, reasons), None)

    def _write_positions(self, config: ModelConfig, longest: int | None) -> dict[str, Any]:
        both = self._ropes(config)
        assert both is not None
        full, sliding = (rope_settings.write(rope, config.head_dim, longest) for rope in both)
        layers = self.layers.write(config)
        if self.sliding_key is not None:
            return {**full, self.sliding_key: sliding['rope_theta'], **layers}
        if full['rope_theta'] == sliding['rope_theta'] == self.sliding_theta:
            return {**full, **layers}
        return {**both_types(full, sliding), **layers}

    def _ropes(self, config: ModelConfig) -> tuple[RoPE, RoPE] | None:
        """The encodings of layers that see every key, and of those with a window. A type without
        layers has its default. None unless each is RoPE of one kind."""
        found = []
        for whole, theta in ((True, self.defaults.theta), (False, self.sliding_theta)):
            of_type = {kind.position for kind in config.kinds if (kind.window is None) == whole}
            only = of_type.pop() if of_type else RoPE(theta)
            if of_type or not isinstance(only, RoPE):
                return None
            found.append(only)
        return found[0], found[1]


def _check_scaling(fields: Fields, settings: Fields) -> None:
    """ValueError for settings that stock looks for elsewhere, and so never finds: an untruncated
    ramp of YaRN, and a length of pre-training outside the settings."""
    settings.only('truncate', True, why='stock truncates the ramp of one type of layers always')
    scaled = settings.values.get(settings.agreed('rope_type', 'type')) not in (None, 'default')
    if scaled and fields.has(rope_settings.ORIGINAL) and not settings.has(rope_settings.ORIGINAL):
        why = 'stock reads that of the settings alone in this class'
        fields.only(rope_settings.ORIGINAL, fields.values.get('max_position_embeddings'), why=why)
