"""HeadScale without its parts: the paper's Table 4."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments.figures import roles
from experiments.figures.base import kind
from experiments.figures.claims import ablations as claims
from experiments.figures.claims.ablations import LONGBENCH, PASSKEY, AblationRow
from experiments.figures.given import FigureInput, check_options, names_below
from experiments.figures.kinds.tables import longbench, perplexity_caption, perplexity_options
from experiments.figures.kinds.tables.figure import TableFigure
from experiments.figures.kinds.tables.scores import by_task
from experiments.figures.look import captions
from experiments.figures.read.by_seed import of_models
from experiments.figures.read.tables import options, paper, perplexity_rows
from experiments.figures.read.tables.options import Options
from experiments.figures.read.tables.perplexity_rows import record_name
from experiments.figures.read.tables.table import Cell, Column, RowGroup, Table, TableRow, measured
from experiments.figures.roles import Roles
from nope.records import Records

PERPLEXITY = 'perplexity'
ROW = ('label', 'paper', PERPLEXITY, PASSKEY, LONGBENCH)
# The paper's windows, and its longest prompts inside the window, in multiples of L.
WINDOW = 8.0
# Columns of the CSV that tables of other rows fill.
NOT_TUNED = {'tuned_over_L': None, 'tokens': None}
PAPER_COLUMNS = {
    'pg19': 'ppl16k_pg19',
    'proof_pile': 'ppl16k_proof_pile',
    PASSKEY: 'passkey_acc_percent',
    LONGBENCH: 'longbench_avg',
}
OUTSIDE = 'no prompt of the grid fits into the window'
NOT_MEASURED = 'the records hold no window of this length'
PARTIAL = 'the records lack tasks of the mean'


Rows = Sequence[AblationRow]


@kind('ablation_table')
class AblationTable(TableFigure[Rows]):
    """HeadScale without its parts. Options:

    - corpora: as of the table of perplexities.
    - rows: {label, paper, perplexity, passkey, longbench}; the last three name records, perplexity
      without its corpus.
    - missing: {'longbench': the reason} where a row does not name it.
    - roles: of labels of rows (claims/ablations.py).
    """

    OPTIONS, NEEDED = ('corpora', 'rows', 'missing', 'roles'), ('corpora', 'rows')
    RULES = claims.RULES

    def needs(self, name: str, given: Options) -> dict[str, str]:
        perplexity_options.check_corpora(name, given['corpora'])
        reasons = given.get('missing', {})
        check_options(name, reasons, (LONGBENCH,), (), 'missing')
        options.check_rows(name, given['rows'], ROW, 'table4', (PERPLEXITY, PASSKEY))
        for row in given['rows']:
            if not row.get(LONGBENCH) and not reasons.get(LONGBENCH):
                raise ValueError(
                    f'figure {name!r}: row {row["label"]!r} has no record for {LONGBENCH!r}; '
                    f'missing must then give the reason, got {dict(reasons)}'
                )
        roles.check(name, given, roles.parts(claims.ROLES, options.labels(given), 'row'))
        needs = {}
        for row in given['rows']:
            for corpus in perplexity_options.measured_corpora(given):
                needs[record_name(row[PERPLEXITY], corpus)] = PERPLEXITY
            needs |= {row[key]: key for key in (PASSKEY, LONGBENCH) if row.get(key)}
        return needs

    def read(self, given: FigureInput) -> Rows:
        return [_read(given, option) for option in given.options['rows']]

    def shown(self, given: FigureInput, rows: Rows) -> claims.ShownAblations:
        players = Roles(given.name, given.options, {row.label: row for row in rows}, 'row')
        return claims.ShownAblations(players, given.options['corpora'])

    def table(self, given: FigureInput, rows: Rows) -> Table:
        token = perplexity_caption.token_name(given, rows)
        title = f'perplexity at {WINDOW:g} L'
        decimals = perplexity_caption.DECIMALS.get(token, 1)
        same = perplexity_caption.comparable(token)
        columns = (
            *(
                Column(c['key'], c.get('label') or c['key'], title, decimals, comparable=same)
                for c in given.options['corpora']
            ),
            Column(PASSKEY, 'passkey, %'),
            Column(LONGBENCH, 'LongBench'),
        )
        made = []
        for row in rows:
            cells = (
                *(_perplexity_cell(row, corpus) for corpus in given.options['corpora']),
                *(_score_cell(row, key) for key in (PASSKEY, LONGBENCH)),
            )
            made.append(TableRow(row.label, cells, facts=NOT_TUNED))
        return Table(columns, (RowGroup('', tuple(made)),))

    def caption(self, given: FigureInput, rows: Rows) -> str:
        labelled = {row.label: [given.records[n] for n in row.names] for row in rows}
        sentences = [
            'HeadScale and what it is without its parts: perplexity in sliding windows of '
            f'{WINDOW:g} L, passkey accuracy over all lengths up to {WINDOW:g} L that the context '
            "of the model reaches and all depths, unweighted mean of LongBench's 16 scores; means "
            "over searches of several orders of examples, next to the paper's Table 4 "
            f'({paper.SOURCE}), which has one search a row, each of another order.',
            perplexity_caption.units(perplexity_caption.token_name(given, rows)),
            captions.sources(labelled),
        ]
        return ' '.join(sentence for sentence in sentences if sentence)


def _read(given: FigureInput, option: Options) -> AblationRow:
    corpora = perplexity_options.measured_corpora(given.options)
    record = option[PERPLEXITY]
    shown = [(corpus, WINDOW) for corpus in corpora]
    values = perplexity_rows.values_of(given, record, shown)
    scores: dict[str, np.ndarray] = {}
    by_seed: dict[str, np.ndarray] = {}
    lacking = dict(given.options.get('missing', {}))
    names = [n for c in corpora for n in names_below(given, record_name(record, c))]
    for key in (PASSKEY, LONGBENCH):
        found = names_below(given, option[key]) if option.get(key) else []
        names += found
        records = [given.records[name] for name in found]
        means = [passkey_inside(r) if key == PASSKEY else longbench_mean(r) for r in records]
        if records and None not in means:
            scores[key] = np.array(means, dtype=np.float64)
            by_seed[key] = of_models(scores[key], records)
        elif records:
            lacking[key] = OUTSIDE if key == PASSKEY else PARTIAL
    by_corpus = {corpus: value for (corpus, _), value in values.items()}
    return AblationRow(option, by_corpus, scores, by_seed, lacking, tuple(names))


def passkey_inside(records: Records) -> float | None:
    """Percent right, the mean over all cells of lengths up to `WINDOW` L and up to the model's
    window; None where no length is."""
    accuracy = records['accuracy']
    lengths = records.along('length', len(accuracy))
    facts = records.attributes
    inside = lengths <= min(facts['window'], WINDOW * facts['train_length'])
    return 100 * float(accuracy[inside].mean()) if inside.any() else None


def longbench_mean(records: Records) -> float | None:
    """The unweighted mean of all tasks; None where one is missing."""
    scores = by_task(records, longbench.LongBenchTable.AXIS)
    tasks = [column.key for column in longbench.COLUMNS]
    return float(np.mean([scores[t] for t in tasks])) if set(tasks) <= set(scores) else None


def _perplexity_cell(row: AblationRow, corpus: Options) -> Cell:
    column = PAPER_COLUMNS.get(corpus.get('paper', ''), '')
    printed = paper.value('table4', row.option.get('paper', ''), column)
    value = row.perplexity.get(corpus['key'])
    if value is not None:
        return measured(value.perplexity, printed)
    return Cell(None, printed, NOT_MEASURED)


def _score_cell(row: AblationRow, key: str) -> Cell:
    printed = paper.value('table4', row.option.get('paper', ''), PAPER_COLUMNS[key])
    if key in row.scores:
        return measured(row.scores[key], printed)
    return Cell(None, printed, row.lacking[key])
