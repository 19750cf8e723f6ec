"""Options of several kinds of table: checks, and what rows show beside their label."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from experiments.figures.given import check_differ, check_options
from experiments.figures.read.tables import paper
from nope.runtime.amounts import amount

Options = Mapping[str, Any]

# Of a row that was tuned: option -> heading and text.
SHOWN: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    'tuned': ('tuned at', lambda multiple: f'{multiple:g} L'),
    'tokens': ('tokens', amount),
}


def shown_keys(rows: Sequence[Options]) -> tuple[str, ...]:
    """Those of SHOWN that a row gives."""
    return tuple(key for key in SHOWN if any(row.get(key) for row in rows))


def headings(keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(SHOWN[key][0] for key in keys)


def shown(row: Options, keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(SHOWN[key][1](row[key]) if row.get(key) else '' for key in keys)


def check_rows(
    figure: str,
    rows: Sequence[Options],
    accepted: Collection[str],
    table: str,
    needed: Collection[str] = (),
) -> None:
    """ValueError unless each row has a label of its own, keys that are `accepted`, all `needed`
    ones, and as 'paper' a row of the paper's `table` or ''."""
    for row in rows:
        check_options(figure, row, accepted, ('label', *needed), 'rows')
        paper.check_row(figure, table, row.get('paper', ''))
    check_differ(figure, 'labels of rows', [row['label'] for row in rows])


def check_shown(figure: str, row: Options) -> None:
    for key in SHOWN:
        if row.get(key) is not None:
            check_number(figure, f'{key} of row {row["label"]!r}', row[key])


def check_number(figure: str, where: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or value <= 0:
        raise ValueError(f'figure {figure!r}: {where} must be a number above 0, got {value!r}')


def labels(options: Options) -> list[str]:
    """Of the rows, which roles are given to."""
    return [row['label'] for row in options['rows']]
