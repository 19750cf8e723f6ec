"""Kinds of layers: what may differ between the layers of one model."""

from __future__ import annotations

import dataclasses

from nope.identity import added_later, none_was
from nope.positions import NoPE, Position
from nope.runtime.errors import FieldError


@dataclasses.dataclass(frozen=True)
class LayerKind:
    """Kind of a layer: its position encoding, how far it sees, and whether it has QK-norm.

    window: keys a query sees, itself included; None for all before it.
    chunk: a query at position i sees the keys before it that have floor(i / chunk) in common with
        it, as in the local layers of Llama 4; None for all. A layer has a window or chunks.
    qk_norm: False for a layer without the QK-norm that the model has; None for what the model says.
    """

    position: Position = NoPE()
    window: int | None = none_was(0)
    qk_norm: bool | None = added_later(None)
    chunk: int | None = added_later(None)

    def __post_init__(self) -> None:
        if self.window is not None and not 1 <= self.window <= 2**30:
            raise FieldError(
                'window', self.window, 'accepted: 1 to 2**30, or None for all keys before a query'
            )
        if self.chunk is not None and not 1 <= self.chunk <= 2**30:
            raise FieldError('chunk', self.chunk, 'accepted: 1 to 2**30, or None for no chunks')
        if self.chunk is not None and self.window is not None:
            rule = f'window is {self.window}; accepted is one of them, the other None'
            raise FieldError('chunk', self.chunk, rule)

    def describe(self) -> str:
        window = '' if self.window is None else f', window {self.window}'
        chunk = '' if self.chunk is None else f', chunks of {self.chunk}'
        norm = ', no QK-norm' if self.qk_norm is False else ''
        return self.position.describe() + window + chunk + norm
