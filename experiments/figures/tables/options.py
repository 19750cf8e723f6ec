"""Options that several kinds of table share: checks, and what rows show beside their label."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from experiments.figures import captions
from experiments.figures.base import check_options
from experiments.figures.tables import paper

Options = Mapping[str, Any]

# Of a row that was tuned: option -> heading and text.
SHOWN: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    'tuned': ('tuned at', lambda multiple: f'{multiple:g} L'),
    'tokens': ('tokens', captions.amount),
}


def shown_keys(rows: Sequence[Options]) -> tuple[str, ...]:
    """Those of SHOWN that a row gives."""
    return tuple(key for key in SHOWN if any(row.get(key) for row in rows))


def headings(keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(SHOWN[key][0] for key in keys)


def shown(row: Options, keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(SHOWN[key][1](row[key]) if row.get(key) else '' for key in keys)


def check_rows(figure: str, rows: Sequence[Options], accepted: Collection[str], table: str) -> None:
    """ValueError unless each row has a label of its own, keys that are `accepted`, and as 'paper'
    a row of the paper's `table` or ''."""
    for row in rows:
        check_options(figure, row, accepted, ('label',), 'rows')
        paper.check_row(figure, table, row.get('paper', ''))
    labels = [row['label'] for row in rows]
    if len(set(labels)) < len(labels):
        raise ValueError(f'figure {figure!r}: labels of rows must differ, got {labels}')


def check_shown(figure: str, row: Options) -> None:
    for key in SHOWN:
        if row.get(key) is not None:
            check_number(figure, f'{key} of row {row["label"]!r}', row[key])


def check_one_of(figure: str, row: Options, keys: Sequence[str]) -> None:
    """ValueError unless the row gives exactly one of `keys`."""
    given = [key for key in keys if row.get(key)]
    if len(given) != 1:
        raise ValueError(
            f'figure {figure!r}: row {row["label"]!r} must give one of {list(keys)}, got {given}'
        )


def check_number(figure: str, where: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or value <= 0:
        raise ValueError(f'figure {figure!r}: {where} must be a number above 0, got {value!r}')


def check_roles(
    figure: str, options: Options, single: Collection[str], by_multiple: Collection[str]
) -> None:
    """ValueError unless every role is known and is played by a row. single: roles of one label.
    by_multiple: roles of {multiple of L: label}."""
    roles = options.get('roles', {})
    check_options(figure, roles, (*single, *by_multiple), (), 'roles')
    labels = [row['label'] for row in options['rows']]
    for role, given in roles.items():
        if role in by_multiple:
            multiples(figure, role, given)
        for label in given.values() if role in by_multiple else [given]:
            if label not in labels:
                raise ValueError(
                    f'figure {figure!r}: role {role!r} is given to the row {label!r}; the rows '
                    f'are {labels}'
                )


def multiples(figure: str, role: str, given: Any) -> dict[float, str]:
    """Labels by multiple of L; in JSON the multiples are texts."""
    try:
        return {float(multiple): label for multiple, label in given.items()}
    except (AttributeError, TypeError, ValueError):
        raise ValueError(
            f'figure {figure!r}: role {role!r} must be {{multiple of L: label}}, got {given!r}'
        ) from None
