"""Committed results and what is made from them: the same today as when they were written."""

from __future__ import annotations

import dataclasses
import gzip
import json
import pathlib
import re

import pytest

from experiments import board, config_files
from experiments.board import Finding, Summary, decisions, page, results, words
from experiments.board.summaries import of_work
from experiments.figures import by_kind, resampled, seeds
from experiments.figures.claims import ablations
from experiments.figures.claims.catalogue import CLAIMS
from experiments.figures.claims.headline import Number

ROOT = pathlib.Path(__file__).parents[3]
RESULTS = ROOT / 'configs/results'


def summary(verdict='holds', date='2026-01-02', size='quick') -> Summary:
    numbers = (Number('NoPE - RoPE', 'nats', (0.01, 0.02)),)
    finding = Finding('parity', verdict, numbers, 'at most 0.05 nats')
    return Summary('fig1', size, (0, 1), {'nope': 'a1', 'base': 'a0'}, date, (finding,))


def test_the_page_is_what_the_committed_results_give():
    """`nope claims --results=configs/results` makes it so."""
    text = (ROOT / 'configs/claims.md').read_text()
    assert text == results.page_of(RESULTS)
    assert max(len(line) for line in text.splitlines() if line[:1] == '|') <= page.LONGEST
    for link in set(re.findall(r'\]\(([^)]*)\)', text)):
        assert (ROOT / 'configs' / link).exists(), link


def test_readmes_leave_verdicts_to_the_page_of_claims():
    for path in (ROOT / 'README.md', ROOT / 'configs/README.md'):
        text = path.read_text()
        assert re.search(r'\]\((configs/)?claims\.md\)', text)
        assert not any(f'{mark} {verdict}' in text for verdict, mark in page.MARKS.items())


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


def test_committed_verdicts_follow_todays_rules_and_are_of_configs_that_they_ask():
    """A rule that changes asks for its figures to be drawn again: `nope draw`."""
    for summary in board.of_results(RESULTS):
        for found in summary.claims:
            alone = found.statement.removesuffix(f' {seeds.STATEMENT}')
            alone = alone.removesuffix(f' {resampled.STATEMENT}')
            place = f'{summary.size}/{summary.figure}: {found.id}'
            assert alone in {rule.statement for rule in by_kind.of_claim(found.id)}, place
            if found.verdict not in ('not measured', 'reading'):
                asked, _ = config_files.parted(summary.figure)
                assert asked in decisions.configs()[found.id], place


def test_the_numbers_of_a_figure_stand_beside_its_verdicts(tmp_path, monkeypatch):
    """They are of the same drawing: what is too large for the new one leaves none of the old. They
    are packed where only that is small enough."""
    table, there = tmp_path / 'fig1.csv', tmp_path / 'results/quick/fig1.csv'
    table.write_text('a,b\n1,2\n')
    folder = tmp_path / 'results'
    assert results.write_table(folder, summary(), table) is None
    results.write(folder, [summary()])
    assert results.write_table(folder, summary(), table) == there
    table.write_text('a,b\n3,4\n')
    results.write(folder, [summary()])  # says the same
    assert results.write_table(folder, summary(), table) is None
    assert there.read_text() == 'a,b\n1,2\n'
    results.write(folder, [dataclasses.replace(summary(), seeds=(7,))])
    assert not there.exists()  # a kill here leaves no numbers of another drawing
    assert results.write_table(folder, summary(), table) == there
    assert there.read_text() == table.read_text()
    monkeypatch.setattr(results, 'LARGEST_TABLE', 40)
    table.write_text('a,b\n' + 20 * '3,4\n')
    packed = there.with_name('fig1.csv.gz')
    results.write(folder, [dataclasses.replace(summary(), seeds=(8,))])
    assert results.write_table(folder, summary(), table) == packed
    assert gzip.decompress(packed.read_bytes()) == table.read_bytes() and not there.exists()
    assert results.write_table(folder, summary(), table) is None
    monkeypatch.setattr(results, 'LARGEST_TABLE', 7)
    results.write(folder, [dataclasses.replace(summary(), seeds=(9,))])
    assert results.write_table(folder, summary(), table) is None
    assert not there.exists() and not packed.exists()


DRAWN = {'commit': 'c0', 'jax': '0.10.2', 'device': 'cpu', 'devices': 1}


def by(commit: str, **given) -> Summary:
    return dataclasses.replace(summary(**given), drawn_by=({**DRAWN, 'commit': commit},))


@pytest.mark.parametrize(
    ('there', 'given', 'written'),
    [
        (None, summary(), True),
        (summary(), summary(date='2026-02-03'), False),  # it differs in its date alone
        (summary(), summary(verdict='undecided', date='2026-02-03'), True),
        # Ones of before the commands were written gain what drew them, and keep it.
        (summary(), by('c0'), True),
        (by('c0'), by('c1', date='2026-02-03'), False),
        (None, dataclasses.replace(summary(), claims=()), True),  # it decides nothing
        (summary(), dataclasses.replace(summary(), claims=()), True),
    ],
)
def test_a_result_is_written_where_it_says_more_and_read_as_it_was_written(
    there, given, written, tmp_path
):
    if there is not None:
        results.write(tmp_path, [there])
    paths = results.write(tmp_path, [given])
    assert paths == ([tmp_path / 'quick/fig1.json'] if written else [])
    kept = given if written else there
    assert board.of_results(tmp_path) == ([] if kept is None else [kept])
    for path in paths:
        stated = json.loads(path.read_text())
        assert stated['config'] == 'configs/first_paper/fig1.py:quick'
        assert stated['text'] == 'Python'
        assert list(stated) == sorted(stated)


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


@pytest.mark.parametrize(
    ('change', 'said'),
    [
        ({'figure': 'fig2'}, "says that it is 'fig2' at 'quick'"),
        ({'seeds': 3}, 'fig1.json is damaged'),
        ({'claims': [{'id': 'parity'}]}, "lacks 'numbers'"),
    ],
)
def test_a_result_that_does_not_fit_is_named(tmp_path, change, said):
    (path,) = results.write(tmp_path, [summary()])
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=said):
        board.of_results(tmp_path)


def line_of(text: str, claim: str) -> str:
    found = CLAIMS[claim]
    return next(x for x in text.splitlines() if f' | {found.number}. {found.short} | ' in x)


def test_a_line_has_a_sign_for_each_size_and_the_number_that_decides_at_the_largest():
    ahead = {'NTK': -1.0, 'YaRN': -2.0}
    numbers = tuple(Number(f'HeadScale - {n}', 'nats', (x,)) for n, x in ahead.items())
    statement = by_kind.RULES['factor_grid'][2].statement
    finding = Finding('between_ntk_and_yarn', 'does not hold', numbers, statement)
    made = [
        Summary('zero_shot', size, (0,), {}, '', (dataclasses.replace(finding, verdict=verdict),))
        for size, verdict in (('quick', 'undecided'), ('small', 'does not hold'))
    ]
    other = Finding('parity', 'does not hold', (Number('a', 'nats', (1.0, 2.0)),), '')
    made += [summary(), Summary('table2', 'quick', (0, 1), {}, '2026-01-02', (other,))]
    text = page.markdown(board.standings(made), ['quick', 'small'], lambda found: found.figure)
    between = line_of(text, 'between_ntk_and_yarn')
    assert between.startswith('| ~¹ ✗¹ | Python | ') and between.endswith(
        '-0.97 and +0.58 nats | HeadScale less YaRN -2.000 nats | [zero_shot](zero_shot) |'
    )
    none = page.MARKS['not measured']
    assert line_of(text, 'parity').startswith(f'| ≠² {none} | Python | ')
    assert '| Python | quick | ≠² | 0.010, 0.020 nats | [fig1](fig1) 2026-01-02 |' in text
    assert 'level inside L at `quick` (Python): ✓ `fig1`, NoPE less RoPE 0.015 nats ' in text
    assert 'Not measured: Loss rises from about 1.2 L (NoPE) (`fig1`, `fig2`); ' in text


def test_the_number_beside_a_verdict_is_the_one_that_decides_it():
    """Of several cases, and of parts in units of their own."""
    numbers = tuple(Number(f'NoPE - RoPE, {n}', 'nats', (x,)) for n, x in (('a', 0.0), ('b', 0.3)))
    parity = Finding('parity', 'does not hold', numbers, 'at most 0.05 nats')
    parts = (Number('pg19', 'nats', (-0.05,)), Number('passkey', 'points', (3.0,)))
    bound = Finding('bound_for_retrieval', 'does not hold', parts, ablations.RULES[1].statement)
    made = [
        Summary('table2', 'quick', (0,), {}, '', (parity,)),
        Summary('table4', 'quick', (0,), {}, '', (bound,)),
    ]
    text = page.markdown(board.standings(made), ['quick'], lambda found: found.figure)
    assert '| quick | ✗¹ | 0.300 nats | [table2](table2) |' in text
    assert '| passkey 3.0 points | [table4](table4) |' in text


def test_a_claim_shows_one_figure_at_all_sizes_where_it_has_one():
    """That of the most sizes, although another comes first where both are."""
    made = [summary(), summary(size='small')]
    made += [dataclasses.replace(s, figure='table2') for s in [*made, summary(size='medium')]]
    text = page.markdown(board.standings(made), ['quick', 'small', 'medium'], lambda d: d.size)
    shown = re.findall(r'\| (\w+) \| ✓² \| 0.010, 0.020 nats \| \[(\w+)\]', text)
    assert shown == [(size, 'table2') for size in ('quick', 'small', 'medium')]


@pytest.mark.parametrize(
    ('what', 'said'),
    [
        (
            'smallest HeadScale - base at L, HeadScale searched at 4 L',
            'HeadScale less base at L, smallest: searched at 4 L',
        ),
        (
            'highest 1 + a x + b x^2 -, HeadScale searched at 4 L, at 8 L',
            '1 + a x + b x^2 less HeadScale searched at 4 L, highest: at 8 L',
        ),
        (
            'largest multiplier - none over (0, L]',
            'loss with the largest multiplier less with none over (0, L]',
        ),
        ('highest raw - fair, YaRN at 2 L', '1,000 steps less 200 steps, highest: YaRN at 2 L'),
        ('split - RoPE at L', 'split less RoPE at L'),
        ('R^2 (after all of the training)', 'R^2 (after all of the training)'),
    ],
)
def test_the_words_of_a_number_name_both_sides_and_then_the_case_that_decides(what, said):
    assert words.plain(what) == said


def test_settings_that_are_not_the_configs_are_named_without_the_end_of_a_cell():
    changed = ('train.d=3', 'train.|=4')
    found = board.standings([dataclasses.replace(summary(), changed=changed)])
    assert r'train.d=3, train.\|=4.' in page.markdown(found, ['quick'], lambda found: '')
