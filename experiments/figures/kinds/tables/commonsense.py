"""Zero-shot commonsense tasks inside the training length: the paper's Table 1."""

from __future__ import annotations

from experiments.figures.base import kind
from experiments.figures.claims import scores as claims
from experiments.figures.given import FigureInput
from experiments.figures.kinds.tables.scores import Rows, ScoreTable
from experiments.figures.read.tables import paper
from experiments.figures.read.tables.score_row import AVERAGE
from experiments.figures.read.tables.table import Column

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


@kind('commonsense_table')
class CommonsenseTable(ScoreTable):
    EVALUATION = 'harness'
    AXIS = 'task'
    PAPER = 'table1'
    COLUMNS = COLUMNS
    ABOUT = (
        'Zero-shot commonsense tasks, percent right and the unweighted mean: ours next to the '
        f"paper's Table 1 ({paper.SOURCE}). By the log-probability of each answer, divided by its "
        'length where the task has such a score (acc_norm), else as it is (acc: BoolQ, '
        'WinoGrande).'
    )
    ROLES = claims.ROLES
    RULES = claims.RULES

    def caption(self, given: FigureInput, rows: Rows) -> str:
        errors = [f'{r.error:.1f} ({r.option["label"]})' for r in rows if AVERAGE.key in r.scores]
        said = f' Standard errors of the means, by questions: {", ".join(errors)} points.'
        return super().caption(given, rows) + said * bool(errors)
