"""Tables of one score for each of a fixed list of tasks, and their unweighted mean."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures import roles
from experiments.figures.base import (
    FigureInput,
    FigureOutput,
    check_options,
    check_records,
    names_below,
    runs_of,
)
from experiments.figures.claims.decide import Rule, decide
from experiments.figures.kinds.tables import markdown, typeset
from experiments.figures.look import captions, style
from experiments.figures.read.tables import options, paper
from experiments.figures.read.tables.options import Options
from experiments.figures.read.tables.score_row import AVERAGE, ScoreRow
from experiments.figures.read.tables.table import Cell, Column, Row, Table, grouped, measured, tidy
from experiments.figures.roles import Roles, Shape
from nope.records import Records

ROW = ('group', 'label', 'paper', *options.SHOWN)
SOURCE = ('record', 'missing')
NOT_SCORED = 'the records hold no score of this task'
PARTIAL = 'a task of the mean is missing'


@dataclasses.dataclass(frozen=True)
class ScoreTable:
    """A kind of table. columns: the tasks. axis: of the records. paper: name of the paper's table.
    about: what the caption says before the sources. roles, rules: of claims."""

    evaluation: str
    axis: str
    paper: str
    columns: tuple[Column, ...]
    about: str
    roles: Mapping[str, Shape] = dataclasses.field(default_factory=dict)
    rules: tuple[Rule[Roles[ScoreRow]], ...] = ()

    def required(self, name: str, given: Options) -> dict[str, str]:
        """Names of records -> evaluation. ValueError for options that figure `name` of this kind
        does not have."""
        accepted = ('rows', 'roles') if self.roles else ('rows',)
        check_options(name, given, accepted, ('rows',))
        options.check_rows(name, given['rows'], (*ROW, *SOURCE), self.paper)
        for row in given['rows']:
            options.check_one_of(name, row, SOURCE)
            options.check_shown(name, row)
        roles.check(name, given, roles.parts(self.roles, options.labels(given), 'row'))
        return {row['record']: self.evaluation for row in given['rows'] if row.get('record')}

    @property
    def draw(self) -> Callable[[FigureInput], FigureOutput]:
        return style.styled(self._draw)

    def _draw(self, given: FigureInput) -> FigureOutput:
        """Options: rows, {group, label, paper, tuned, tokens} and one of record and missing (the
        reason); where there are claims roles, the labels of the rows that they speak of."""
        measures = {self.evaluation: {'score': (self.axis,), 'samples': (self.axis,)}}
        check_records(given, self.required(given.name, given.options), measures)
        rows = [self._read(given, option) for option in given.options['rows']]
        table, caption = self._table(rows), self._caption(given, rows)
        players = Roles(given.name, given.options, {r.option['label']: r for r in rows}, 'row')
        return FigureOutput(
            given.name,
            typeset.draw(table),
            tidy(table),
            caption,
            decide(self.rules, players),
            runs_of(given, list(dict.fromkeys(name for row in rows for name in row.names))),
            markdown.write(table, caption),
        )

    def _read(self, given: FigureInput, option: Options) -> ScoreRow:
        names = tuple(names_below(given, option['record'])) if option.get('record') else ()
        found = [by_task(given.records[name], self.axis) for name in names]
        scores = {
            column.key: np.array([f[column.key] for f in found])
            for column in self.columns
            if found and all(column.key in f for f in found)
        }
        if len(scores) == len(self.columns):
            scores[AVERAGE.key] = np.mean(list(scores.values()), axis=0)
        samples = by_task(given.records[names[0]], self.axis, 'samples') if names else {}
        return ScoreRow(option, names, scores, {k: int(v) for k, v in samples.items()})

    def _table(self, rows: Sequence[ScoreRow]) -> Table:
        keys = options.shown_keys([row.option for row in rows])
        columns = (AVERAGE, *self.columns)
        made = [
            (
                row.option.get('group', ''),
                Row(
                    row.option['label'],
                    tuple(self._cell(row, column) for column in columns),
                    options.shown(row.option, keys),
                    {'tuned_over_L': row.option.get('tuned'), 'tokens': row.option.get('tokens')},
                ),
            )
            for row in rows
        ]
        return Table(columns, grouped(made), options.headings(keys))

    def _cell(self, row: ScoreRow, column: Column) -> Cell:
        printed = paper.value(self.paper, row.option.get('paper', ''), column.key)
        facts = {'samples': row.samples.get(column.key)}
        if column.key in row.scores:
            return measured(row.scores[column.key], printed, facts)
        lacking = PARTIAL if column is AVERAGE else NOT_SCORED
        return Cell(None, printed, row.option.get('missing') or lacking, facts=facts)

    def _caption(self, given: FigureInput, rows: Sequence[ScoreRow]) -> str:
        labelled = {r.option['label']: [given.records[n] for n in r.names] for r in rows if r.names}
        return f'{self.about} {captions.sources(labelled) if labelled else ""}'.rstrip()


def by_task(records: Records, axis: str, measure: str = 'score') -> dict[str, Any]:
    """Task -> value."""
    values = records[measure]
    tasks = records.along(axis, len(values))
    return {str(task): value for task, value in zip(tasks, values.tolist(), strict=True)}
