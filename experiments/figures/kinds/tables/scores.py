"""Tables of one score for each of a fixed list of tasks, and their unweighted mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures import roles
from experiments.figures.given import FigureInput, names_below
from experiments.figures.kinds.tables.figure import TableFigure
from experiments.figures.look import captions
from experiments.figures.read.tables import options, paper
from experiments.figures.read.tables.options import Options
from experiments.figures.read.tables.score_row import AVERAGE, ScoreRow
from experiments.figures.read.tables.table import Cell, Column, Table, TableRow, grouped, measured
from experiments.figures.roles import Roles, Shape
from nope.records import Records

ROW = ('group', 'label', 'paper', 'record', *options.SHOWN)
NOT_SCORED = 'the records hold no score of this task'
PARTIAL = 'a task of the mean is missing'


Rows = Sequence[ScoreRow]


class ScoreTable(TableFigure[Rows]):
    """Options: rows, {group, label, paper, tuned, tokens, record}; roles, of labels of rows.

    - EVALUATION, AXIS: of the records; scores lie along the axis.
    - PAPER: name of the paper's table.
    - COLUMNS: the tasks.
    - ABOUT: beginning of the caption.
    - ROLES: of claims.
    """

    OPTIONS, NEEDED = ('rows', 'roles'), ('rows',)
    EVALUATION: str
    AXIS: str
    PAPER: str
    COLUMNS: tuple[Column, ...]
    ABOUT: str
    ROLES: Mapping[str, Shape]

    def __init_subclass__(cls) -> None:
        cls.MEASURES = {cls.EVALUATION: dict.fromkeys(('score', 'samples'), (cls.AXIS,))}

    def needs(self, name: str, given: Options) -> dict[str, str]:
        options.check_rows(name, given['rows'], ROW, self.PAPER, ('record',))
        for row in given['rows']:
            options.check_shown(name, row)
        roles.check(name, given, roles.parts(self.ROLES, options.labels(given), 'row'))
        return {row['record']: self.EVALUATION for row in given['rows']}

    def read(self, given: FigureInput) -> Rows:
        return [self._read(given, option) for option in given.options['rows']]

    def shown(self, given: FigureInput, rows: Rows) -> Roles[ScoreRow]:
        players = {row.option['label']: row for row in rows}
        return Roles(given.name, given.options, players, 'row')

    def table(self, given: FigureInput, rows: Rows) -> Table:
        keys = options.shown_keys([row.option for row in rows])
        columns = (AVERAGE, *self.COLUMNS)
        made = []
        for row in rows:
            cells = tuple(self._cell(row, column) for column in columns)
            facts = {'tuned_over_L': row.option.get('tuned'), 'tokens': row.option.get('tokens')}
            shown = options.shown(row.option, keys)
            named = TableRow(row.option['label'], cells, shown, facts)
            made.append((row.option.get('group', ''), named))
        return Table(columns, grouped(made), options.headings(keys))

    def caption(self, given: FigureInput, rows: Rows) -> str:
        labelled = {r.option['label']: [given.records[n] for n in r.names] for r in rows}
        return f'{self.ABOUT} {captions.sources(labelled)}'

    def _read(self, given: FigureInput, option: Options) -> ScoreRow:
        names = tuple(names_below(given, option['record']))
        found = [by_task(given.records[name], self.AXIS) for name in names]
        scores = {
            column.key: np.array([f[column.key] for f in found])
            for column in self.COLUMNS
            if all(column.key in f for f in found)
        }
        if len(scores) == len(self.COLUMNS):
            scores[AVERAGE.key] = np.mean(list(scores.values()), axis=0)
        samples = by_task(given.records[names[0]], self.AXIS, 'samples')
        return ScoreRow(option, names, scores, {k: int(v) for k, v in samples.items()})

    def _cell(self, row: ScoreRow, column: Column) -> Cell:
        printed = paper.value(self.PAPER, row.option.get('paper', ''), column.key)
        facts = {'samples': row.samples.get(column.key)}
        if column.key in row.scores:
            return measured(row.scores[column.key], printed, facts)
        return Cell(None, printed, PARTIAL if column is AVERAGE else NOT_SCORED, facts=facts)


def by_task(records: Records, axis: str, measure: str = 'score') -> dict[str, Any]:
    """Task -> value."""
    values = records[measure]
    tasks = records.along(axis, len(values))
    return {str(task): value for task, value in zip(tasks, values.tolist(), strict=True)}
