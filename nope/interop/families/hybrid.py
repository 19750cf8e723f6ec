"""Layer kinds of hybrid families: layers with a window turn, layers that see every key do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nope.interop.families import kinds
from nope.interop.fields import MAX_LAYERS, MAX_LENGTH, Fields
from nope.model import LayerKind, ModelConfig
from nope.positions import NoPE, Rotary

_INTERVAL = 'sliding_window_pattern'


class Hybrid:
    """`layer_types` says which layers have the window of `sliding_window` (4096 where it is left
    out) and rotary positions; the others have neither. Where it is left out, every
    `sliding_window_pattern`-th layer is one of the others, every fourth without that key too."""

    keys: tuple[str, ...] = ('sliding_window', 'layer_types', _INTERVAL)

    def read(self, fields: Fields, layers: int, rotary: Rotary) -> Sequence[LayerKind]:
        window = self._window(fields)
        windows = kinds.read_windows(fields, layers, self._sliding(fields, layers), window)
        return [self._kind(window, rotary) for window in windows]

    def unwritable(self, config: ModelConfig) -> str | None:
        for kind in config.kinds:
            if (kind.window is None) != (kind.position == NoPE()):
                return (
                    f'its layers have {config.describe_position()}, where those with rotary '
                    'positions have a window, and the others neither'
                )
        if not all(config.without_position) and kinds.rotary_of(config) is None:
            return f'its layers have {config.describe_position()}, not one rotary encoding'
        return kinds.several_windows(config)

    def write(self, config: ModelConfig) -> dict[str, Any]:
        # Stock makes the mask of a window even where no layer has one.
        window = next(iter(kinds.windows_of(config)), 4096)
        return {'sliding_window': window, 'layer_types': kinds.types_of(config)}

    def _window(self, fields: Fields) -> int:
        """The window. Stock would leave layers of null unrotated, or not run at all."""
        if 'sliding_window' not in fields.values:
            return 4096
        return fields.integer('sliding_window', MAX_LENGTH)

    def _sliding(self, fields: Fields, layers: int) -> list[bool]:
        """Of every layer, whether it has the window, for files without `layer_types`."""
        if fields.has('layer_types'):
            return [False] * layers
        interval = fields.integer(_INTERVAL, MAX_LAYERS, 4)
        return [(layer + 1) % interval != 0 for layer in range(layers)]

    def _kind(self, window: int | None, rotary: Rotary) -> LayerKind:
        return LayerKind() if window is None else LayerKind(rotary, window)
