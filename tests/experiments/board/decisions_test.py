"""The board from made-up summaries: seeds, figures that disagree, sizes, what is missing."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from experiments import board
from experiments.board import Finding, Summary, decisions, page
from experiments.board.entries import ENTRIES
from experiments.figures.claims.catalogue import CLAIMS
from experiments.figures.claims.headline import number


def summary(figure='fig1', size='quick', verdict='holds', value=0.02, claim='parity', seeds=(0,)):
    numbers = () if verdict == 'not measured' else (number('NoPE - RoPE', value, 'nats'),)
    finding = Finding(claim, verdict, numbers, 'at most 0.05 nats')
    return Summary(figure, size, seeds, {'nope': 'a1'}, '2026-01-02', (finding,))


def row(*summaries, claim='parity'):
    return next(row for row in board.rows(summaries) if row.id == claim)


def test_every_claim_has_one_row_the_eleven_first():
    found = board.rows([])
    assert [r.id for r in found if r.number is None] == [
        c.id for c in CLAIMS.values() if c.number is None
    ]
    numbers = [r.number for r in found if r.number is not None]
    assert numbers == sorted(numbers) and set(numbers) == set(range(1, 12))
    assert {r.id for r in found} == set(CLAIMS) == set(ENTRIES)


def test_a_claim_that_no_summary_bears_on_is_not_measured_and_names_its_configs():
    found = row()
    assert found.verdict('quick') == 'not measured'
    assert found.decisions == () and found.configs == ('fig1', 'fig2', 'table1', 'table2')
    lacking = row(summary(verdict='not measured'))
    assert lacking.verdict('quick') == 'not measured' and lacking.decisions == ()


def test_a_row_has_the_verdict_the_headline_the_figure_and_the_seeds_of_each_size():
    found = row(summary(), summary(size='small', verdict='does not hold', value=0.2))
    assert (found.verdict('quick'), found.verdict('small')) == ('holds', 'does not hold')
    assert found.verdict('paper') == 'not measured'
    (decision,) = found.at('small')
    assert (decision.figure, decision.seeds) == ('fig1', (0,))
    assert decision.headline == 'NoPE - RoPE 0.200 nats'


def test_figures_that_disagree_are_both_shown_and_none_is_picked():
    found = row(summary(), summary('table2', verdict='does not hold', value=0.2))
    assert found.verdict('quick') == 'figures disagree'
    assert [(d.figure, d.verdict) for d in found.at('quick')] == [
        ('fig1', 'holds'),
        ('table2', 'does not hold'),
    ]
    agreed = row(summary(), summary('table2'))
    assert agreed.verdict('quick') == 'holds' and len(agreed.at('quick')) == 2


def test_figures_with_the_most_seeds_decide():
    one = summary('table2', verdict='holds')
    open_ = summary(verdict='undecided', seeds=(0, 1, 2))
    assert row(one, open_).verdict('quick') == 'undecided'
    also = summary('table2', verdict='undecided')
    three = summary(verdict='does not hold', seeds=(0, 1, 2))
    assert row(also, three).verdict('quick') == 'does not hold'


def test_an_opposite_verdict_of_fewer_seeds_is_not_outvoted():
    """It may be of a case that the others have not measured."""
    one = summary('table2', verdict='holds')
    three = summary(verdict='does not hold', seeds=(0, 1, 2))
    assert row(one, three).verdict('quick') == 'figures disagree'
    assert len(row(one, three).at('quick')) == 2


def test_a_figure_that_cannot_decide_is_not_outvoted_by_one_of_as_many_seeds():
    open_ = summary(verdict='undecided')
    for verdict in ('holds', 'does not hold'):
        assert row(open_, summary('table2', verdict=verdict)).verdict('quick') == 'undecided'
    both = [summary('table2'), summary('fig2', verdict='does not hold')]
    assert row(open_, *both).verdict('quick') == 'figures disagree'


def test_numbers_of_several_seeds_have_their_mean_and_interval():
    values = np.array([0.01, 0.02, 0.03])
    (decision,) = row(summary(value=values, seeds=(0, 1, 2))).at('quick')
    assert decision.headline == 'NoPE - RoPE 0.020 nats [-0.005, 0.045]'
    assert decision.seeds == (0, 1, 2)


def test_the_order_of_the_summaries_changes_nothing():
    found = [summary(), summary('table2', verdict='undecided'), summary(size='paper')]
    assert board.rows(found) == board.rows(found[::-1])
    assert [d.size for d in row(*found).decisions] == ['quick', 'quick', 'paper']


def test_one_figure_at_one_size_is_given_once():
    with pytest.raises(ValueError, match="summary of 'fig1' at 'quick' is given twice"):
        board.rows([summary(), summary()])


def test_a_claim_without_a_line_on_the_board_is_named(monkeypatch):
    monkeypatch.setitem(decisions.CLAIMS, 'new', dataclasses.replace(CLAIMS['parity'], id='new'))
    with pytest.raises(ValueError, match=r"the claim 'new' has no line in .*entries\.py"):
        board.rows([])


def test_what_one_seed_decided_is_counted_apart():
    one, three = summary(), summary('fig2', seeds=(0, 1, 2))
    assert row(one).by_one_seed('quick') and not row(one, three).by_one_seed('quick')
    assert not row(summary(verdict='undecided')).by_one_seed('quick')
    assert not row().by_one_seed('quick')
    assert 'holds 1 (1 by one seed)' in page.counts(board.rows([one]), ['quick'])
    assert 'holds 1, not measured' in page.counts(board.rows([one, three]), ['quick'])
