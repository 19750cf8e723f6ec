"""Recipes for a checkpoint: what each reaches, tables, readings, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.figures import KINDS
from experiments.figures.base import FigureOutput
from experiments.figures.given import FigureInput
from experiments.figures.read.curves import BITS_PER_NAT
from tests.experiments.figures import synthetic


def drawn(given: FigureInput | None = None) -> FigureOutput:
    return KINDS['recipes'].draw(given or synthetic.recipe_input())


def test_a_recipe_reads_to_the_last_length_before_its_loss_leaves_the_level_at_l() -> None:
    read, effective = drawn().claims
    assert (read.id, read.verdict, read.holds) == ('recipes_read', 'reading', None)
    assert read.measured['as it is'] == {'reads_to_L': 1.0, 'cost_at_L_nats': 0.0}
    yarn = read.measured['YaRN 4']
    assert yarn['reads_to_L'] == 2 and yarn['cost_at_L_nats'] == pytest.approx(0.01)
    assert effective.id == 'effective_length'
    assert effective.measured['as it is']['effective_length'] == 128
    assert effective.measured['YaRN 4']['effective_length'] == 256


def test_a_dear_recipe_reads_nothing_and_one_without_ruler_has_no_effective_length() -> None:
    given = synthetic.recipe_input()
    rows = [{k: v for k, v in row.items() if k != 'ruler'} for row in given.options['rows']]
    dear = synthetic.measuring(given.records['YaRN 4_loss'], loss_tail=np.array([9, 1.3, 1.2, 1.2]))
    changed = synthetic.with_records(
        synthetic.with_options(given, rows=rows), **{'YaRN 4_loss': dear}
    )
    read, effective = drawn(changed).claims
    assert read.measured['YaRN 4']['reads_to_L'] == 0
    assert effective.holds is None and 'RULER was not measured' in str(effective.measured)


def test_rows_have_every_measure_every_task_and_the_entropy_of_every_head() -> None:
    rows = drawn().rows
    found = {(r['label'], r['measure'], r['of'], r['length_over_L']): r['value'] for r in rows}
    assert len(found) == len(rows) == 2 * (4 + 2 * 3 + 2 * 3 + 2 * 16)
    assert found['YaRN 4', 'loss', '', 4.0] == 1.4
    assert found['YaRN 4', 'keys', '', 2.0] == pytest.approx(90)
    assert found['as it is', 'ruler', 'fwe', 2.0] == 71
    entropy = synthetic.recipe_input().records['as it is_entropy']['entropy']
    expected = entropy[1, 2, 512 - 16 :].mean() * BITS_PER_NAT
    assert found['as it is', 'entropy', 'layer 1, head 2', 4.0] == pytest.approx(expected)


def test_each_measure_has_a_panel_and_a_table() -> None:
    output = drawn()
    titles = [axes.get_title() for axes in output.figure.axes if axes.get_visible()]
    assert titles == [
        'loss over the last L/2',
        'passkeys in filler',
        'RULER, mean over tasks',
        'entropy',
    ]
    assert '| YaRN 4 | 1.310 | 1.210 | 1.240 | 1.400 |' in output.markdown
    assert '| as it is | 100.0 | 40.0 | 0.0 |' in output.markdown
    assert "RULER's tasks: vt, fwe." in output.caption


@pytest.mark.parametrize(
    ('rows', 'message'),
    [
        ([{'label': 'a'}], "the same of entropy, loss, .*; 'a' has none"),
        ([{'label': 'a', 'loss': 'x'}, {'label': 'b', 'keys': 'y'}], "'b' has keys"),
        ([{'label': 'a', 'loss': 'x'}] * 2, 'labels of rows'),
        ([{'label': 'a', 'losses': 'x'}], 'losses'),
    ],
)
def test_rows_are_checked(rows: list[dict[str, str]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        KINDS['recipes'].required('f', {'rows': rows})


def test_other_lengths_are_refused() -> None:
    given = synthetic.recipe_input()
    other = synthetic.ruler_records((90, 80, 70), lengths=(128, 256, 1024), train_length=128)
    with pytest.raises(ValueError, match="ruler of 'YaRN 4' was measured at other lengths than"):
        drawn(synthetic.with_records(given, **{'YaRN 4_ruler': other}))
