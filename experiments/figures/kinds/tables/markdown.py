"""A table as GitHub's Markdown."""

from __future__ import annotations

from experiments.figures.look import web
from experiments.figures.read.tables.table import Cell, Column, Table, number, paper_text


def write(table: Table, caption: str) -> str:
    """The table, how its cells read, a footnote for each reason why a cell is missing, and the
    caption. A group of rows begins with its title in bold."""
    headers = ['', *table.headings]
    for column in table.columns:
        headers.append('<br>'.join(map(web.cell, filter(None, (column.group, column.label)))))
    lines = [web.row(headers), web.row([':---', *['---:'] * (len(headers) - 1)])]
    for group in table.groups:
        if group.title:
            lines.append(web.row([f'**{web.cell(group.title)}**', *[''] * (len(headers) - 1)]))
        for row in group.rows:
            pairs = zip(table.columns, row.cells, strict=True)
            cells = [_cell(table, column, cell) for column, cell in pairs]
            lines.append(web.row([web.cell(row.label), *map(web.cell, row.shown), *cells]))
    notes = [f'[^{i}]: missing: {reason}' for i, reason in enumerate(table.reasons, start=1)]
    return '\n\n'.join(['\n'.join(lines), _legend(table), *notes, caption]) + '\n'


def _legend(table: Table) -> str:
    several = any(cell.spread is not None for cell in table.cells)
    spread = ' ± standard deviation over runs' if several else ''
    compared = any(
        column.difference(cell) is not None
        for row in table.rows
        for column, cell in zip(table.columns, row.cells, strict=True)
    )
    less = " (ours less the paper's)" if compared else ''
    return f"Ours{spread} / the paper's{less}."


def _cell(table: Table, column: Column, cell: Cell) -> str:
    """For example '14.6 ± 0.1 / 14.5 (+0.1)' or 'missing[^1] / 14.5'."""
    if cell.ours is None:
        text = f'missing[^{table.reasons.index(cell.reason) + 1}]'
    else:
        text = number(cell.ours, column.decimals)
    if cell.spread is not None:
        text += f' ± {number(cell.spread, column.decimals)}'
    if cell.paper is not None:
        text += f' / {web.cell(paper_text(cell, column))}'
    difference = column.difference(cell)
    if difference is not None:
        text += f' ({number(difference, column.decimals, "+")})'
    return text
