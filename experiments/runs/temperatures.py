"""Softmax temperature of a trained model that needs no training, from an entry of `runs`."""

from __future__ import annotations

import dataclasses

from experiments.config import Section
from experiments.runs.spec import Source, TemperatureSpec
from nope.runtime.errors import one_of

FIELDS = ('init', 'model')
WITHOUT_WEIGHTS = 'none', 'entropy'  # of the values of `temperature`


def from_entry(entry: Section, init: Source) -> TemperatureSpec:
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
