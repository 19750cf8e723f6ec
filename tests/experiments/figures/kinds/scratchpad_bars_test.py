"""Bars of scratchpads: ranks of formats, claims that can fail, released numbers, refusals."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from matplotlib import colors as mpl_colors

from experiments.figures import KINDS
from experiments.figures.claims.decided import Decided
from experiments.figures.given import FigureInput
from experiments.figures.read import scratchpads
from tests.experiments.figures.synthetic import (
    INPUTS,
    SCRATCHPADS,
    claims_of,
    exact_match_records,
    scratchpad_input,
    stating,
    with_options,
    with_records,
)

draw = KINDS['scratchpad_bars'].draw
EQUAL = {'parity': {'none': (0.0,) * 5, 'full': (0.0,) * 5, 'minimal': (0.0,) * 5}}


def claims(given: FigureInput) -> dict[str, Decided]:
    return claims_of('scratchpad_bars', given)


def changed(task: str, **more: tuple[float, ...]) -> Mapping[str, Any]:
    """SCRATCHPADS with other accuracies of some formats of a task."""
    return {**SCRATCHPADS, task: {**SCRATCHPADS[task], **more}}


def test_formats_are_ranked_by_accuracy_beyond_l_for_every_encoding_and_seed() -> None:
    found = scratchpads.read(scratchpad_input(seeds=2))
    assert found['parity'].formats == ('none', 'full', 'minimal')
    ranks = found['parity'].reciprocal()
    assert ranks.shape == (3, 5, 2)
    np.testing.assert_allclose(ranks[:, 0, 0], [1, 1 / 3, 1 / 2])
    # RoPE adds best with a full one; of ALiBi's two others both share ranks 2 and 3.
    np.testing.assert_allclose(found['addition'].reciprocal()[:, 1, 0], [1 / 2.5, 1, 1 / 2.5])


def test_formats_stand_in_the_order_of_the_paper() -> None:
    turned = {'parity': dict(reversed(SCRATCHPADS['parity'].items()))}
    found = scratchpads.read(scratchpad_input(tasks=turned))
    assert found['parity'].formats == ('none', 'full', 'minimal')
    assert scratchpads.ordered({'input+output': 0, 'minimal': 0, 'full': 0}) == [
        *('full', 'minimal', 'input+output')
    ]


def test_what_the_paper_found_holds_where_it_comes_out() -> None:
    found = claims(INPUTS['scratchpad_bars'])
    assert {name: claim.verdict for name, claim in found.items()} == {
        'unpadded_best': 'holds',
        'pad_helps_addition': 'holds',
        'pad_format_matters': 'does not hold',  # 7 points between the two on addition
        'padded_encodings': 'holds',
    }


def test_one_seed_decides_nothing() -> None:
    found = claims(scratchpad_input(seeds=1))
    assert {claim.verdict for claim in found.values()} == {'undecided'}


def test_an_encoding_has_one_colour_whichever_a_task_has() -> None:
    """And all are in the legend, those of the second task alone too."""
    given = scratchpad_input()
    curves = [
        c for c in given.options['curves']
        if not c['group'].startswith('addition') or c['paper'] in ('ALiBi', 'NoPE')
    ]  # fmt: skip
    figure = draw(with_options(given, curves=curves)).figure
    entries = {
        text.get_text(): line.get_color()
        for legend in figure.legends
        for text, line in zip(legend.get_texts(), legend.get_lines(), strict=True)
    }
    few, every = figure.axes[2:]
    assert [len(axes.patches) for axes in (few, every)] == [3 * 2, 3 * 5]
    labels = [c['label'] for c in curves if c['group'].startswith('parity_none')]
    assert [entries[label] for label in labels] == [
        mpl_colors.to_hex(bar.get_facecolor()).upper() for bar in every.patches[:5]
    ]
    shared = [c['label'] for c in curves if c['group'].startswith('addition_none')]
    assert [entries[label] for label in shared] == [
        mpl_colors.to_hex(bar.get_facecolor()).upper() for bar in few.patches[:2]
    ]


@pytest.mark.parametrize('names', [('none', 'full', 'minimal'), tuple(scratchpads.WORDS)])
def test_ranks_of_the_paper_stand_beside_those_among_as_many_formats(names: tuple) -> None:
    values = {name: (0.1 * f,) * 5 for f, name in enumerate(names)}
    figure = draw(scratchpad_input(tasks={'parity': values})).figure
    diamonds = [line for line in figure.axes[0].lines if line.get_marker() == 'D']
    assert bool(diamonds) == (len(names) == 8)


@pytest.mark.parametrize(
    ('task', 'more', 'failing'),
    [
        ('parity', {'none': (0.0,) * 5}, 'unpadded_best'),
        ('addition', {'full': (0.0, 0.0, 0.3, 0.05, 0.35)}, 'pad_helps_addition'),
        ('addition', {'full': (0.1, 0.15, 0.3, 0.5, 0.35)}, 'padded_encodings'),
        ('parity', {'minimal': (0.1, 0.2, 0.3, 0.0, 0.4)}, 'pad_format_matters'),
    ],
)
def test_a_claim_fails_where_the_numbers_contradict_it(
    task: str, more: dict[str, tuple[float, ...]], failing: str
) -> None:
    assert claims(scratchpad_input(tasks=changed(task, **more)))[failing].holds is False


def test_formats_far_apart_on_every_task_matter() -> None:
    found = claims(scratchpad_input(tasks=changed('addition', full=(0.3, 0.4, 0.5, 0.3, 0.5))))
    assert found['pad_format_matters'].holds is True
    assert found['pad_format_matters'].headline.startswith('least spread of accuracy beyond L')


def test_models_that_never_generalise_decide_nothing() -> None:
    found = claims(scratchpad_input(tasks=EQUAL, spread=0.0))
    assert found['unpadded_best'].verdict == 'undecided'
    assert found['pad_format_matters'].holds is False
    assert found['pad_helps_addition'].verdict == 'not measured'
    assert "'addition' was not measured" in str(found['padded_encodings'].measured)


def test_formats_that_are_ahead_by_a_hair_decide_nothing() -> None:
    """In every seed and with every encoding a point behind: a whole rank."""
    none = SCRATCHPADS['parity']['none']
    hair = changed('parity', full=tuple(x + 0.01 for x in none), minimal=(0.0,) * 5)
    found = claims(scratchpad_input(tasks=hair))['unpadded_best']
    assert found.verdict == 'undecided' and found.numbers[0].by_seed == (-0.5,) * 3
    clear = changed('parity', full=tuple(x + 0.03 for x in none), minimal=(0.0,) * 5)
    assert claims(scratchpad_input(tasks=clear))['unpadded_best'].verdict == 'does not hold'


def test_seeds_that_disagree_decide_nothing() -> None:
    given = scratchpad_input(seeds=2)
    for e in range(5):
        name = f'addition_full_{e}/1'
        worse = exact_match_records(0.0, task='addition', seed=1, run_id=name, scratchpad='full')
        given = with_records(given, **{name: worse})
    assert claims(given)['pad_helps_addition'].verdict == 'undecided'


def test_a_row_is_a_record() -> None:
    given = INPUTS['scratchpad_bars']
    rows = draw(given).rows
    assert len(rows) == 2 * 3 * 5 * 3
    for row in rows:
        records = given.records[row['record']]
        assert row['accuracy_beyond'] == records.attributes['beyond']
        assert row['format'] == records.attributes['scratchpad']
        padded = row['format'] != 'none'
        assert (row['reasoned_beyond'] is not None) == (row['parsed_beyond'] is not None) == padded
        if padded:
            assert row['reasoned_beyond'] == pytest.approx(row['accuracy_beyond'] / 2)
    known = {(row['task'], row['format']) for row in rows if row['released_beyond'] is not None}
    assert known == {('addition', 'none'), ('addition', 'full')}


def test_formats_are_ranked_by_encoding_over_the_tasks_that_have_both() -> None:
    """Figure F.8: of the second task one encoding has another order, and one has no part in it."""
    names = ('none', 'full')
    first = {'none': (0.1, 0.1, 0.1, 0.1, 0.1), 'full': (0.2, 0.2, 0.2, 0.2, 0.2)}
    second = {'none': (0.1, 0.3, 0.1, 0.1, 0.1), 'full': (0.2, 0.2, 0.2, 0.2, 0.2)}
    given = scratchpad_input(tasks={'parity': first, 'addition': second}, spread=0.0)
    chosen = [c for c in given.options['curves'] if not c['group'].startswith('addition_')
              or not c['group'].endswith('_0')]  # fmt: skip
    given = with_options(given, curves=chosen)
    drawn, found = draw(given), scratchpads.read(given)
    labels = [c['label'] for c in chosen if c['group'].startswith('parity_none')]
    ranks = {
        (label, name): scratchpads.by_encoding(found.values(), label, name)
        for label in labels
        for name in names
    }
    for e, label in enumerate(labels):
        wanted = {'none': 0.75, 'full': 0.75} if e == 1 else {'none': 0.5, 'full': 1.0}
        for name in names:
            assert ranks[label, name] == pytest.approx([wanted[name]] * 3)
    assert scratchpads.by_encoding(found.values(), 'another', 'none') is None
    axes = drawn.figure.axes[1]
    said = [text.get_text() for text in axes.get_xticklabels()]
    assert said[:2] == [f'{labels[0]} (1 task)', f'{labels[1]} (2 tasks)']
    assert [bar.get_height() for bar in axes.patches[2:4]] == pytest.approx([0.75, 0.75])
    table = drawn.markdown.splitlines()[-2:]
    assert table[0].split('|')[2:4] == [' 0.50 ', ' 0.75 ']


def test_tables_have_the_released_numbers() -> None:
    text = draw(scratchpad_input(seeds=1)).markdown
    line = next(line for line in text.splitlines() if line.startswith('| full |'))
    assert line.split('|')[-2].strip() == '0.350 (1.00; 0.17; 0.17)'


def test_records_without_a_word_on_scratchpads_have_none() -> None:
    given = scratchpad_input(seeds=1)
    silent = {
        name: stating(records, scratchpad=None)
        for name, records in given.records.items()
        if records.attributes['scratchpad'] == 'none'
    }
    found = scratchpads.read(with_records(given, **silent))
    assert found['parity'].formats == ('none', 'full', 'minimal')


def test_formats_with_other_encodings_seeds_or_scratchpads_are_refused() -> None:
    given = scratchpad_input(seeds=2)
    fewer = with_options(given, curves=given.options['curves'][:-1])
    with pytest.raises(ValueError, match=r"'parity, minimal' has the curves"):
        draw(fewer)
    last = given.options['curves'][-1]
    again = {f'again/{s}': given.records[f'{last["group"]}/{s}'] for s in (0, 1)}
    twice = [*given.options['curves'], last | {'group': 'again'}]
    with pytest.raises(ValueError, match='none twice'):
        draw(with_options(with_records(given, **again), curves=twice))
    gone = {name: r for name, r in given.records.items() if name != 'parity_full_1/1'}
    with pytest.raises(
        ValueError, match=r"'ALiBi' on 'parity' with the format 'full' has the seeds"
    ):
        draw(dataclasses.replace(given, records=gone))
    mixed = exact_match_records(0.5, task='parity', scratchpad='minimal', seed=1)
    with pytest.raises(ValueError, match='differ in their scratchpad'):
        draw(with_records(given, **{'parity_full_1/1': mixed}))
