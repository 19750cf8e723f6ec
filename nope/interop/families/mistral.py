"""MistralForCausalLM: RoPE and one window in every layer, or none."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

from nope.interop.families import kinds
from nope.interop.families.decoder import Decoder, Defaults
from nope.interop.fields import Fields
from nope.model import LayerKind, ModelConfig
from nope.positions import RoPE


@dataclasses.dataclass(frozen=True)
class OneWindow:
    """`sliding_window`: of all layers; null for none, `default` where it is left out."""

    default: int | None
    keys: ClassVar[tuple[str, ...]] = ('sliding_window', 'layer_types')

    def read(self, fields: Fields, layers: int, rope: RoPE) -> Sequence[LayerKind]:
        window = fields.optional_length('sliding_window')
        if 'sliding_window' not in fields.values:
            window = self.default
        if fields.has('layer_types'):
            fields.choices('layer_types', (kinds.FULL if window is None else kinds.SLIDING,))
        return [LayerKind(rope, window)] * layers

    def unwritable(self, config: ModelConfig) -> str | None:
        if len({kind.window for kind in config.kinds}) > 1:
            return 'its layers differ in how far they see'
        return kinds.not_rope(config)

    def write(self, config: ModelConfig) -> dict[str, Any]:
        return {'sliding_window': config.kinds[0].window}


MISTRAL = Decoder(
    name='mistral',
    architecture='MistralForCausalLM',
    defaults=Defaults(longest=131_072, kv_heads=8, tokens={'bos_token_id': 1, 'eos_token_id': 2}),
    layers=OneWindow(default=4096),
)
