"""A table as GitHub's Markdown."""

from __future__ import annotations

from experiments.figures.read.tables.table import Cell, Column, Table, number, paper_text


def write(table: Table, caption: str) -> str:
    """The table, how its cells read, a footnote for each reason why a cell is missing, and the
    caption. A group of rows begins with its title in bold."""
    headers = ['', *table.headings]
    for column in table.columns:
        headers.append('<br>'.join(map(_text, filter(None, (column.group, column.label)))))
    lines = [_line(headers), _line([':---', *['---:'] * (len(headers) - 1)])]
    for group in table.groups:
        if group.title:
            lines.append(_line([f'**{_text(group.title)}**', *[''] * (len(headers) - 1)]))
        for row in group.rows:
            pairs = zip(table.columns, row.cells, strict=True)
            cells = [_cell(table, column, cell) for column, cell in pairs]
            lines.append(_line([_text(row.label), *map(_text, row.shown), *cells]))
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


def _line(cells: list[str]) -> str:
    return f'| {" | ".join(cells)} |'


def _cell(table: Table, column: Column, cell: Cell) -> str:
    """For example '14.6 ± 0.1 / 14.5 (+0.1)' or 'missing[^1] / 14.5'."""
    if cell.ours is None:
        text = f'missing[^{table.reasons.index(cell.reason) + 1}]'
    else:
        text = number(cell.ours, column.decimals)
    if cell.spread is not None:
        text += f' ± {number(cell.spread, column.decimals)}'
    if cell.paper is not None:
        text += f' / {_text(paper_text(cell, column))}'
    difference = column.difference(cell)
    if difference is not None:
        text += f' ({number(difference, column.decimals, "+")})'
    return text


def _text(text: str) -> str:
    """Without what Markdown takes for the end of a cell or for the beginning of a tag."""
    return text.replace('|', r'\|').replace('<', r'\<')
