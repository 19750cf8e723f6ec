"""SmolLM3ForCausalLM: layers with and without RoPE, with and without a window.

The one stock class that computes models without any position encoding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nope.interop.families import kinds
from nope.interop.families.decoder import Decoder, Defaults
from nope.interop.fields import MAX_LAYERS, Fields
from nope.model import LayerKind, ModelConfig
from nope.positions import NoPE, RoPE


class _SomeRoPE:
    """`no_rope_layers` has 1 for a layer with RoPE and 0 for one without; where it is
    left out, every `no_rope_layer_interval`-th layer has none. Windows are those of `layer_types`;
    where it is left out, of the layers without RoPE."""

    keys = (
        *('use_sliding_window', 'sliding_window', 'layer_types'),
        *('no_rope_layers', 'no_rope_layer_interval'),
    )

    def read(self, fields: Fields, layers: int, rope: RoPE) -> Sequence[LayerKind]:
        if fields.has('no_rope_layers'):
            given = fields.choices('no_rope_layers', (0, 1))
            if len(given) < layers:
                rule = f'at least one 0 or 1 for each of {layers} layers'
                raise fields.wrong('no_rope_layers', rule)
            turning = [turns == 1 for turns in given[:layers]]
        else:
            interval = fields.integer('no_rope_layer_interval', MAX_LAYERS, 4)
            turning = [(layer + 1) % interval != 0 for layer in range(layers)]
        window = kinds.read_window(fields, default=None)
        windows = kinds.read_windows(fields, layers, [not turns for turns in turning], window)
        return [
            LayerKind(rope if turns else NoPE(), window)
            for turns, window in zip(turning, windows, strict=True)
        ]

    def unwritable(self, config: ModelConfig) -> str | None:
        others = {kind.position for kind in config.kinds} - {NoPE()}
        if others and kinds.rope_of(config) is None:
            return f'its layers have {config.describe_position()}, not none or RoPE of one kind'
        return kinds.several_windows(config)

    def write(self, config: ModelConfig) -> dict[str, Any]:
        turning = [int(kind.position != NoPE()) for kind in kinds.of_layers(config)]
        return {'no_rope_layers': turning, **kinds.write_windows(config)}


SMOLLM3 = Decoder(
    name='smollm3',
    architecture='SmolLM3ForCausalLM',
    defaults=Defaults(
        longest=32_768,
        kv_heads=4,
        tied=True,
        theta=2_000_000.0,
        tokens={'bos_token_id': 128_000, 'eos_token_id': 128_001, 'pad_token_id': 128_004},
    ),
    layers=_SomeRoPE(),
    biases={'attention_bias': ('qkv_bias', 'output_bias'), 'mlp_bias': ('mlp_bias',)},
)
