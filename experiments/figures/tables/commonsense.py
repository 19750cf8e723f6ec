"""Zero-shot commonsense tasks inside the training length: the paper's Table 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.figures.tables import paper
from experiments.figures.tables.roles import ClaimTest, Roles
from experiments.figures.tables.scores import AVERAGE, ScoreRow, ScoreTable
from experiments.figures.tables.table import Column

TASKS = {
    'arc_challenge': 'ARC-c',
    'arc_easy': 'ARC-e',
    'boolq': 'BoolQ',
    'hellaswag': 'HellaSwag',
    'openbookqa': 'OBQA',
    'piqa': 'PIQA',
    'winogrande': 'WinoGrande',
}
COLUMNS = tuple(Column(task, label) for task, label in TASKS.items())

BASE, ROTARY = 'base', 'rotary'
# About twice the standard error of the difference of two such means.
PARITY_POINTS = 1.0


def _parity(roles: Roles[ScoreRow]) -> tuple[Mapping[str, Any], bool]:
    base, rotary = roles[BASE], roles[ROTARY]
    differences = {
        column.key: base.mean(column.key) - rotary.mean(column.key)
        for column in (AVERAGE, *COLUMNS)
    }
    holds = abs(differences[AVERAGE.key]) <= PARITY_POINTS
    return {'nope_minus_rope_points': differences}, holds


PARITY = ClaimTest(
    1,
    'In-domain parity of NoPE and RoPE: mean of seven commonsense tasks 46.2 against 46.1.',
    f'The means of the seven scores differ by at most {PARITY_POINTS:g} point.',
    _parity,
)
TABLE = ScoreTable(
    evaluation='harness',
    axis='task',
    paper='table1',
    columns=COLUMNS,
    about=(
        'Zero-shot commonsense tasks, percent right and the unweighted mean: ours next to the '
        f"paper's Table 1 ({paper.SOURCE}). By the log-probability of each answer, divided by its "
        'length where the task has such a score (acc_norm), else as it is (acc: BoolQ, '
        'WinoGrande).'
    ),
    roles=(BASE, ROTARY),
    tests=(PARITY,),
)
required, draw = TABLE.required, TABLE.draw
