"""Layer kinds of families with a window in all layers but every fourth, or so."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

from nope.interop.families import kinds
from nope.interop.fields import MAX_LAYERS, MAX_LENGTH, Fields
from nope.model import LayerKind, ModelConfig
from nope.positions import NoPE, RoPE

_INTERVAL = 'sliding_window_pattern'


@dataclasses.dataclass(frozen=True)
class Interleaved:
    """`layer_types` says which layers have the window, `sliding_window` how long it is (`window` by
    default). Without `layer_types` all but every `sliding_window_pattern`-th have it (`interval` by
    default). All layers turn."""

    interval: int = 4
    window: int = 4096
    keys: ClassVar[tuple[str, ...]] = ('sliding_window', 'layer_types', _INTERVAL)

    def read(self, fields: Fields, layers: int, rope: RoPE) -> Sequence[LayerKind]:
        window = self._window(fields)
        windows = kinds.read_windows(fields, layers, self._sliding(fields, layers), window)
        return [self._kind(window, rope) for window in windows]

    def unwritable(self, config: ModelConfig) -> str | None:
        return kinds.not_rope(config) or kinds.several_windows(config)

    def write(self, config: ModelConfig) -> dict[str, Any]:
        # Stock makes the mask of a window even where no layer has one.
        window = next(iter(kinds.windows_of(config)), self.window)
        return {'sliding_window': window, 'layer_types': kinds.types_of(config)}

    def _window(self, fields: Fields) -> int | None:
        """The window; ValueError for null, of which stock makes no mask."""
        if 'sliding_window' not in fields.values:
            return self.window
        return fields.integer('sliding_window', MAX_LENGTH)

    def _sliding(self, fields: Fields, layers: int) -> list[bool]:
        """Whether each layer has the window where `layer_types` does not say it."""
        if fields.has('layer_types'):
            return [False] * layers
        interval = fields.integer(_INTERVAL, MAX_LAYERS, self.interval)
        return [(layer + 1) % interval != 0 for layer in range(layers)]

    def _kind(self, window: int | None, rope: RoPE) -> LayerKind:
        return LayerKind(rope, window)


class Hybrid(Interleaved):
    """Layers with a window turn; those that see every key have no position encoding."""

    def unwritable(self, config: ModelConfig) -> str | None:
        for kind in config.kinds:
            if (kind.window is None) != (kind.position == NoPE()):
                return (
                    f'its layers have {config.describe_position()}, where those with RoPE '
                    'have a window, and the others neither'
                )
        plain = all(kind.position == NoPE() for kind in config.kinds)
        if not plain and kinds.rope_of(config) is None:
            return f'its layers have {config.describe_position()}, not RoPE of one kind'
        return kinds.several_windows(config)

    def _kind(self, window: int | None, rope: RoPE) -> LayerKind:
        return LayerKind() if window is None else LayerKind(rope, window)
