"""Tables of figures in Markdown, and their Markdown as HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence


def table_of(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Table in Markdown; cells are Markdown already."""
    return ''.join(f'{row(cells)}\n' for cells in (head, ['---'] * len(head), *rows))


def row(cells: Iterable[str]) -> str:
    """Row of a table in Markdown; cells are Markdown already."""
    return f'| {" | ".join(cells)} |'


def cell(text: str) -> str:
    """Text without what Markdown takes for the end of a cell or for the beginning of a tag."""
    return text.replace('|', r'\|').replace('<', r'\<').replace('\n', ' ')


def html_of(markdown: str) -> str:
    """Fragment of HTML; text that is no such Markdown is a paragraph, escaped."""
    blocks = (block.split('\n') for block in re.split(r'\n{2,}', markdown.strip()))
    return '\n'.join(
        _table(lines) if lines[0].startswith('|') else f'<p>{_inline(" ".join(lines))}</p>'
        for lines in blocks
    )


def _table(lines: Sequence[str]) -> str:
    """A line of headings, one of dashes, and rows."""
    head, *rows = (_cells(line) for line in (lines[0], *lines[2:]))
    headings = ''.join(f'<th scope="col">{cell}</th>' for cell in head)
    body = '\n'.join(
        f'<tr><th scope="row">{row[0]}</th>{"".join(f"<td>{cell}</td>" for cell in row[1:])}</tr>'
        for row in rows
    )
    return f'<table>\n<thead><tr>{headings}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>'


def _cells(line: str) -> list[str]:
    return [_inline(cell.strip()) for cell in re.split(r'(?<!\\)\|', line.strip().strip('|'))]


def _inline(text: str) -> str:
    plain = (
        part.replace(r'\|', '|').replace(r'\<', '<') for part in re.split(r'(?<!\\)<br>', text)
    )
    escaped = '<br>'.join(map(html.escape, plain))
    bold = re.sub(r'\*\*(.+?)\*\*', r'<b>\1</b>', escaped)
    return re.sub(r'\[\^(\d+)\]', r'<sup>\1</sup>', bold)
