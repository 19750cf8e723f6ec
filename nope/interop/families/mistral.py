"""MistralForCausalLM: rotary positions and one window in every layer, or none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nope.interop.families import kinds
from nope.interop.families.decoder import Decoder, Defaults
from nope.interop.fields import MAX_LENGTH, Fields
from nope.model import LayerKind, ModelConfig
from nope.positions import Rotary


class _OneWindow:
    """`sliding_window`: of all layers; null for none, 4096 where it is left out."""

    keys = ('sliding_window', 'layer_types')

    def read(self, fields: Fields, layers: int, rotary: Rotary) -> Sequence[LayerKind]:
        window = fields.optional_integer('sliding_window', MAX_LENGTH)
        if 'sliding_window' not in fields.values:
            window = 4096
        if fields.has('layer_types'):
            fields.choices('layer_types', (kinds.FULL if window is None else kinds.SLIDING,))
        return [LayerKind(rotary, window)] * layers

    def unwritable(self, config: ModelConfig) -> str | None:
        if len({kind.window for kind in config.kinds}) > 1:
            return 'its layers differ in how far they see'
        return kinds.not_rotary(config)

    def write(self, config: ModelConfig) -> dict[str, Any]:
        return {'sliding_window': config.kinds[0].window}


MISTRAL = Decoder(
    name='mistral',
    architecture='MistralForCausalLM',
    defaults=Defaults(longest=131_072, kv_heads=8),
    layers=_OneWindow(),
)
