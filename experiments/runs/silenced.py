"""Models with heads silenced, from an entry of `runs`: what a model does without them."""

from __future__ import annotations

from experiments.config import Section
from experiments.runs.spec import SilencedSpec, Source

FIELDS = ('init', 'nope', 'own_tokenizer', 'without')
LOCAL, WITHOUT = 'local', 'nope'  # heads with a position encoding, and those without


def from_entry(entry: Section, init: Source) -> SilencedSpec:
    """The model that the entry starts from without some of its heads; nothing is trained.
    ValueError for heads that there are not."""
    asked, model = entry['without'], init.model
    rule = (
        f"accepted: '{LOCAL}' (heads with a position encoding), '{WITHOUT}' (heads without), or "
        f'(layer, head) pairs up to ({model.attending[-1]}, {model.heads - 1}) of layers with '
        'attention'
    )
    heads = [(layer, head) for layer in model.attending for head in range(model.heads)]
    if asked in (LOCAL, WITHOUT):
        without = model.heads_without_position.reshape(-1) == (asked == WITHOUT)
        found = [head for head, chosen in zip(heads, without, strict=True) if chosen]
        if not found:
            raise entry.error('without', f'{model.describe_position()} has no such head; {rule}')
        return SilencedSpec(init, tuple(found))
    several = isinstance(asked, tuple | list) and asked
    pairs = [tuple(x) if isinstance(x, tuple | list) else x for x in asked] if several else []
    whole = all(type(n) is int for pair in pairs if isinstance(pair, tuple) for n in pair)
    if not pairs or not whole or any(pair not in heads for pair in pairs):
        raise entry.error('without', rule)
    return SilencedSpec(init, tuple(sorted(set(pairs))))
