"""Perplexity in sliding windows of growing length: the paper's Table 2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.figures import roles
from experiments.figures.base import (
    Claim,
    FigureInput,
    FigureOutput,
    check_records,
    names_below,
    runs_of,
    shared_attribute,
)
from experiments.figures.claims import perplexity as claims
from experiments.figures.claims.decide import decide
from experiments.figures.kinds.tables import markdown, perplexity_caption, typeset
from experiments.figures.kinds.tables.perplexity_options import (
    measured_corpora,
    required,
    windows_of,
)
from experiments.figures.look import style
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
from experiments.figures.read.tables.table import Cell, Column, Row, Table, grouped, measured, tidy
from experiments.figures.roles import Roles

__all__ = ['decided', 'draw', 'required']

NOT_MEASURED = 'the records hold no window of this length'
NO_KEY = 'no token is key at this length, or it was not measured'
# Attributes that the records of a measure share.
ALIKE = {
    PERPLEXITY: ('train_length', 'stride', 'scored'),
    LONGPPL: ('train_length', 'short', 'stride', 'gain', 'ceiling', 'scored', 'evaluator'),
}


@style.styled
def draw(given: FigureInput) -> FigureOutput:
    """Options: corpora, {key, label, paper, missing, measure, windows} with paper 'pg19',
    'proof_pile' or '', missing the reason why none of the rows is measured there, measure
    'perplexity' (the default) or 'longppl', and windows in place of the following ones; windows,
    multiples of L; rows,
    {group, label, paper, tuned, tokens} with tuned a multiple of L, and one of record, choices
    ({factor, record} each) and missing (the reason); roles, the labels of the rows that
    claims speak of (claims/perplexity.py). The record of a corpus is named 'record@key'."""
    check_records(given, required(given.name, given.options))
    _check_alike(given)
    rows = _read(given)
    table = _table(given, rows)
    caption = perplexity_caption.caption(given, rows)
    return FigureOutput(
        given.name,
        typeset.draw(table),
        tidy(table),
        caption,
        decided(given),
        runs_of(given, list(dict.fromkeys(name for row in rows for name in row.names))),
        markdown.write(table, caption),
    )


def decided(given: FigureInput) -> list[Claim]:
    """Claims of an input that `draw` accepts."""
    corpora = measured_corpora(given.options)
    windows = sorted({window for corpus, window in _measured(given) if corpus in corpora})
    return decide(claims.RULES, _shown(given, _read(given), corpora, windows))


def _read(given: FigureInput) -> list[PerplexityRow]:
    return perplexity_rows.read(given, _measured(given), measured_corpora(given.options))


def _measured(given: FigureInput) -> list[perplexity_rows.Key]:
    """Every corpus that is not missing with each of its windows."""
    return [
        (corpus['key'], float(window))
        for corpus in given.options['corpora']
        if not corpus.get('missing')
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


def _shown(
    given: FigureInput,
    rows: Sequence[PerplexityRow],
    corpora: Sequence[str],
    windows: Sequence[float],
) -> claims.ShownPerplexity:
    """Values that decide claims: of a method with factors the best one for each window."""
    players = {row.name: row for row in rows if row.variant != ONE_FACTOR}
    roles.check_searched(
        given, claims.HEADSCALE, {name: row.names for name, row in players.items()}
    )
    return claims.ShownPerplexity(
        Roles(given.name, given.options, players, 'row'),
        {row.name: row for row in rows if row.variant == ONE_FACTOR},
        corpora,
        windows,
    )


def _table(given: FigureInput, rows: Sequence[PerplexityRow]) -> Table:
    played = given.options.get('roles', {}).get(claims.BASE)
    base = next((row for row in rows if row.name == played), None)
    keys = options.shown_keys(given.options['rows'])
    made = [
        (
            row.option.get('group', ''),
            Row(
                row.label,
                tuple(_cells(given, row, base)),
                options.shown(row.option, keys),
                _row_facts(row),
            ),
        )
        for row in rows
    ]
    columns = _columns(given, perplexity_caption.token_name(given, rows))
    return Table(columns, grouped(made), options.headings(keys))


def _columns(given: FigureInput, token: str) -> tuple[Column, ...]:
    return tuple(
        Column(
            f'{corpus["key"]} {window:g} L',
            'L' if window == 1 else f'{window:g} L',
            corpus.get('label') or corpus['key'],
            perplexity_caption.DECIMALS.get(token, 1),
            {'corpus': corpus['key'], 'window_over_L': window},
            comparable=perplexity_caption.comparable(token),
        )
        for corpus in given.options['corpora']
        for window in windows_of(given.options, corpus)
    )


def _row_facts(row: PerplexityRow) -> dict[str, Any]:
    return {
        'factors': row.variant,
        'tuned_over_L': row.option.get('tuned'),
        'tokens': row.option.get('tokens'),
        'paper_tokens': paper.tuning_tokens(row.paper),
    }


def _cells(given: FigureInput, row: PerplexityRow, base: PerplexityRow | None) -> list[Cell]:
    return [
        _cell(row, base, corpus, float(window))
        for corpus in given.options['corpora']
        for window in windows_of(given.options, corpus)
    ]


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
        reason = row.option.get('missing') or corpus.get('missing') or absent
        return Cell(None, printed, reason, facts=facts)
    return measured(value.perplexity, printed, facts)


def _ratio(value: paper.Printed, start: paper.Printed) -> float | None:
    if not isinstance(value, int | float) or not isinstance(start, int | float):
        return None
    return value / start
