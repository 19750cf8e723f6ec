"""Qwen2ForCausalLM: biases of queries, keys and values; windows in some layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nope.interop.families import kinds
from nope.interop.families.decoder import Decoder, Defaults
from nope.interop.fields import MAX_LAYERS, Fields
from nope.model import LayerKind, ModelConfig
from nope.positions import RoPE


class Windowed:
    """RoPE in all layers, windows in some: `layer_types` says in which; where it is left out, in
    those from `max_window_layers` on."""

    keys = ('use_sliding_window', 'sliding_window', 'layer_types')

    def read(self, fields: Fields, layers: int, rope: RoPE) -> Sequence[LayerKind]:
        window = kinds.read_window(fields, default=4096)
        first = fields.integer('max_window_layers', MAX_LAYERS, 28, least=0)
        windows = kinds.read_windows(fields, layers, [i >= first for i in range(layers)], window)
        return [LayerKind(rope, window) for window in windows]

    def unwritable(self, config: ModelConfig) -> str | None:
        return kinds.not_rope(config) or kinds.several_windows(config)

    def write(self, config: ModelConfig) -> dict[str, Any]:
        # Versions that know no layer_types go by the number of layers before the first window.
        windows = [kind.window is not None for kind in kinds.of_layers(config)]
        first = windows.index(True) if any(windows) else config.layers
        return {**kinds.write_windows(config), 'max_window_layers': first}


QWEN2 = Decoder(
    name='qwen2',
    architecture='Qwen2ForCausalLM',
    defaults=Defaults(longest=32_768, kv_heads=32),
    layers=Windowed(),
    always=('qkv_bias',),
)
