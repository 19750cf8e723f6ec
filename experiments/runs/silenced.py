"""Models with heads silenced, from an entry of `runs`: what a model does without them."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.config import Section
from experiments.runs.spec import SilencedSpec, Source
from nope.model import ModelConfig

FIELDS = ('init', 'nope', 'own_tokenizer', 'without')
LOCAL, WITHOUT = 'local', 'nope'  # heads with a position encoding, and those without


def from_entry(entry: Section, init: Source) -> SilencedSpec:
    """The model that the entry starts from without some of its heads; nothing is trained."""
    return SilencedSpec(init, _heads(entry, init.model))


def _heads(entry: Section, model: ModelConfig) -> tuple[tuple[int, int], ...]:
    """Layers and heads that `without` names, ascending. ValueError for ones that there are not."""
    asked: Any = entry['without']
    rule = (
        f"accepted: '{LOCAL}' (heads with a position encoding), '{WITHOUT}' (heads without), or "
        f'(layer, head) pairs up to ({model.layers - 1}, {model.heads - 1})'
    )
    without_LN = model.heads_without_position
    if asked in (LOCAL, WITHOUT):
        found = [(int(x), int(y)) for x, y in np.argwhere(without_LN == (asked == WITHOUT))]
        if not found:
            raise entry.error('without', f'{model.describe_position()} has no such head; {rule}')
        return tuple(found)
    pairs = asked if isinstance(asked, tuple | list) else ()
    for pair in pairs:
        if not _is_head(pair, model):
            raise entry.error('without', rule)
    if not pairs:
        raise entry.error('without', rule)
    return tuple(sorted({(layer, head) for layer, head in pairs}))


def _is_head(pair: Any, model: ModelConfig) -> bool:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        return False
    ranges = zip(pair, (model.layers, model.heads), strict=True)
    return all(type(value) is int and 0 <= value < most for value, most in ranges)
