"""Where a query looks for a key: heads that find it, parts of their weight, rows and table."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from experiments.figures import KINDS
from tests.experiments.figures.synthetic import INPUTS, LEAD, LOOK_MULTIPLES, measuring

GIVEN = INPUTS['key_attention']
ON_KEY = [1 / (1 + (128 * multiple - 1) * np.exp(-LEAD)) for multiple in LOOK_MULTIPLES]


def test_weights_are_of_each_seeds_own_head_that_finds_the_key() -> None:
    drawn = KINDS['key_attention'].draw(GIVEN)
    finders = {(r['seed'], r['layer'], r['head']) for r in drawn.rows if r['finds']}
    assert finders == {('seed0', 2, 1), ('seed1', 2, 2)}
    lines = drawn.markdown.splitlines()[2:6]
    for line, share, keys in zip(lines, ON_KEY, ('1.00', '1.00', '0.50', '0.00'), strict=True):
        parts = [share, (1 - share) / 2, (1 - share) / 8, 3 * (1 - share) / 8]
        assert line.split(' | ')[2:] == [
            keys,
            *(f'{p:.2f}' for p in parts[:3]),
            f'{parts[3]:.2f} |',
        ]


def test_a_panel_has_the_keys_repeated_and_below_every_head_of_every_seed() -> None:
    figure = KINDS['key_attention'].draw(GIVEN).figure
    top, bottom = figure.axes[0], figure.axes[2]
    assert top.get_title() == 'NoPE'
    np.testing.assert_allclose(top.lines[0].get_ydata(), [1, 1, 0.5, 0])
    edges = [np.unique(area.get_paths()[0].vertices[:, 1]).max() for area in top.collections]
    assert edges[-1] == pytest.approx(1) and edges[0] == pytest.approx(max(ON_KEY))
    assert len(bottom.lines) == 2 * 4 * 4 + 1
    highest = max(bottom.lines[:-1], key=lambda line: max(line.get_ydata()))
    np.testing.assert_allclose(highest.get_ydata(), ON_KEY)


def test_records_without_prompts_inside_the_training_length_are_refused() -> None:
    long = {
        name: dataclasses.replace(
            r, coordinates={**r.coordinates, 'length': [256, 512, 1024, 2048]}
        )
        for name, r in GIVEN.records.items()
    }
    with pytest.raises(ValueError, match='are chosen by some of up to L = 128'):
        KINDS['key_attention'].draw(dataclasses.replace(GIVEN, records=long))


def test_seeds_that_saw_other_tokens_are_refused() -> None:
    name, record = next(iter(GIVEN.records.items()))
    other = {**GIVEN.records, name: measuring(record, keys=record['keys'] + 1)}
    with pytest.raises(ValueError, match='differ in the tokens seen'):
        KINDS['key_attention'].draw(dataclasses.replace(GIVEN, records=other))
