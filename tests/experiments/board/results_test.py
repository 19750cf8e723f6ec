"""Committed results and what is made from them: the same today as when they were written."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from experiments import board
from experiments.board import Finding, Summary, page, picture, results
from experiments.board.summaries import of_work
from experiments.figures import resampled, seeds
from experiments.figures.claims.headline import Number
from tests.experiments.figures.claims.catalogue_test import rules

ROOT = pathlib.Path(__file__).parents[3]
RESULTS = ROOT / 'configs/results'
MADE = sorted(results.pages(RESULTS))


def summary(verdict='holds', date='2026-01-02', size='quick') -> Summary:
    numbers = (Number('NoPE - RoPE', 'nats', (0.01, 0.02)),)
    finding = Finding('parity', verdict, numbers, 'at most 0.05 nats')
    return Summary('fig1', size, (0, 1), {'nope': 'a1', 'base': 'a0'}, date, (finding,))


@pytest.mark.parametrize('path', MADE, ids=lambda path: str(path.relative_to(ROOT)))
def test_pages_are_what_the_committed_results_give(path):
    """`python -m experiments.claims --results=configs/results` makes them so."""
    assert path.read_text() == results.pages(RESULTS)[path]


def test_readmes_leave_verdicts_to_the_page_of_claims():
    for path in (ROOT / 'README.md', ROOT / 'configs/README.md'):
        text = path.read_text()
        assert re.search(r'\]\((configs/)?claims\.md\)', text)
        assert not any(f'{mark} {verdict}' in text for verdict, mark in page.MARKS.items())
        assert '<!-- claims' not in text


def by_seed(size: str, figure: str, claim: str) -> list[float]:
    """The first number of a committed claim, by seed."""
    (found,) = (s for s in board.of_results(RESULTS) if (s.size, s.figure) == (size, figure))
    return [number for c in found.claims if c.id == claim for number in c.numbers[0].by_seed]


def row(name: str, beginning: str) -> list[str]:
    """Cells of the first row of a results page that begins so."""
    lines = (RESULTS / name).read_text().splitlines()
    return next(re.split(r' ?\| ?', line)[2:-1] for line in lines if line.startswith(beginning))


def test_numbers_in_the_pages_of_results_are_those_of_the_results():
    """Of two tables that the front page leads to."""
    behind = row('lambda.md', '| NoPE less RoPE')
    for size, said in zip(('quick', 'small', 'medium'), behind, strict=True):
        values = by_seed(size, 'fig1', 'parity')
        assert said == f'{sum(values) / len(values):.2f}'
    keys = row('split_heads.md', '| one key |')
    for size, said in zip(('quick', 'small'), keys, strict=False):
        values = by_seed(size, 'split_seeds', 'keys_far')
        assert [float(share) for share in said.split(', ')] == [round(share) for share in values]


def test_committed_verdicts_follow_todays_rules():
    """A rule that changes asks for its figures to be drawn again: `python -m experiments.draw`."""
    statements: dict[str, set[str]] = {}
    for rule in rules():
        statements.setdefault(rule.claim.id, set()).add(rule.statement)
    for summary in board.of_results(RESULTS):
        for found in summary.claims:
            alone = found.statement.removesuffix(f' {seeds.STATEMENT}')
            alone = alone.removesuffix(f' {resampled.STATEMENT}')
            assert alone in statements[found.id], f'{summary.size}/{summary.figure}: {found.id}'


def test_the_numbers_of_a_figure_stand_beside_its_verdicts(tmp_path, monkeypatch):
    """They are of the same drawing: what is too large for the new one leaves none of the old."""
    table, there = tmp_path / 'fig1.csv', tmp_path / 'results/quick/fig1.csv'
    table.write_text('a,b\n1,2\n')
    assert results.write_table(tmp_path / 'results', summary(), table, anew=False) is None
    results.write(tmp_path / 'results', [summary()])
    assert results.write_table(tmp_path / 'results', summary(), table, anew=False) == there
    table.write_text('a,b\n3,4\n')
    assert results.write_table(tmp_path / 'results', summary(), table, anew=False) is None
    assert there.read_text() == 'a,b\n1,2\n'
    assert results.write_table(tmp_path / 'results', summary(), table, anew=True) == there
    assert there.read_text() == table.read_text()
    monkeypatch.setattr(results, 'LARGEST_TABLE', 7)
    assert results.write_table(tmp_path / 'results', summary(), table, anew=True) is None
    assert not there.exists()


def test_a_result_is_read_as_it_was_written(tmp_path):
    (path,) = results.write(tmp_path, [summary()])
    assert path == tmp_path / 'quick/fig1.json'
    assert board.of_results(tmp_path) == [summary()]
    stated = json.loads(path.read_text())
    assert stated['config'] == 'configs/first_paper/fig1.py:quick' and list(stated) == sorted(
        stated
    )


def test_a_result_that_differs_in_its_date_alone_stays_as_it_is(tmp_path):
    results.write(tmp_path, [summary()])
    assert results.write(tmp_path, [summary(date='2026-02-03')]) == []
    assert board.of_results(tmp_path)[0].date == '2026-01-02'
    changed = summary(verdict='undecided', date='2026-02-03')
    assert len(results.write(tmp_path, [changed])) == 1
    assert board.of_results(tmp_path) == [changed]


def test_a_result_gains_what_drew_it_and_keeps_it(tmp_path):
    """Committed ones of before the commands were written have none."""
    results.write(tmp_path, [summary()])
    drawn = {'commit': 'c0', 'jax': '0.10.2', 'device': 'cpu', 'devices': 1}
    first = dataclasses.replace(summary(), drawn_by=(drawn,))
    assert len(results.write(tmp_path, [first])) == 1
    again = dataclasses.replace(summary(date='2026-02-03'), drawn_by=({**drawn, 'commit': 'c1'},))
    assert results.write(tmp_path, [again]) == []
    assert board.of_results(tmp_path) == [first]


@pytest.mark.parametrize('line', ['', '{"figure": "fig1", "versions"', '[]', '{"figure": "fig1"}'])
def test_what_drew_a_figure_is_read_around_a_damaged_line(tmp_path, line):
    command = {
        'figure': 'fig1', 'arguments': [], 'commit': 'c0', 'versions': {'jax': '0.10.2'},
        'device': 'NVIDIA H100', 'devices': 8, 'processes': 1,
    }  # fmt: skip
    other = command | {'figure': 'fig2', 'device': 'cpu'}
    lines = [json.dumps(command), line, json.dumps(other), json.dumps(command)]
    (tmp_path / 'commands.jsonl').write_text('\n'.join(lines))
    folder = tmp_path / 'figures/fig1'
    folder.mkdir(parents=True)
    (folder / 'summary.json').write_text(json.dumps({'claims': [], 'runs': {}}))
    expected = {'commit': 'c0', 'jax': '0.10.2', 'device': 'NVIDIA H100', 'devices': 8}
    assert of_work(folder, 'fig1', 'quick').drawn_by == (expected,)


def test_a_figure_that_decides_nothing_has_a_file_only_where_it_had_one(tmp_path):
    silent = dataclasses.replace(summary(), claims=())
    assert results.write(tmp_path, [silent]) == [] and not list(tmp_path.iterdir())
    results.write(tmp_path, [summary()])
    assert len(results.write(tmp_path, [silent])) == 1
    assert board.of_results(tmp_path) == [silent]


def test_made_text_changes_with_the_results(tmp_path):
    folder = tmp_path / 'configs/results'
    readme = tmp_path / 'configs/README.md'
    results.write(folder, [summary()])
    marked = 'before\n<!-- claims: eleven (made) -->\nearlier text\n<!-- /claims -->\nafter\n'
    readme.write_text(marked)
    first = results.pages(folder)
    assert first[readme].startswith('before\n<!-- claims: eleven (made) -->\n\nAt `quick`')
    assert (
        first[readme].endswith('\n\n<!-- /claims -->\nafter\n') and 'earlier' not in first[readme]
    )
    results.write(folder, [summary(), summary('does not hold', size='small')])
    second = results.pages(folder)
    assert 'At `small`, of 16 rows: does not hold 1, not measured 15.' in second[readme]
    assert all(first[path] != second[path] for path in first)
    readme.write_text(second[readme])
    assert results.pages(folder)[readme] == second[readme]


def test_an_unknown_mark_is_named(tmp_path):
    with pytest.raises(ValueError, match='marks claims: twelve; accepted: counts, eleven'):
        text = '<!-- claims: twelve -->\n<!-- /claims -->'
        results.filled(text, {'eleven': '', 'counts': ''}, tmp_path)


@pytest.mark.parametrize(
    ('change', 'said'),
    [
        ({'figure': 'fig2'}, "says that it is 'fig2' at 'quick'"),
        ({'seeds': 3}, 'seeds in .* is 3, not a list'),
        ({'date': None}, 'date in .* is None'),
        ({'drawn_by': 'cpu'}, "drawn_by in .* is 'cpu', not a list"),
    ],
)
def test_a_result_that_does_not_fit_is_named(tmp_path, change, said):
    (path,) = results.write(tmp_path, [summary()])
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=said):
        board.of_results(tmp_path)


def test_a_cell_of_the_page_shows_every_figure_and_what_they_disagree_in():
    finding = Finding('parity', 'does not hold', (), '')
    other = Summary('table2', 'quick', (0, 1), {}, '', (finding,))
    rows = board.rows([summary(), other])
    line = next(x for x in page.table(rows, ['quick']).splitlines() if '`parity`' in x)
    assert '**≠ figures disagree**<br>✓ holds, fig1, 2 seeds: NoPE - RoPE 0.015 nats' in line
    assert '<br>✗ does not hold, table2, 2 seeds: ' in line
    lacking = next(x for x in page.table(rows, ['quick']).splitlines() if '`fit_form`' in x)
    assert 'not measured (`fig7`)' in lacking


def test_a_few_settings_that_are_not_the_configs_are_named_beside_the_figure():
    changed = tuple(f'train.{name}={n}' for n, name in enumerate(('a', 'b', 'c', 'd', '|')))
    rows = board.rows([dataclasses.replace(summary(), changed=changed)])
    decision = next(row for row in rows if row.id == 'parity').decisions[0]
    named = 'train.a=0, train.b=1, train.c=2 and 2 more'
    assert page.said(decision).startswith(f'fig1, 2 seeds, drawn with {named}: NoPE - RoPE ')
    assert r'train.d=3, train.\|=4.' in page.markdown(rows, ['quick'])


def test_the_picture_shows_every_claim_and_its_lines_stay_in_their_columns():
    figure = picture.draw(board.rows([summary()]), ['quick', 'small'])
    shown = [text.get_text() for text in figure.texts]
    for row in board.rows([]):
        assert any(text.startswith(row.short.split()[0]) for text in shown)
    assert '✓  holds' in shown
    assert any(text.endswith('not measured; decided by fig7') for text in shown)
    renderer = FigureCanvasAgg(figure).get_renderer()
    boxes = [text.get_window_extent(renderer) for text in figure.texts if text.get_text()]
    for i, box in enumerate(boxes):
        assert box.x1 <= figure.bbox.x1 and box.y0 >= 0
        for other in boxes[i + 1 :]:
            assert not (
                min(box.x1, other.x1) - max(box.x0, other.x0) > 1
                and min(box.y1, other.y1) - max(box.y0, other.y0) > 2
            )
