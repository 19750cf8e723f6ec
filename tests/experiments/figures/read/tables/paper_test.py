"""The paper's numbers, as they were taken over."""

from __future__ import annotations

import pytest

from experiments.figures.kinds.tables import longbench
from experiments.figures.read.tables import paper


@pytest.mark.parametrize('name', ['table1', 'table3'])
def test_the_averages_printed_are_those_of_the_scores_printed(name):
    for average, *scores in paper.table(name)['rows'].values():
        assert len(scores) == len(paper.table(name)['columns']) - 1
        assert sum(scores) / len(scores) == pytest.approx(average, abs=0.0501)


def test_rows_are_as_long_as_their_tables():
    for row in paper.table('table2')['rows'].values():
        assert {len(row[corpus]) for corpus in paper.CORPORA} == {4}
        values = [v for corpus in paper.CORPORA for v in row[corpus]]
        assert all(v == '>1000' if isinstance(v, str) else 2 < v < 1000 for v in values)
    assert {len(row) for row in paper.table('table4')['rows'].values()} == {4}
    assert list(paper.table('table3')['columns'][1:]) == [c.key for c in longbench.COLUMNS]


@pytest.mark.parametrize(
    ('row', 'corpus', 'multiple', 'value'),
    [
        ('NoPE', 'pg19', 1, 14.6),
        ('NoPE', 'pg19', 4.0, '>1000'),
        ('headscale_18K', 'proof_pile', 8, 4.1),
        ('headscale_18K', 'proof_pile', 3, None),
        ('', 'proof_pile', 8, None),
        ('NoPE', '', 8, None),
    ],
)
def test_perplexities_by_row_corpus_and_window(row, corpus, multiple, value):
    assert paper.perplexity(row, corpus, multiple) == value


@pytest.mark.parametrize(
    ('name', 'row', 'column', 'value'),
    [
        ('table1', 'RoPE', 'boolq', 59.7),
        ('table1', 'NoPE', 'avg', 46.2),
        ('table3', 'NoPE', 'repobench-p', 46.6),
        ('table4', 'without_initialization', 'passkey_acc_percent', 26),
        ('table4', 'without_initialization', 'words', None),
        ('table4', '', 'longbench_avg', None),
    ],
)
def test_cells_of_the_other_tables(name, row, column, value):
    assert paper.value(name, row, column) == value


def test_tokens_of_the_tuning_and_what_is_wrong_with_them():
    assert paper.tuning_tokens('headscale_4K') == 6_000_000
    assert paper.tuning_tokens('NoPE') is paper.tuning_tokens('') is None
    (note,) = paper.notes(['PI_fair_16K', 'NoPE', '', 'YaRN_fair_16K'])
    assert '30M' in note and '26.2M' in note
    assert paper.notes(['PI_fair_8K', 'headscale_18K']) == []


def test_an_unknown_row_is_refused():
    paper.check_row('f', 'table1', '')
    with pytest.raises(ValueError, match=r"figure 'f': paper is 'BLOOM'.*'NoPE', 'RoPE'"):
        paper.check_row('f', 'table1', 'BLOOM')
