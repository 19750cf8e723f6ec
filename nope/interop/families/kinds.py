"""Layer kinds of a model: layer by layer, and as fields of `ModelConfig`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nope.interop.fields import Fields
from nope.model import LayerKind, ModelConfig
from nope.positions import NoPE, RoPE

SLIDING = 'sliding_attention'
FULL = 'full_attention'


def of_layers(config: ModelConfig) -> list[LayerKind]:
    """The kind of every layer."""
    found = config.kinds
    return [found[index] for index in config.kind_indices]


def arranged(layers: Sequence[LayerKind]) -> dict[str, Any]:
    """The fields of `ModelConfig` for layers of these kinds: `position` and `window` where these
    say all of each, else the shortest `pattern`."""
    names = {kind: name for name, kind in enumerate(dict.fromkeys(layers))}
    named = [names[kind] for kind in layers]
    period = next(p for p in range(1, len(named) + 1) if named[p:] == named[: len(named) - p])
    if period == 1 and layers[0] == LayerKind(layers[0].position, layers[0].window):
        return {'position': layers[0].position, 'window': layers[0].window}
    return {'pattern': tuple(layers[:period])}


def rope_of(config: ModelConfig) -> RoPE | None:
    """The encoding of the layers that have one, if that is RoPE of one kind for all."""
    found = {kind.position for kind in config.kinds} - {NoPE()}
    only = found.pop() if len(found) == 1 else None
    return only if isinstance(only, RoPE) else None


def windows_of(config: ModelConfig) -> list[int]:
    """The different windows of the layers that have one."""
    return sorted({kind.window for kind in config.kinds if kind.window is not None})


def several_windows(config: ModelConfig) -> str | None:
    """Reason why no config can hold the layers' windows; None for one window or none."""
    windows = windows_of(config)
    return f'its layers have several windows, {windows}' if len(windows) > 1 else None


def nowhere_written(config: ModelConfig) -> str | None:
    """Reason why no family's config can hold the kinds of layers; None where one may."""
    if len(set(config.layers_with_qk_norm.tolist())) > 1:
        return 'some of its layers have no QK-norm'
    if config.position_range is not None:
        return f'its positions are spread over {config.position_range}'
    if config.chunked:
        return f'its layers attend inside chunks ({config.describe_position()})'
    return None


def not_rope(config: ModelConfig) -> str | None:
    """Reason why the layers do not share RoPE of one kind; None where they do."""
    if any(config.without_position) or rope_of(config) is None:
        return f'its layers have {config.describe_position()}, not RoPE of one kind'
    return None


def read_windows(
    fields: Fields, layers: int, sliding: Sequence[bool], window: int | None
) -> list[int | None]:
    """The window of every layer: by `layer_types` where the file has them, else `window` where
    `sliding` says so. window: None where the config has none, and then no layer may slide."""
    if fields.has('layer_types'):
        types = fields.choices('layer_types', (FULL, SLIDING))
        if len(types) != layers:
            raise fields.wrong('layer_types', f'one for each of {layers} layers')
        if SLIDING in types and window is None:
            accepted = f'{FULL} only, as use_sliding_window and sliding_window make no window'
            raise fields.wrong('layer_types', accepted)
        sliding = [kind == SLIDING for kind in types]
    return [window if slides else None for slides in sliding]


def read_window(fields: Fields, default: int | None) -> int | None:
    """`sliding_window` of the classes that have `use_sliding_window`; None for none."""
    if not fields.flag('use_sliding_window', False):
        return None
    if 'sliding_window' in fields.values or default is None:
        return fields.optional_length('sliding_window')
    return default


def write_windows(config: ModelConfig) -> dict[str, Any]:
    """The keys that say which layers see how far."""
    windows = windows_of(config)
    if not windows:
        return {'use_sliding_window': False, 'sliding_window': None}
    return {
        'use_sliding_window': True,
        'sliding_window': windows[0],
        'layer_types': types_of(config),
    }


def types_of(config: ModelConfig) -> list[str]:
    """`layer_types`: of every layer, whether it has a window."""
    return [FULL if kind.window is None else SLIDING for kind in of_layers(config)]
