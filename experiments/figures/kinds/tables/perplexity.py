"""Perplexity in sliding windows of growing length: the paper's Table 2."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.figures import roles
from experiments.figures.base import kind
from experiments.figures.claims import perplexity as claims
from experiments.figures.given import FigureInput, names_below, shared_attribute
from experiments.figures.kinds.tables import perplexity_caption, perplexity_options
from experiments.figures.kinds.tables.figure import TableFigure
from experiments.figures.kinds.tables.perplexity_options import measured_corpora, windows_of
from experiments.figures.read.tables import options, paper, perplexity_rows
from experiments.figures.read.tables.options import Options
from experiments.figures.read.tables.perplexity_rows import (
    LONGPPL,
    MEASURES,
    ONE_FACTOR,
    PERPLEXITY,
    PerplexityRow,
    measure_of,
    record_name,
)
from experiments.figures.read.tables.table import Cell, Column, Table, TableRow, grouped, measured
from experiments.figures.roles import Roles

NOT_MEASURED = 'the records hold no window of this length'
NO_KEY = 'no token is key at this length, or it was not measured'
# Attributes that the records of a measure share.
ALIKE = {
    PERPLEXITY: ('train_length', 'stride', 'scored'),
    LONGPPL: ('train_length', 'short', 'stride', 'gain', 'ceiling', 'scored', 'evaluator'),
}


Rows = Sequence[PerplexityRow]


@kind('perplexity_table')
class PerplexityTable(TableFigure[Rows]):
    """Perplexity by window. The record of a corpus is named 'record@key'. Options:

    - corpora: {key, label, paper, measure, windows}. paper: 'pg19', 'proof_pile' or ''. measure:
      'perplexity' (default) or 'longppl'.
    - windows: multiples of L; a corpus may have its own.
    - rows: {group, label, paper, tuned, tokens} with tuned a multiple of L, and one of record,
      choices ({factor, record} each) and missing (the reason).
    - roles: of labels of rows (claims/perplexity.py).
    """

    OPTIONS, NEEDED = ('windows', 'corpora', 'rows', 'roles'), ('corpora', 'rows')
    RULES = claims.RULES
    RESAMPLED = True

    def needs(self, name: str, given: Options) -> dict[str, str]:
        return perplexity_options.needs(name, given)

    def read(self, given: FigureInput) -> Rows:
        _check_alike(given)
        return perplexity_rows.read(given, _measured(given), measured_corpora(given.options))

    def shown(self, given: FigureInput, rows: Rows) -> claims.ShownPerplexity:
        """Values that decide claims: of a method with factors the best one for each window."""
        corpora = measured_corpora(given.options)
        windows = sorted({window for corpus, window in _measured(given) if corpus in corpora})
        players = {row.name: row for row in rows if row.variant != ONE_FACTOR}
        names = {name: row.names for name, row in players.items()}
        roles.check_length(given, claims.HEADSCALE, names)
        return claims.ShownPerplexity(
            Roles(given.name, given.options, players, 'row'), corpora, windows
        )

    def caption(self, given: FigureInput, rows: Rows) -> str:
        return perplexity_caption.caption(given, rows)

    def table(self, given: FigureInput, rows: Rows) -> Table:
        played = given.options.get('roles', {}).get(claims.BASE)
        base = next((row for row in rows if row.name == played), None)
        keys = options.shown_keys(given.options['rows'])
        token = perplexity_caption.token_name(given, rows)
        shown = [(c, w) for c in given.options['corpora'] for w in windows_of(given.options, c)]
        columns = tuple(
            Column(
                f'{corpus["key"]} {window:g} L',
                'L' if window == 1 else f'{window:g} L',
                corpus.get('label') or corpus['key'],
                perplexity_caption.DECIMALS.get(token, 1),
                {'corpus': corpus['key'], 'window_over_L': window},
                comparable=perplexity_caption.comparable(token),
            )
            for corpus, window in shown
        )
        made = []
        for row in rows:
            facts = {
                'factors': row.variant,
                'tuned_over_L': row.option.get('tuned'),
                'tokens': row.option.get('tokens'),
                'paper_tokens': paper.tuning_tokens(row.paper),
            }
            cells = tuple(_cell(row, base, corpus, float(window)) for corpus, window in shown)
            named = TableRow(row.label, cells, options.shown(row.option, keys), facts)
            made.append((row.option.get('group', ''), named))
        return Table(columns, grouped(made), options.headings(keys))


def _measured(given: FigureInput) -> list[perplexity_rows.Key]:
    """Every corpus with each of its windows."""
    return [
        (corpus['key'], float(window))
        for corpus in given.options['corpora']
        for window in windows_of(given.options, corpus)
    ]


def _check_alike(given: FigureInput) -> None:
    """ValueError where records that share a column, or a measure, were not measured alike."""
    for measure in MEASURES:
        everything = []
        for corpus in measured_corpora(given.options, measure):
            names = [
                found
                for row in given.options['rows']
                for record in perplexity_rows.records_of(row)
                for found in names_below(given, record_name(record, corpus))
            ]
            if names:
                shared_attribute(given, names, 'corpus')
            everything += names
        for attribute in ALIKE[measure] if everything else ():
            shared_attribute(given, everything, attribute)


def _cell(row: PerplexityRow, base: PerplexityRow | None, corpus: Options, window: float) -> Cell:
    printed = paper.perplexity(row.paper, corpus.get('paper', ''), window)
    value = row.values.get((corpus['key'], window))
    start = base.values.get((corpus['key'], 1.0)) if base else None
    printed_start = paper.perplexity(base.paper, corpus.get('paper', ''), 1) if base else None
    ours = None if value is None else float(value.perplexity.mean())
    facts = {
        'factor': value.factor if value else None,
        'loss_nats': value.mean_loss if value else None,
        'ratio': _ratio(ours, None if start is None else float(start.perplexity.mean())),
        'paper_ratio': _ratio(printed, printed_start),
    }
    if value is None:
        absent = NO_KEY if measure_of(corpus) == LONGPPL else NOT_MEASURED
        reason = row.option.get('missing') or absent
        return Cell(None, printed, reason, facts=facts)
    return measured(value.perplexity, printed, facts)


def _ratio(value: paper.Printed, start: paper.Printed) -> float | None:
    if not isinstance(value, int | float) or not isinstance(start, int | float):
        return None
    return value / start
