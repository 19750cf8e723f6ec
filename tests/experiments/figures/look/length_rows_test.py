"""Curves of loss against length spread over rows of panels."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.figures import KINDS, FigureInput
from experiments.figures.look import length_rows, style
from tests.experiments.figures.synthetic import INPUTS

CURVES = (
    {'group': 'base'},
    {'group': 'uniform', 'row': 'uniform'},
    {'group': 'headscale_4x', 'row': 'searched'},
    {'group': 'log_length', 'row': 'searched'},
)


def test_without_rows_all_curves_are_in_one() -> None:
    (row,) = length_rows.of([{'group': name} for name in 'abc'])
    assert row.title == '' and [*row.curves] == [0, 1, 2]
    assert [mark.color for mark in row.curves.values()] == list(style.COLORS[:3])


def test_a_curve_without_a_row_is_in_all_of_them() -> None:
    uniform, searched = length_rows.of(CURVES)
    assert (uniform.title, [*uniform.curves]) == ('uniform', [0, 1])
    assert (searched.title, [*searched.curves]) == ('searched', [0, 2, 3])
    assert uniform.curves[0] == searched.curves[0]
    for row in (uniform, searched):
        looks = {(mark.color, mark.linestyle) for mark in row.curves.values()}
        assert len(looks) == len(row.curves)


def test_models_have_their_colours_in_every_row_and_no_other_curve_has_them() -> None:
    """Also where a model comes in a later row than a curve that would have had its colour."""
    labels = {'one': ('half ALiBi', 'half T5'), 'two': ('half ALiBi', 'NoPE', 'rope')}
    curves = [
        {'group': f'{row} {label}', 'label': label, 'row': row}
        for row, some in labels.items()
        for label in some
    ]
    for row, some in zip(length_rows.of(curves), labels.values(), strict=True):
        looks = dict(zip(some, row.curves.values(), strict=True))
        assert len(set(looks.values())) == len(some)
        for label in looks.keys() & style.MODELS.keys():
            assert looks[label].color == style.MODELS[label]


def test_every_row_is_drawn_with_a_legend_of_its_own() -> None:
    given = INPUTS['length_curves']
    found = KINDS['length_curves'].draw(FigureInput('f', given.records, {'curves': CURVES}))
    titles = [axes.get_title() for axes in found.figure.axes]
    assert [title.partition('\n')[0] for title in titles] == ['uniform'] * 2 + ['searched'] * 2
    assert [len(axes.lines) for axes in found.figure.axes] == [2, 2, 3, 3]
    legends = [axes.get_legend() for axes in found.figure.axes]
    assert [legend is not None for legend in legends] == [False, True] * 2
    assert {row['group'] for row in found.rows} == {curve['group'] for curve in CURVES}


@pytest.mark.parametrize(
    ('curves', 'message'),
    [
        ([{'group': str(n)} for n in range(8)], r'curves must be 1 to 7, got 8'),
        (
            [{'group': 'a', 'row': 'r'}, *({'group': str(n)} for n in range(4))],
            r'curves without a row must be 1 to 3, got 4',
        ),
        (
            [{'group': str(n), 'row': 'r'} for n in range(7)],
            r"curves of row 'r' must be 1 to 6, got 7",
        ),
    ],
    ids=['many', 'references', 'own'],
)
def test_a_row_has_a_colour_for_every_curve(curves: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(ValueError, match=rf"^figure 'f': {message}"):
        KINDS['length_curves'].required('f', {'curves': curves})


def test_curves_of_one_label_look_alike_in_all_rows() -> None:
    trained, searched = (
        [{'group': f'{row}_{name}', 'label': name, 'row': row} for name in names]
        for row, names in (('trained', 'abc'), ('searched', 'dca'))
    )
    first, second = length_rows.of([*trained, *searched])
    assert [second.curves[5], second.curves[4]] == [first.curves[0], first.curves[2]]
    assert second.curves[3] not in first.curves.values()
