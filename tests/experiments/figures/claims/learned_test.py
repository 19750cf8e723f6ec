"""No claim holds by ignorance: the floor below which a model must be, inside L."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from experiments.figures import KINDS, FigureInput
from experiments.figures.claims.learned import inside, unlearned
from nope.records import FLOOR, INSIDE, Measure, Records
from tests.experiments.figures.synthetic import INPUTS

MODEL = {'train_length': 4, 'run_id': 'a', 'model': 'NoPE'}


def of(name, axes, values, places, **facts):
    axis = axes[-1]
    return Records(
        {**MODEL, **facts},
        {name: Measure(np.array(values), axes, 'nats')},
        {axis: np.array(places)},
    )


@pytest.mark.parametrize(
    ('records', 'expected'),
    [
        (of('loss', ('position',), [5.0, 3, 2, 2, 9], [1, 2, 3, 4, 5]), 3.0),
        (of('loss', ('multiplier', 'position'), [[4.0, 2], [2, 2]], [1, 2]), 2.0),
        (of('loss_window', ('length',), [3.0, 2.5, 1], [2, 4, 8]), 2.5),
        (of('loss', ('length',), [3.0, 1], [8, 16]), None),  # none inside
        (of('accuracy', ('length',), [3.0], [4]), None),
        (of('accuracy', ('length',), [3.0], [4], **{INSIDE: 1.5}), 1.5),
    ],
)
def test_the_loss_inside_the_training_length(records, expected):
    assert inside(records) == expected


def test_a_training_has_learned_where_one_of_its_records_is_below_the_floor():
    good, bad = ({FLOOR: 3.0, 'trained_id': x} for x in ('one', 'two'))
    window = ('loss_window', ('length',))
    records = [
        of(*window, [2.0], [4], **good),
        of(*window, [9.0], [4], **good),  # as extended, which fails
        of(*window, [3.0], [4], **bad),
        of(*window, [9.0], [4]),  # whose floor is not known
    ]
    assert unlearned(records[:2]) == unlearned(records[3:]) == []
    assert unlearned(records) == ['NoPE: loss 3, floor 3 nats']


def floored(given: FigureInput, floor: float) -> FigureInput:
    records = {
        name: dataclasses.replace(r, attributes={**r.attributes, FLOOR: floor})
        for name, r in given.records.items()
    }
    return dataclasses.replace(given, records=records)


def test_what_holds_is_undecided_where_nothing_was_learned():
    given = INPUTS['entropy_loss']
    kind = KINDS['entropy_loss']
    before = {c.id: c for c in kind.draw(floored(given, 9.0)).claims}
    after = {c.id: c for c in kind.draw(floored(given, 0.01)).claims}
    assert any(c.holds for c in before.values())
    for name, claim in before.items():
        if claim.verdict in ('holds', 'does not hold'):
            assert (after[name].holds, after[name].verdict) == (None, 'undecided')
            assert 'nats' in after[name].measured['learned_nothing'][0]
        else:
            assert after[name] == claim
