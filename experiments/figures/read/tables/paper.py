"""Numbers that arXiv 2404.12224 prints in its Tables 1 to 4, as data beside this file."""

from __future__ import annotations

import functools
import json
import math
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

SOURCE = 'arXiv 2404.12224'
LENGTH = 2048  # the training length L of its models, in tokens
CORPORA = ('pg19', 'proof_pile')

Printed = float | str | None


@functools.cache
def table(name: str) -> Mapping[str, Any]:
    """'table1' to 'table4': columns and rows; those of table 2 hold each corpus, the tuned
    length in tokens and the tokens of the tuning in millions."""
    return json.loads(pathlib.Path(__file__).with_name('paper.json').read_text())[name]


def value(name: str, row: str, column: str) -> Printed:
    """A cell of tables 1, 3 and 4; None where `row` is '' or the paper has no such column."""
    found = table(name)
    if not row or column not in found['columns']:
        return None
    return found['rows'][row][found['columns'].index(column)]


def perplexity(row: str, corpus: str, multiple: float) -> Printed:
    """A cell of table 2, at a window of `multiple` L: a number, or '>1000'. None for a cell that
    the paper has not, or an empty `row` or `corpus`."""
    found = table('table2')
    if not row or not corpus:
        return None
    for length, printed in zip(found['columns'], found['rows'][row][corpus], strict=True):
        if math.isclose(length, multiple * LENGTH):
            return printed
    return None


def tuning_tokens(row: str) -> int | None:
    """Tokens of the tuning as table 2 prints them."""
    millions = table('table2')['rows'][row]['tokens_M'] if row else None
    return None if millions is None else round(millions * 10**6)


def notes(rows: Iterable[str]) -> list[str]:
    """Notes on these rows of table 2, such as misprints."""
    noted = table('table2')['notes']
    return list(dict.fromkeys(noted[row] for row in rows if row in noted))


def check_row(figure: str, name: str, row: str) -> None:
    """ValueError, naming the figure, unless `row` is one of the table's, or '' for none."""
    rows = table(name)['rows']
    if row and row not in rows:
        raise ValueError(
            f"figure {figure!r}: paper is {row!r}; accepted: '' and the rows of the paper's "
            f'{name}, {sorted(rows)}'
        )
