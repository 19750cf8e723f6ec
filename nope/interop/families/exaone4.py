"""Exaone4ForCausalLM: norms behind attention and MLP, QK-norm of each head; in the larger models
layers with a window turn and the others have no position encoding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nope.interop.families import kinds
from nope.interop.families.decoder import Decoder, Defaults
from nope.interop.families.interleaved import Hybrid
from nope.interop.fields import Fields
from nope.model import LayerKind, ModelConfig
from nope.positions import RoPE


class _HybridOrRoPE(Hybrid):
    """`sliding_window` null: RoPE in every layer, every key seen."""

    def read(self, fields: Fields, layers: int, rope: RoPE) -> Sequence[LayerKind]:
        if 'sliding_window' not in fields.values or fields.has('sliding_window'):
            return super().read(fields, layers, rope)
        kinds.read_windows(fields, layers, [], None)  # checks layer_types
        return [LayerKind(rope)] * layers

    def unwritable(self, config: ModelConfig) -> str | None:
        return kinds.not_rope(config) if _whole(config) else super().unwritable(config)

    def write(self, config: ModelConfig) -> dict[str, Any]:
        found = super().write(config)
        return {**found, 'sliding_window': None} if _whole(config) else found


def _whole(config: ModelConfig) -> bool:
    """Whether all layers turn and none has a window."""
    return not any(config.without_position) and not kinds.windows_of(config)


EXAONE4 = Decoder(
    name='exaone4',
    architecture='Exaone4ForCausalLM',
    defaults=Defaults(
        longest=2048, kv_heads=32, epsilon=1e-5, tokens={'bos_token_id': 0, 'eos_token_id': 2}
    ),
    layers=_HybridOrRoPE(),
    qk_norm=True,
    fixed={'block': 'post'},
)
