"""Options of the table of perplexities."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.figures import roles
from experiments.figures.claims import perplexity as claims
from experiments.figures.given import check_choice, check_differ, check_options
from experiments.figures.read.tables import options, paper, perplexity_rows
from experiments.figures.read.tables.options import Options
from experiments.figures.read.tables.perplexity_rows import (
    MEASURES,
    PERPLEXITY,
    measure_of,
    record_name,
)

CORPUS = ('key', 'label', 'paper')
# What else the table says of a corpus: which measure of it, and windows of its own.
COLUMNS = (*CORPUS, 'measure', 'windows')
ROW = ('group', 'label', 'paper', *options.SHOWN)
SOURCE = ('record', 'choices', 'missing')
WINDOWS = (1, 2, 4, 8)


def needs(name: str, given: Options) -> dict[str, str]:
    """Names of records -> evaluation."""
    check_corpora(name, given['corpora'], COLUMNS)
    for corpus in given['corpora']:
        check_choice(name, 'measure of a corpus', measure_of(corpus), MEASURES)
        multiples = windows_of(given, corpus)
        for multiple in multiples:
            options.check_number(name, 'windows', multiple)
        if sorted(set(multiples)) != list(multiples):
            raise ValueError(f'figure {name!r}: windows must ascend, got {list(multiples)}')
    options.check_rows(name, given['rows'], (*ROW, *SOURCE), 'table2')
    for row in given['rows']:
        _check_row(name, row)
    roles.check(name, given, roles.parts(claims.ROLES, options.labels(given), 'row'))
    return {
        record_name(record, corpus): measure
        for row in given['rows']
        for record in perplexity_rows.records_of(row)
        for measure in MEASURES
        for corpus in measured_corpora(given, measure)
    }


def check_corpora(name: str, corpora: Sequence[Options], accepted: Sequence[str] = CORPUS) -> None:
    """ValueError, naming the figure, unless each corpus has accepted fields alone, a key of its own
    and a known name of the paper's."""
    for corpus in corpora:
        check_options(name, corpus, accepted, ('key',), 'corpora')
        check_choice(name, 'paper of a corpus', corpus.get('paper', ''), ('', *paper.CORPORA))
    check_differ(name, 'keys of corpora', [corpus['key'] for corpus in corpora])


def _check_row(name: str, row: Options) -> None:
    given = [key for key in SOURCE if row.get(key)]
    if len(given) != 1:
        raise ValueError(
            f'figure {name!r}: row {row["label"]!r} must give one of {list(SOURCE)}, got {given}'
        )
    options.check_shown(name, row)
    choices = row.get('choices', ())
    for choice in choices:
        check_options(name, choice, ('factor', 'record'), ('factor', 'record'), 'choices')
        options.check_number(name, f'factor of row {row["label"]!r}', choice['factor'])
    check_differ(name, f'factors of row {row["label"]!r}', [c['factor'] for c in choices])


def windows_of(given: Options, corpus: Options) -> tuple[float, ...]:
    """Multiples of L that are shown of a corpus."""
    return tuple(corpus.get('windows') or given.get('windows', WINDOWS))


def measured_corpora(given: Options, measure: str = PERPLEXITY) -> list[str]:
    """Keys of the corpora that rows have records of a measure of."""
    return [corpus['key'] for corpus in given['corpora'] if measure_of(corpus) == measure]
