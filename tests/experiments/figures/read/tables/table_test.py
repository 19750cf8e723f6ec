"""Cells, the CSV's rows, the Markdown and the HTML of any table."""

from __future__ import annotations

import dataclasses
import re
import xml.etree.ElementTree

import numpy as np
import pytest

from experiments.figures import KINDS
from experiments.figures.kinds.tables import markdown
from experiments.figures.look.web import html_of
from experiments.figures.read.tables.table import (
    Cell,
    Column,
    Table,
    TableRow,
    grouped,
    measured,
    number,
    tidy,
)
from tests.experiments.figures.synthetic import INPUTS

TABLES = sorted(kind for kind in INPUTS if kind.endswith('_table'))
COLUMNS = (
    Column('a', 'a', 'corpus', facts={'window': 1}),
    Column('b', 'b', 'corpus', decimals=2, facts={'window': 2}),
    Column('c', 'c | d', facts={'window': None}),
)
REASON = 'it was not downloaded'
TABLE = Table(
    COLUMNS,
    grouped(
        [
            (
                'One',
                TableRow('first', (Cell(14.66, 14.5), Cell(1234.5, '>1000'), Cell(0.5)), ('2 L',)),
            ),
            (
                'Two',
                TableRow(
                    'second',
                    (
                        Cell(None, 3.0, REASON),
                        Cell(None, None, 'another'),
                        measured(np.array([1.0, 2.0, 3.0]), 2),
                    ),
                    ('',),
                ),
            ),
            ('One', TableRow('a|b', (Cell(0.96, 1.0), Cell(None, 1.0, REASON), Cell(7.0)), ('',))),
        ]
    ),
    ('tuned at',),
)


def cells_of(line: str) -> list[str]:
    """Of a line of a Markdown table; a bar behind a backslash belongs to its cell."""
    return [cell.strip() for cell in re.split(r'(?<!\\)\|', line)[1:-1]]


def lines_of(text: str) -> list[list[str]]:
    return [cells_of(line) for line in text.splitlines() if line.startswith('|')]


def test_a_cell_has_a_value_or_a_reason():
    for wrong in ({'ours': 1.0, 'reason': 'none'}, {}):
        with pytest.raises(ValueError, match='a value or the reason'):
            Cell(**wrong)


@pytest.mark.parametrize(
    ('ours', 'paper', 'difference'),
    [(14.5, 14.0, 0.5), (80.0, 81, -1.0), (1200.0, '>1000', None), (3.0, None, None)],
)
def test_differences_are_between_numbers(ours, paper, difference):
    assert Cell(ours, paper).difference == difference


def test_seeds_give_mean_and_sample_deviation():
    cell = measured(np.array([1.0, 2.0, 3.0]), None)
    assert (cell.ours, cell.spread, cell.runs) == (2.0, 1.0, 3)
    assert measured(np.array([4.0]), None).spread is None


@pytest.mark.parametrize(
    ('given', 'text'),
    [
        ((12.34, 1), '12.3'),
        ((3.456, 2), '3.46'),
        ((1234.5, 1), '1,234'),
        ((2_345_678, 1), '2.3e+06'),
        ((-0.01, 1), '0.0'),
        ((0.26, 1, '+'), '+0.3'),
        ((-1200.0, 1, '+'), '-1,200'),
    ],
)
def test_numbers_are_read_easily(given, text):
    assert number(*given) == text


def test_rows_have_as_many_cells_as_the_table_has_columns():
    for wrong, message in (
        (TableRow('r', ()), 'cells must be 3'),
        (TableRow('r', TABLE.rows[0].cells), ''),
    ):
        with pytest.raises(ValueError, match=message or 'shown must be 1'):
            dataclasses.replace(TABLE, groups=grouped([('', wrong)]))


def test_rows_of_a_title_stand_together():
    assert [(g.title, [r.label for r in g.rows]) for g in TABLE.groups] == [
        ('One', ['first', 'a|b']),
        ('Two', ['second']),
    ]


def test_tidy_holds_every_cell_with_the_same_keys():
    rows = tidy(TABLE)
    assert len(rows) == 9
    assert len({tuple(row) for row in rows}) == 1
    first, bound, *_ = rows
    assert first == {
        'row': 'first',
        'group': 'One',
        'column': 'a',
        'ours': 14.66,
        'spread': None,
        'runs': 0,
        'paper': 14.5,
        'difference': pytest.approx(0.16),
        'missing': '',
        'window': 1,
    }
    assert (bound['paper'], bound['difference'], bound['window']) == ('>1000', None, 2)
    (missing,) = [r for r in rows if r['row'] == 'second' and r['column'] == 'a']
    assert (missing['ours'], missing['paper'], missing['missing']) == (None, 3.0, REASON)


def test_markdown_is_a_table_with_footnotes():
    text = markdown.write(TABLE, 'The caption.')
    assert lines_of(text) == [
        ['', 'tuned at', 'corpus<br>a', 'corpus<br>b', r'c \| d'],
        [':---', '---:', '---:', '---:', '---:'],
        ['**One**', '', '', '', ''],
        ['first', '2 L', '14.7 / 14.5 (+0.2)', '1,234 / >1000', '0.5'],
        [r'a\|b', '', '1.0 / 1.0 (+0.0)', 'missing[^1] / 1.0', '7.0'],
        ['**Two**', '', '', '', ''],
        ['second', '', 'missing[^1] / 3.0', 'missing[^2]', '2.0 ± 1.0 / 2 (+0.0)'],
    ]
    after = text.split('\n\n')[1:]
    assert 'standard deviation' in after[0]
    assert after[1:] == [f'[^1]: missing: {REASON}', '[^2]: missing: another', 'The caption.\n']


@pytest.mark.parametrize('kind', TABLES)
def test_markdown_of_every_kind_has_equal_columns_and_every_row(kind):
    output = KINDS[kind].draw(INPUTS[kind])
    lines = lines_of(output.markdown)
    assert len({len(line) for line in lines}) == 1
    labels = list(dict.fromkeys(row['row'] for row in output.rows))
    titles = {f'**{row["group"]}**' for row in output.rows if row['group']}
    assert [line[0] for line in lines[2:] if line[0] not in titles] == labels
    for reason in {row['missing'] for row in output.rows} - {''}:
        assert f': missing: {reason}' in output.markdown
    assert output.markdown.endswith(f'{output.caption}\n')


def test_html_shows_the_same_cells_and_nothing_of_a_user_is_markup():
    row = TableRow('<a> & |', (Cell(None, '>1000', REASON),))
    table = Table((Column('b', '<b>', 'group'),), grouped([('T', row)]))
    found = html_of(markdown.write(table, 'A < B.'))
    for cell in (
        '<th scope="col">group<br>&lt;b&gt;</th>',
        '<th scope="row"><b>T</b></th>',
        '<th scope="row">&lt;a&gt; &amp; |</th>',
        '<td>missing<sup>1</sup> / &gt;1000</td>',
        f'<p><sup>1</sup>: missing: {REASON}</p>',
        '<p>A &lt; B.</p>',
    ):
        assert cell in found
    html = xml.etree.ElementTree.fromstring(f'<body>{found.replace("<br>", "<br/>")}</body>')
    assert len(html.findall('table/tbody/tr')) == 2
