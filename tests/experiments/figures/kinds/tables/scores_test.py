"""Cells, means, missing scores, options and claim of the tables of LongBench and commonsense."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.figures import KINDS, FigureInput
from experiments.figures.read.tables import paper
from tests.experiments.figures.synthetic import (
    HARNESS,
    INPUTS,
    LONGBENCH,
    SCORES,
    harness_records,
    longbench_records,
)

LONG, COMMON = 'longbench_table', 'commonsense_table'
MAKE = {LONG: longbench_records, COMMON: harness_records}
TASKS = {LONG: LONGBENCH, COMMON: tuple(HARNESS)}
ROLES = {'base': 'NoPE', 'rope': 'RoPE'}
ROWS = tuple({'label': n, 'paper': n, 'record': n} for n in ('RoPE', 'NoPE'))


def draw(kind, runs, rows=ROWS, **more):
    return KINDS[kind].draw(FigureInput('f', runs, {'rows': rows, **more}))


def found(output, row, column):
    (cell,) = [r for r in output.rows if (r['row'], r['column']) == (row, column)]
    return cell


@pytest.mark.parametrize('kind', [LONG, COMMON])
def test_values_land_in_their_cells_whatever_the_order_of_the_record(kind):
    tasks = TASKS[kind]
    scores = np.arange(len(tasks)) * 3.0 + 1
    backwards = MAKE[kind](scores[::-1], **{'datasets' if kind == LONG else 'tasks': tasks[::-1]})
    output = draw(kind, {'a': backwards}, ({'label': 'a', 'record': 'a', 'paper': 'NoPE'},))
    assert [r['column'] for r in output.rows] == ['avg', *tasks]
    assert [r['ours'] for r in output.rows] == pytest.approx([scores.mean(), *scores])
    table = {LONG: 'table3', COMMON: 'table1'}[kind]
    printed = paper.table(table)['rows']['NoPE']
    assert [r['paper'] for r in output.rows] == printed
    assert [r['difference'] for r in output.rows] == pytest.approx(
        np.array([scores.mean(), *scores]) - printed
    )
    assert found(output, 'a', tasks[2])['samples'] == {LONG: 200, COMMON: 1000}[kind]


@pytest.mark.parametrize('kind', [LONG, COMMON])
def test_the_papers_own_numbers_differ_by_nothing(kind):
    table = {LONG: 'table3', COMMON: 'table1'}[kind]
    rows = paper.table(table)['rows']
    runs = {name: MAKE[kind](values[1:]) for name, values in rows.items()}
    options = [{'label': name, 'paper': name, 'record': name} for name in rows]
    output = draw(kind, runs, options)
    assert {r['difference'] for r in output.rows if r['column'] != 'avg'} == {0.0}
    averages = [r['difference'] for r in output.rows if r['column'] == 'avg']
    np.testing.assert_allclose(averages, 0, atol=0.0501)


def test_seeds_are_averaged_and_spread():
    given = INPUTS[LONG]
    output = KINDS[LONG].draw(given)
    cell = found(output, 'NoPE', 'trec')
    assert (cell['ours'], cell['runs'], cell['group']) == (34.25, 2, 'Original models')
    assert cell['spread'] == pytest.approx(0.5 / np.sqrt(2))
    average = found(output, 'NoPE', 'avg')
    assert average['ours'] == pytest.approx(SCORES.mean() + 1.25)
    assert average['spread'] == pytest.approx(0.5 / np.sqrt(2))


def test_without_one_task_there_is_no_mean():
    record = longbench_records(SCORES[:-1], datasets=LONGBENCH[:-1])
    output = draw(LONG, {'a': record}, ({'label': 'a', 'record': 'a'},))
    assert found(output, 'a', 'lcc')['ours'] == SCORES[-2]
    assert found(output, 'a', 'repobench-p')['missing'] == 'the records hold no score of this task'
    assert found(output, 'a', 'avg')['missing'] == 'a task of the mean is missing'


def test_a_task_that_a_seed_lacks_is_missing():
    runs = {
        'a/seed0': longbench_records(SCORES),
        'a/seed1': longbench_records(SCORES[1:], datasets=LONGBENCH[1:]),
    }
    output = draw(LONG, runs, ({'label': 'a', 'record': 'a/'},))
    assert found(output, 'a', LONGBENCH[0])['ours'] is None
    assert found(output, 'a', LONGBENCH[1])['runs'] == 2


def parity(difference, roles=ROLES, lowest=25.0):
    scores = np.linspace(lowest, lowest + 35, 7)
    runs = {'RoPE': harness_records(scores), 'NoPE': harness_records(scores + difference)}
    (claim,) = draw(COMMON, runs, roles=roles).claims
    return claim


@pytest.mark.parametrize(
    ('difference', 'holds'), [(0.9, True), (-0.9, True), (1.1, False), (-1.1, False)]
)
def test_parity_is_within_one_point(difference, holds):
    claim = parity(difference)
    assert (claim.number, claim.holds) == (1, holds)
    assert claim.numbers[0].by_seed == pytest.approx([difference])
    assert 'within 1 points of 0' in claim.statement


def test_two_models_that_know_nothing_are_not_alike():
    # Chance is 37.5 percent; the mean of seven shares of 1,000 questions has an error of 0.55.
    idle = parity(0, lowest=19.5)
    assert (idle.holds, idle.verdict) == (None, 'undecided')
    assert 'NoPE answers as by chance; RoPE answers as by chance' in idle.headline
    assert parity(0, lowest=21.5).holds is True


def test_standard_errors_are_told():
    (claim,) = draw(
        COMMON, {n: harness_records([50.0] * 7) for n in ('RoPE', 'NoPE')}, roles=ROLES
    ).claims
    # sqrt(0.5 * 0.5 / 7,000) is 0.6 points, of a difference sqrt(2) times that.
    assert claim.headline.endswith('(standard error by questions 0.8)')
    caption = KINDS[COMMON].draw(INPUTS[COMMON]).caption
    assert 'Standard errors of the means, by questions: 0.' in caption


def test_without_roles_or_scores_parity_is_undecided():
    assert parity(0, {'base': 'NoPE'}).measured == {'missing': "no row has the role 'rope'"}
    tasks = TASKS[COMMON][:-1]
    runs = {'RoPE': harness_records(range(7)), 'NoPE': harness_records(range(6), tasks=tasks)}
    (claim,) = draw(COMMON, runs, roles=ROLES).claims
    assert claim.holds is None
    assert claim.measured == {'missing': "'NoPE' has no score of 'avg'"}


@pytest.mark.parametrize(
    ('kind', 'options', 'message'),
    [
        (LONG, {'rows': (*ROWS, ROWS[0])}, 'labels of rows must differ'),
        (LONG, {'rows': ({'label': 'a'},)}, "rows must give 'record'"),
        (LONG, {'rows': ({'label': 'a', 'record': 'a', 'paper': 'MPT-7B'},)}, "paper is 'MPT-7B'"),
        (LONG, {'rows': ({'label': 'a', 'record': 'a', 'tuned': 'x'},)}, "tuned of row 'a'"),
        (COMMON, {'rows': ({'record': 'a'},)}, "rows must give 'label'"),
        (COMMON, {'rows': ROWS, 'roles': {'base': 'MPT'}}, "given to the row 'MPT'"),
    ],
)
def test_bad_options_are_named(kind, options, message):
    with pytest.raises(ValueError, match=f"figure 'f'.*{message}"):
        KINDS[kind].required('f', options)


def test_records_of_rows_are_asked_for():
    needs = KINDS[LONG].required('f', INPUTS[LONG].options)
    assert needs == dict.fromkeys(
        ('rope_longbench/', 'nope_longbench/', 'headscale_9_longbench/'), 'longbench'
    )
