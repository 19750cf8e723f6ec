"""Claim, numbers and caption of the figure of temperatures on tasks."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.figures import KINDS
from experiments.figures.claims.decided import Decided
from experiments.figures.given import FigureInput
from tests.experiments.figures import synthetic


def claim(given: FigureInput) -> Decided:
    (found,) = KINDS['task_lambda'].draw(given).claims
    return found


@pytest.mark.parametrize(
    ('gain', 'holds'), [(0.2, True), (0.06, True), (0.04, False), (0.0, False), (-0.2, False)]
)
def test_a_searched_temperature_must_gain_five_points(gain: float, holds: bool) -> None:
    found = claim(synthetic.lambda_input(gain=gain))
    assert found.holds is holds
    measured = found.measured['HeadScale - NoPE']
    assert measured['mean'] == pytest.approx(100 * gain)


def test_only_lengths_beyond_the_search_count() -> None:
    given = synthetic.lambda_input(seeds=1)
    name = 'rsc_1/0'
    records = given.records[name]
    accuracy = np.where(records.coordinates['length'] > 6, 0.0, 1.0)  # L is 4
    worse = synthetic.measuring(records, accuracy=accuracy)
    found = claim(synthetic.with_records(given, **{name: worse}))
    assert found.measured['HeadScale - NoPE']['mean'] == pytest.approx((-30 + 20 + 20) / 3)
    for row in KINDS['task_lambda'].draw(given).rows:
        assert row['longest'] == 4
        if row['label'] == 'HeadScale' and row['task'] == 'rsc':
            assert row['accuracy_beyond_search'] == pytest.approx(0.5)


def test_longer_examples_and_a_search_are_needed() -> None:
    given = synthetic.lambda_input()
    with pytest.raises(ValueError, match="no length of 'rsc' beyond 8, where searches end"):
        claim(stating(given, 'rsc_1/0', longest_read=8))
    with pytest.raises(ValueError, match="run 'rsc_1/0': no longest_read"):
        claim(stating(given, 'rsc_1/0', longest_read=None))
    assert claim(stating(given, 'rsc_0/0', longest_read=None)) == claim(given)  # it has no search
    curves = [curve | {'role': 'other'} for curve in given.options['curves']]
    assert (
        claim(synthetic.with_options(given, curves=curves))
        .measured['missing']
        .startswith('there is no')
    )


def stating(given: FigureInput, name: str, **facts: object) -> FigureInput:
    return synthetic.with_records(given, **{name: synthetic.stating(given.records[name], **facts)})


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        ({'curves': [{'group': 'a', 'label': 'b', 'role': 'first'}]}, "'first'"),
        (
            {
                'curves': [
                    {'group': 'a', 'label': 'b', 'role': 'base'},
                    {'group': 'c', 'label': 'b', 'role': 'other'},
                ]
            },
            "'b' has the roles 'base' and 'other'; accepted: one for all tasks",
        ),
        (
            {'curves': [{'group': 'a', 'label': x, 'role': 'base'} for x in 'bc']},
            "the group 'a' twice",
        ),
    ],
)
def test_options_are_checked(options: dict[str, object], message: str) -> None:
    given = synthetic.lambda_input()
    with pytest.raises(ValueError, match=message):
        KINDS['task_lambda'].required('f', {**given.options, **options})


def test_the_caption_says_what_lambda_was() -> None:
    caption = KINDS['task_lambda'].draw(synthetic.lambda_input()).caption
    assert 'dotted: longest examples of the searches (rsc 6; rdc 6; scan 6)' in caption
    assert 'Lambda of NoPE: 1; HeadScale: 1; RoPE: 1.' in caption


def test_the_caption_has_the_lambdas_of_all_seeds() -> None:
    given = stating(synthetic.lambda_input(), 'rsc_1/1', lam='HeadScale at 9')
    assert ' / HeadScale at 9' in KINDS['task_lambda'].draw(given).caption
