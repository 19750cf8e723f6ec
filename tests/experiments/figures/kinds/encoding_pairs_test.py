"""Encodings without positions against those that are given them: pairs, leads, a claim."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from experiments.figures import KINDS, FigureInput
from experiments.figures.kinds.encoding_pairs import Pair, pairs
from experiments.figures.read.encoding_tasks import released, scores
from tests.experiments.figures.synthetic import (
    encoding_curves,
    encoding_runs,
    stating,
    with_options,
    with_records,
)

# RoPE, ALiBi, T5, APE, NoPE: NoPE is ahead by 0.1 of ALiBi on one task, behind it on the other.
TASKS = {'rsc': (0.2, 0.6, 0.5, 0.0, 0.7), 'mc': (0.1, 0.5, 0.3, 0.0, 0.4)}


def given(
    tasks: Any = TASKS, seeds: int = 3, without: tuple[str, ...] = ('NoPE',), **more: Any
) -> FigureInput:
    options = {'curves': encoding_curves(tasks), 'without': without}
    return FigureInput('f', encoding_runs(seeds, tasks, **more), options)


def compared(found: FigureInput) -> dict[tuple[str, str], Pair]:
    some = pairs(scores.read_all(found), found.options['without'])
    return {(pair.without, pair.told): pair for pair in some}


def claim(*args: Any, **how: Any) -> Any:
    (found,) = KINDS['encoding_pairs'].draw(given(*args, **how)).claims
    return found


def test_every_encoding_without_positions_meets_every_other_one() -> None:
    found = compared(given(without=('NoPE', 'ALiBi')))
    others = ('RoPE', 'T5 bias', 'sine')
    assert list(found) == [(one, told) for one in ('NoPE', 'ALiBi') for told in others]
    pair = found['ALiBi', 'T5 bias']
    assert pair.tasks == ('rsc', 'mc') and pair.seeds == ('0', '1', '2')
    np.testing.assert_allclose(pair.leads, [[0.1] * 3, [0.2] * 3], atol=1e-9)
    assert pair.names[1][2] == ('mc_1/2', 'mc_2/2')


def test_released_numbers_are_those_of_both_on_the_task() -> None:
    pair = compared(given())['NoPE', 'T5 bias']
    (nope, t5) = (released.beyond('mc', name) for name in ('NoPE', 'T5'))
    assert nope is not None and t5 is not None
    np.testing.assert_allclose(pair.released('mc'), (nope.mean(), t5.mean()))
    nameless = dataclasses.replace(pair, told_paper='')
    assert nameless.released('mc') is None and pair.released('parity') is None


def test_rows_and_text_have_the_leads() -> None:
    output = KINDS['encoding_pairs'].draw(given())
    assert len(output.rows) == 4 * 2 * 3
    row = next(r for r in output.rows if r['given'] == 'ALiBi' and r['task'] == 'mc')
    np.testing.assert_allclose(row['lead'], -0.1)
    np.testing.assert_allclose(row['accuracy_without'] - row['accuracy_given'], row['lead'])
    line = next(x for x in output.markdown.splitlines() if 'ALiBi' in x)
    assert line.startswith('| NoPE - ALiBi | 0.100 (') and line.endswith('| 3 of 6 |')
    assert '-0.100' in line and ' 0.000 (' in line  # the mean of both tasks


@pytest.mark.parametrize(
    ('alibi', 'verdict'), [(0.5, 'holds'), (0.9, 'does not hold'), (0.69, 'undecided')]
)
def test_the_claim_is_about_the_mean_of_tasks(alibi: float, verdict: str) -> None:
    """A lead of a point, within the margin, decides nothing; nor does one of three seeds that
    scatter."""
    tasks = {'rsc': (0.2, alibi, 0.5, 0.0, 0.7), 'rdc': (0.1, alibi, 0.3, 0.0, 0.7)}
    found = claim(tasks)
    assert found.verdict == verdict
    assert 'NoPE - ALiBi' in found.headline
    assert claim(tasks, seeds=1).verdict in ('undecided', 'does not hold')


def test_seeds_that_scatter_decide_nothing() -> None:
    found = given({'rsc': (0.2, 0.6, 0.5, 0.0, 0.7)}, spread=0.0)
    for seed, beyond in enumerate((0.2, 0.7, 0.75)):
        name = f'rsc_1/{seed}'
        found = with_records(found, **{name: stating(found.records[name], beyond=beyond)})
    (scattered,) = KINDS['encoding_pairs'].draw(found).claims
    assert scattered.verdict == 'undecided'


def test_a_missing_encoding_of_the_paper_is_named() -> None:
    tasks = {'rsc': TASKS['rsc']}
    found = given(tasks)
    curves = [c | {'paper': ''} if c['paper'] == 'APE' else c for c in found.options['curves']]
    (left,) = KINDS['encoding_pairs'].draw(with_options(found, curves=curves)).claims
    assert left.verdict == 'not measured' and 'APE' in left.measured['missing']


@pytest.mark.parametrize('without', [
    ('nope',), 'NoPE', ('RoPE', 'ALiBi', 'T5 bias', 'sine', 'NoPE'),
])  # fmt: skip
def test_labels_that_no_curve_has_are_refused(without: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r'accepted: some of the labels .* and not all'):
        KINDS['encoding_pairs'].required('f', dict(given(without=without).options))
