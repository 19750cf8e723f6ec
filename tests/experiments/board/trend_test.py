"""Numbers of claims by size, from made-up summaries."""

from __future__ import annotations

import json

import numpy as np
import pytest

from experiments import board, figure_configs
from experiments.board import Finding, Summary, decisions, page, trend
from experiments.board.decisions import SIZES
from experiments.figures.claims.headline import number

TOKENS = {'quick': 5_000_000, 'small': 11_000_000, 'paper': 105_000_000_000}


def summary(
    size, *values, figure='fig1', claim='parity', unit='nats', verdict='holds', names=None, seeds=1
):
    named = names or [f'number {i}' for i in range(len(values))]
    pairs = zip(named, values, strict=True)
    numbers = tuple(number(name, value, unit) for name, value in pairs)
    finding = Finding(claim, verdict, numbers, 'at most 0.05 nats')
    return Summary(figure, size, tuple(range(seeds)), {}, '2026-01-02', (finding,))


def courses(*summaries):
    return trend.courses(board.standings(summaries), lambda figure, size: TOKENS.get(size))


def test_a_number_at_two_sizes_has_a_course_in_the_order_of_sizes():
    found = courses(summary('paper', 0.1, 2.0), summary('quick', 0.3, 4.0), summary('released', 1))
    assert [(c.claim.id, c.figure, c.what, c.unit) for c in found] == [
        ('parity', 'fig1', 'number 0', 'nats')
    ]
    assert [(p.size, p.tokens, p.mean) for p in found[0].points] == [
        ('quick', 5_000_000, 0.3),
        ('paper', 105_000_000_000, 0.1),
        ('released', None, 1),
    ]
    assert len(trend.csv_rows(found)) == 3


AT_2_L, AT_4_L = 'highest, at 2 L', 'highest, at 4 L'


@pytest.mark.parametrize(
    'summaries',
    [
        [summary('quick', 0.3)],
        [summary('quick', 0.3), summary('small', 0.2, figure='fig2')],
        [summary('quick', 0.3), summary('small', 0.2, claim='onset')],
        [summary('quick', 0.3), summary('small', 0.2, unit='points')],
        [summary('quick', 0.3), summary('small', None)],
        [summary('quick', 0.3), summary('small')],
        [summary('quick', 0.3, names=[AT_2_L]), summary('small', 0.3, names=[AT_4_L])],
    ],
)
def test_what_has_no_second_size_or_is_of_another_case_has_no_course(summaries):
    assert not courses(*summaries)


def test_several_seeds_have_their_interval_one_has_none():
    (course,) = courses(summary('quick', np.array([0.1, 0.2, 0.3]), seeds=3), summary('small', 1.0))
    several, one = course.points
    assert several.seeds == 3 and several.low < 0.1 < several.mean < 0.3 < several.high
    assert (one.seeds, one.low, one.mean, one.high) == (1, 1.0, 1.0, 1.0)


def test_a_panel_has_a_line_for_each_figure_and_a_mark_for_each_verdict():
    found = courses(
        *(
            summary(size, *values, figure=name, verdict=verdict)
            for size, verdict in (('quick', 'holds'), ('small', 'undecided'))
            for name, values in {'fig1': [0.3, 9.0], 'table2': [0.4]}.items()
        ),
        *(
            summary(size, 1.2, figure='fig2', claim='onset', unit='L')
            for size in ('quick', 'small')
        ),
        *(summary(size, 97, figure='frontier', claim='keys_far', unit='%') for size in TOKENS),
    )
    parity, keys = trend.draw(found).axes  # the onset is none of the headlines
    assert [text.get_text() for text in parity.get_legend().get_texts()] == ['fig1', 'table2']
    assert [text.get_text() for text in keys.get_legend().get_texts()] == ['frontier (with lambda)']
    assert keys.get_ylabel() == 'number 0, %'
    ticks = [tick.get_text() for tick in parity.get_xticklabels()]
    assert ticks == ['quick\n5M tokens', 'small\n11M tokens']
    marks = {line.get_fillstyle() for line in parity.lines if line.get_marker() == 's'}
    assert marks == {'full', 'left'}
    drawn = {value for line in parity.lines for value in line.get_ydata()}
    assert {0.3, 0.4, -0.05, 0.05} <= drawn and 9.0 not in drawn  # the first number, and limits
    (onset,) = trend.draw([c for c in found if c.claim.id == 'onset']).axes
    assert onset.get_ylabel() == 'number 0, L'


def test_headlines_are_claims_that_stand_on_the_board():
    assert set(page.HEADLINES) <= {standing.claim.id for standing in board.standings([])}


OF_TASKS = ('b_attention', 'b_hybrids', 'b_lambda', 'b_mrr', 'b_positions', 'b_scratchpad')


def test_tokens_are_those_of_the_config_or_of_the_figure_as_it_was_drawn(tmp_path):
    assert figure_configs.trained_tokens('fig1', 'released') is None
    folder = tmp_path / 'fig1_small'
    folder.mkdir()
    (folder / 'spec.json').write_text('{"settings": {"train.steps": 10, "train.length": 20}}')
    assert figure_configs.trained_tokens('fig1', 'small', tmp_path) == 10 * 32 * 20
    assert figure_configs.trained_tokens('fig1', 'quick', tmp_path) == 2400 * 32 * 64
    for given in ({'train.length': None}, {'runs.nope.init': 'hf:DIR'}):
        (folder / 'spec.json').write_text(json.dumps({'settings': given}))
        assert figure_configs.trained_tokens('fig1', 'small', tmp_path) is None


@pytest.mark.parametrize('size', SIZES)
def test_every_config_that_decides_a_claim_has_tokens(size):
    """But those of checkpoints, and those whose runs have lengths of their own, one a task."""
    for name in set().union(*decisions.configs().values()):
        given = figure_configs.trained_tokens(name, size) is None
        assert given == (name in (*figure_configs.OF_CHECKPOINTS, *OF_TASKS))
