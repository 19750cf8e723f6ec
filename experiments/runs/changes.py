"""Changes of a trained model that need no training, from an entry of `runs`: a law of lambda with a
given coefficient, another softmax temperature, heads silenced."""

from __future__ import annotations

import dataclasses

from experiments.config import Section
from experiments.runs import later, laws
from experiments.runs.spec import LawSpec, SilencedSpec, Source, TemperatureSpec
from nope.runtime.errors import one_of

LAW_FIELDS = ('init', 'nope', 'own_tokenizer', 'lam')
TEMPERATURE_FIELDS = ('init', 'model')
SILENCED_FIELDS = ('init', 'nope', 'own_tokenizer', 'without')
WITHOUT_WEIGHTS = 'none', 'entropy'  # of the values of `temperature`
LOCAL, WITHOUT = 'local', 'nope'  # heads with a position encoding, and those without


def law(entry: Section, init: Source) -> LawSpec:
    """The model that the entry starts from under a law; nothing is trained. ValueError where its
    lambda was set already."""
    section, head_dim = entry.below('lam').only(('law', 'coefficient')), init.model.head_dim
    weights = later.trained_weights(init)
    found = laws.read(section, weights.data, weights.typed.task, init.train_length, head_dim)
    laws.check_replaceable(entry, init)
    return LawSpec(init, *found)


def temperature(entry: Section, init: Source) -> TemperatureSpec:
    """The model that the entry starts from at the temperature of its `model`; nothing is trained.
    ValueError where it has none that can be exchanged."""
    changes = entry.below('model').only(('temperature',))
    if 'temperature' not in changes:
        raise changes.error('temperature', f'it is missing; {one_of(WITHOUT_WEIGHTS)}')
    wanted = changes['temperature']
    if wanted not in WITHOUT_WEIGHTS:
        rule = f'{one_of(WITHOUT_WEIGHTS)}; another one has weights, which are trained with a model'
        raise changes.error('temperature', rule)
    if init.model.temperature not in WITHOUT_WEIGHTS:
        raise entry.error(
            'init',
            f'it was trained with the temperature {init.model.temperature!r}, which no other can '
            'take the place of',
        )
    with changes.naming():
        dataclasses.replace(init.model, temperature=wanted)  # refused where it does not fit
    return TemperatureSpec(init, wanted)


def silenced(entry: Section, init: Source) -> SilencedSpec:
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
