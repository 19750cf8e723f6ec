"""Numbers of claims by size, from made-up summaries."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from experiments import board, figure_commands, figure_configs
from experiments.board import Finding, Summary, trend
from experiments.board.decisions import SIZES
from experiments.figures.claims.headline import number

TOKENS = {'quick': 5_000_000, 'small': 11_000_000, 'paper': 105_000_000_000}


def summary(size, values, figure='fig1', claim='parity', verdict='holds', unit='nats', seeds=(0,)):
    numbers = tuple(number(f'number {i}', value, unit) for i, value in enumerate(values))
    finding = Finding(claim, verdict, numbers, 'at most 0.05 nats')
    return Summary(figure, size, seeds, {}, '2026-01-02', (finding,))


def courses(*summaries):
    return trend.courses(board.rows(summaries), lambda figure, size: TOKENS.get(size))


def test_a_number_at_two_sizes_has_a_course_in_the_order_of_sizes():
    found = courses(summary('paper', [0.1, 2.0]), summary('quick', [0.3, 4.0]))
    assert [(c.claim.id, c.figure, c.what, c.unit) for c in found] == [
        ('parity', 'fig1', 'number 0', 'nats'),
        ('parity', 'fig1', 'number 1', 'nats'),
    ]
    assert [(p.size, p.tokens, p.mean) for p in found[0].points] == [
        ('quick', 5_000_000, 0.3),
        ('paper', 105_000_000_000, 0.1),
    ]


def test_what_has_no_second_size_has_no_course():
    assert not courses(summary('quick', [0.3]))
    assert not courses(summary('quick', [0.3]), summary('small', [0.2], figure='fig2'))
    assert not courses(summary('quick', [0.3]), summary('small', [0.2], claim='onset'))
    assert not courses(summary('quick', [0.3]), summary('small', [0.2], unit='points'))
    assert not courses(summary('quick', [0.3]), summary('small', [None]))
    assert not courses(summary('quick', [0.3]), summary('small', []))


def test_numbers_of_other_cases_are_not_joined():
    def decided(size, *cases):
        numbers = tuple(number(f'highest difference, {case}', 0.1, 'nats') for case in cases)
        finding = Finding('parity', 'holds', numbers, 'at most 0.05 nats')
        return Summary('fig1', size, (0,), {}, '2026-01-02', (finding,))

    assert not courses(decided('quick', 'at 2 L'), decided('small', 'at 4 L'))
    (course,) = courses(decided('quick', 'at 2 L', 'at 4 L'), decided('small', 'at 4 L'))
    assert course.what == 'highest difference, at 4 L'


def test_published_models_have_a_size_and_no_tokens():
    (course,) = courses(summary('released', [0.1]), summary('small', [0.2]))
    assert [(p.size, p.tokens) for p in course.points] == [
        ('small', 11_000_000),
        ('released', None),
    ]


def test_several_seeds_have_their_interval_one_has_none():
    (course,) = courses(
        summary('quick', [np.array([0.1, 0.2, 0.3])], seeds=(0, 1, 2)), summary('small', [1])
    )
    several, one = course.points
    assert several.seeds == 3 and several.low < 0.1 < several.mean < 0.3 < several.high
    assert (one.seeds, one.low, one.mean, one.high) == (1, 1.0, 1.0, 1.0)


def test_a_panel_has_a_line_for_each_figure_and_a_mark_for_each_verdict():
    values = {'fig1': [0.3, 9.0], 'table2': [0.4]}
    found = courses(
        *(summary('quick', value, name, verdict='holds') for name, value in values.items()),
        *(summary('small', value, name, verdict='undecided') for name, value in values.items()),
        summary('quick', [1.2], claim='onset', unit='L', figure='fig4'),
        summary('small', [1.3], claim='onset', unit='L', figure='fig4'),
    )
    parity, onset = trend.draw(found).axes
    assert [text.get_text() for text in parity.get_legend().get_texts()] == ['fig1', 'table2']
    assert onset.get_legend() is None and onset.get_ylabel() == 'L'
    assert [tick.get_text() for tick in onset.get_xticklabels()] == [
        'quick\n5M tokens',
        'small\n11M tokens',
    ]
    assert {line.get_fillstyle() for line in parity.lines if line.get_marker() == 'o'} == {
        'full',
        'left',
    }
    drawn = {value for line in parity.lines for value in line.get_ydata()}
    assert {0.3, 0.4} <= drawn and 9.0 not in drawn  # of a figure the first number
    assert len(trend.csv_rows(found)) == 8


def test_figures_of_different_numbers_are_told_apart():
    one, two = courses(
        *(summary(size, [0.3], name) for name in ('fig1', 'fig4') for size in ('quick', 'small'))
    )
    (panel,) = trend.draw([one, dataclasses.replace(two, what='number 9')]).axes
    named = [text.get_text() for text in panel.get_legend().get_texts()]
    assert named == ['fig1: number 0', 'fig4: number 9'] and 'number' not in panel.get_xlabel()


OF_TASKS = ('b_attention', 'b_lambda', 'b_mrr', 'b_positions', 'b_scratchpad')


def test_tokens_are_those_of_the_config_or_of_the_figure_as_it_was_drawn(tmp_path):
    assert figure_configs.trained_tokens('fig1', 'quick') == 2400 * 32 * 64
    assert figure_configs.trained_tokens('fig1', 'released') is None
    assert figure_configs.trained_tokens('extend', 'quick') is None
    folder = tmp_path / 'fig1_small'
    folder.mkdir()
    (folder / 'spec.json').write_text('{"settings": {"train.steps": 10, "train.length": 20}}')
    assert figure_configs.trained_tokens('fig1', 'small', tmp_path) == 10 * 32 * 20
    assert figure_configs.trained_tokens('fig1', 'quick', tmp_path) == 2400 * 32 * 64


@pytest.mark.parametrize('size', SIZES)
def test_every_config_that_decides_a_claim_has_tokens(size):
    """But those of checkpoints, and those whose runs have lengths of their own, one a task."""
    for name in figure_commands.configs():
        given = figure_configs.trained_tokens(name, size) is None
        assert given == (name in (*figure_configs.OF_CHECKPOINTS, *OF_TASKS))


def test_the_sizes_of_a_panel_ascend_where_no_figure_has_them_all():
    found = courses(
        summary('quick', [0.3]), summary('medium', [0.2]),
        summary('quick', [0.3], figure='fig2'), summary('small', [0.2], figure='fig2'),
    )  # fmt: skip
    (panel,) = trend.draw(found).axes
    ticks = [tick.get_text().partition('\n')[0] for tick in panel.get_xticklabels()]
    assert ticks == ['quick', 'small', 'medium']
