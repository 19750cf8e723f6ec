"""GraniteSWAForCausalLM: Granite with attention sinks, windows in three of four layers, and for
every layer a RoPE base, which is 0 in layers without position encoding.

    "layer_types": ["full_attention", "sliding_attention", ...], "sliding_window": 128,
    "layer_rope_theta": [0, 10000.0, ...]
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from nope.interop import rope_settings
from nope.interop.families import kinds
from nope.interop.families.decoder import Defaults
from nope.interop.families.granite import BIASES, FREE, Granite
from nope.interop.families.interleaved import Interleaved
from nope.interop.fields import Fields
from nope.model import LayerKind, ModelConfig
from nope.positions import NoPE, RoPE

THETAS = 'layer_rope_theta'


class _Windows(Interleaved):
    """Without `layer_types` all but the first layer and every fourth after it have the window."""

    keys: ClassVar[tuple[str, ...]] = ('sliding_window', 'layer_types', THETAS)

    def unwritable(self, config: ModelConfig) -> str | None:
        return kinds.several_windows(config)

    def _sliding(self, fields: Fields, layers: int) -> list[bool]:
        return [layer % 4 != 0 for layer in range(layers)]


class _GraniteSWA(Granite):
    def _read_layers(
        self, fields: Fields, shape: Mapping[str, int]
    ) -> tuple[RoPE, Sequence[LayerKind]]:
        rope, found = super()._read_layers(fields, shape)
        return rope, with_bases(fields, rope, found)

    def _unwritable_positions(self, config: ModelConfig) -> str | None:
        ropes = _ropes(config)
        same = {dataclasses.replace(r, base=2.0) for r in ropes if isinstance(r, RoPE)}
        if not all(isinstance(r, RoPE) for r in ropes) or len(same) > 1:
            return f'its layers have {config.describe_position()}, not one rule of RoPE or none'
        reasons = (
            rope_settings.unwritable(r, config.head_dim) for r in ropes if isinstance(r, RoPE)
        )
        return self.layers.unwritable(config) or next(filter(None, reasons), None)

    def _write_positions(self, config: ModelConfig, longest: int | None) -> dict[str, Any]:
        shared = next(iter(_ropes(config)), RoPE(self.defaults.theta))
        assert isinstance(shared, RoPE)
        bases = [
            rope_settings.write(kind.position, config.head_dim, longest)['rope_theta']
            if isinstance(kind.position, RoPE)
            else 0
            for kind in kinds.of_layers(config)
        ]
        keys = rope_settings.write(shared, config.head_dim, longest)
        return {**keys, **self.layers.write(config), THETAS: bases}


def with_bases(fields: Fields, rope: RoPE, found: Sequence[LayerKind]) -> Sequence[LayerKind]:
    """The kinds of layers under the RoPE base of each, where the file has them."""
    if not fields.has(THETAS):
        return found
    bases = fields.numbers(THETAS, zero=True)
    if len(bases) != len(found):
        raise fields.wrong(THETAS, f'a number for each of {len(found)} layers')
    if any(0 < base <= 1 for base in bases):
        raise fields.wrong(THETAS, 'bases above 1, or 0 for no position encoding')
    return [
        dataclasses.replace(kind, position=dataclasses.replace(rope, base=base) if base else NoPE())
        for kind, base in zip(found, bases, strict=True)
    ]


def _ropes(config: ModelConfig) -> list[Any]:
    """The different encodings of layers that have one."""
    return [p for p in dict.fromkeys(kind.position for kind in config.kinds) if p != NoPE()]


GRANITE_SWA = _GraniteSWA(
    name='granite_swa',
    architecture='GraniteSWAForCausalLM',
    defaults=Defaults(
        longest=8192,
        kv_heads=4,
        tied=True,
        epsilon=1e-5,
        tokens={'bos_token_id': 100_257, 'eos_token_id': 100_257},
    ),
    layers=_Windows(window=128),
    biases=BIASES,
    fixed={'sinks': True},
    free=FREE,
)
