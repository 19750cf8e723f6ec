"""Budgets and numbers of the figure of loss and gains against width and tokens."""

from __future__ import annotations

import dataclasses

import pytest

from experiments.figures import KINDS
from experiments.figures.base import FigureOutput
from experiments.figures.given import FigureInput
from tests.experiments.figures import synthetic


def drawn(given: FigureInput | None = None) -> FigureOutput:
    return KINDS['matched_budgets'].draw(given or synthetic.matched_input())


def test_each_model_has_one_row_with_what_its_records_say() -> None:
    given = synthetic.matched_input()
    rows = {row['record']: row for row in drawn(given).rows}
    assert list(rows) == ['nope_64', 'nope_128', 'nope_256', 'nope_128_few', 'nope_128_many']
    row = rows['nope_128']
    records = {part: given.records[f'{part}_128'] for part in ('nope', 'one', 'heads', 'rope')}
    inside, end = slice(32, 64), slice(240, 256)  # of L = 64, positions from 1: above, up to
    loss = {part: records[part]['loss'][inside].mean() for part in records}
    assert row['loss_nats'] == pytest.approx(loss['nope'])
    assert row['rope_loss_nats'] == pytest.approx(loss['rope'])
    assert row['nope_less_rope_nats'] == pytest.approx(loss['nope'] - loss['rope'])
    window = {part: records[part]['loss'].mean() for part in records}
    assert row['rise_nats'] == pytest.approx(window['nope'] - loss['nope'])
    assert row['uniform_gain_nats'] == pytest.approx(window['nope'] - window['one'])
    assert row['headscale_gain_nats'] == pytest.approx(window['one'] - window['heads'])
    late = {part: records[part]['loss'][end].mean() for part in records}
    assert row['headscale_gain_at_end_nats'] == pytest.approx(late['one'] - late['heads'])
    assert row['rope_onset_L'] < row['onset_L'] < 2
    assert (row['width'], row['parameters'], row['train_tokens']) == (128, '858k', 4_915_200)


def test_columns_show_their_budgets_and_lines_their_models() -> None:
    axes = drawn().figure.axes
    left, right = axes[:2]
    assert [line.get_label() for line in left.lines] == ['NoPE', 'RoPE']
    assert left.lines[0].get_xdata().tolist() == [64, 128, 256]
    assert right.lines[0].get_xdata().tolist() == [1_000_000, 4_915_200, 16_000_000]
    assert (left.get_title(), right.get_title()) == ('4.9M tokens each', 'width 128')
    assert [text.get_text() for text in axes[-2].get_xticklabels()][1] == '128\n858k'


def test_without_rope_nothing_is_said_of_it() -> None:
    given = synthetic.matched_input()
    options = {
        column: [{k: v for k, v in entry.items() if k != 'rope'} for entry in entries]
        for column, entries in given.options.items()
    }
    output = drawn(dataclasses.replace(given, options=options))
    assert len(output.figure.axes) == 6
    assert {row['nope_less_rope_nats'] for row in output.rows} == {None}
    assert not any('rope' in run for run in output.runs)


def test_a_loss_that_does_not_rise_has_no_onset() -> None:
    flat = synthetic.positions_records(loss_bend=1000, train_tokens=4_915_200)
    output = drawn(synthetic.with_records(synthetic.matched_input(), nope_256=flat))
    assert {row['record']: row['onset_L'] for row in output.rows}['nope_256'] is None
    assert 'points are missing' in output.caption and 'missing' not in drawn().caption


@pytest.mark.parametrize(
    ('record', 'facts', 'message'),
    [
        ('rope_256', {'train_tokens': 8_000_000}, "the same tokens: .*'rope_256': 8000000"),
        ('rope_128_few', {'train_tokens': 8_000_000}, r"same tokens: {'nope_128_few': 1000000, "),
        ('nope_128_few', {'model': 'NoPE, width 64, 1k parameters'}, 'tokens must be of models of'),
    ],
)
def test_models_that_differ_in_more_are_refused(record, facts, message) -> None:
    given = synthetic.matched_input()
    changed = synthetic.stating(given.records[record], **facts)
    given = synthetic.with_records(given, **{record: changed})
    with pytest.raises(ValueError, match=message):
        drawn(given)
    known = {f'{name}/seed0': records.attributes for name, records in given.records.items()}
    with pytest.raises(ValueError, match=message):
        KINDS['matched_budgets'].check_known('matched', given.options, known)


def test_amounts_of_tokens_must_differ() -> None:
    given = synthetic.matched_input()
    as_many = {
        name: synthetic.stating(records, train_tokens=4_915_200)
        if name in given.options['tokens'][0].values()
        else records
        for name, records in given.records.items()
    }
    known = {name: records.attributes for name, records in as_many.items()}
    with pytest.raises(ValueError, match='numbers of tokens must differ'):
        KINDS['matched_budgets'].check_known('matched', given.options, known)


@pytest.mark.parametrize(
    ('entries', 'message'),
    [
        ([{'width': 64}], "widths must give 'base'"),
        ([synthetic.MATCHED['widths'][0]], 'widths must be two or more'),
        ([synthetic.MATCHED['widths'][0]] * 2, 'widths, by their base, must differ'),
        (
            [
                {k: v for k, v in synthetic.MATCHED['widths'][0].items() if k != 'rope'},
                synthetic.MATCHED['widths'][1],
            ],
            'rope must be given for every model or for none',
        ),
    ],
)
def test_options_that_do_not_fit_are_named(entries, message) -> None:
    options = {**synthetic.MATCHED, 'widths': entries}
    with pytest.raises(ValueError, match=message):
        KINDS['matched_budgets'].required('matched', options)
