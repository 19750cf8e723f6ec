"""Cells, passkey means, missing measures, options and claims of the table of ablations."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.figures import KINDS, FigureInput
from experiments.figures.kinds.tables import ablation
from experiments.figures.read.tables import paper
from tests.experiments.figures.synthetic import (
    ABLATION_OPTIONS,
    CORPORA,
    INPUTS,
    PERPLEXITY,
    SCORES,
    longbench_records,
    passkey_records,
    perplexity_records,
)

KIND = 'ablation_table'
GIVEN = INPUTS[KIND]
MATTERS, TRADE = 0, 1
ROW = {'label': 'a', 'perplexity': 'a', 'passkey': 'a_passkey', 'longbench': 'a_longbench'}


def made(label, perplexity=30.0, passkey=0.8, longbench=17.0):
    """Records of one row at 8 L on both corpora."""
    return {
        f'{label}@pg19': perplexity_records((perplexity,), multiples=(8,)),
        f'{label}@proof_pile': perplexity_records(
            (perplexity / 5,), multiples=(8,), corpus='proof_pile'
        ),
        f'{label}_passkey': passkey_records(32768, window=18432, share=passkey),
        f'{label}_longbench': longbench_records([longbench] * 16),
    }


def row(label, **more):
    names = {'perplexity': label, 'passkey': f'{label}_passkey', 'longbench': f'{label}_longbench'}
    return {'label': label, **names, **more}


def claims(free, cold, **more):
    """Of HeadScale's numbers by default against those of the two ablations."""
    runs = made('full') | made('free', **free) | made('cold', **cold)
    roles = {'full': 'full', 'no_bound': 'free', 'no_init': 'cold'}
    options = {
        'corpora': CORPORA,
        'rows': tuple(row(label) for label in ('full', 'free', 'cold')),
        'roles': roles,
    }
    return KINDS[KIND].draw(FigureInput('f', runs, options | more)).claims


def found(output, label, column):
    (cell,) = [r for r in output.rows if (r['row'], r['column']) == (label, column)]
    return cell


def test_values_land_in_their_cells_next_to_the_papers():
    output = KINDS[KIND].draw(GIVEN)
    label = 'without the constraint'
    cells = [found(output, label, c) for c in ('pg19', 'proof_pile', 'passkey', 'longbench')]
    seeds = np.array([1.0, 1.01])
    expected = (PERPLEXITY['free'][3] * seeds, PERPLEXITY['free'][3] ** 0.5 * seeds, [50.0, 40.0])
    for cell, values in zip(cells, expected, strict=False):
        assert cell['ours'] == pytest.approx(np.mean(values))
        assert cell['spread'] == pytest.approx(np.std(values, ddof=1))
    assert [c['paper'] for c in cells] == [25.9, 4.2, 53, 16.7]
    assert (cells[3]['ours'], cells[3]['missing']) == (None, 'LongBench was not run')
    full = found(output, 'HeadScale', 'longbench')
    assert (full['ours'], full['paper']) == (pytest.approx(SCORES.mean() + 0.5), 17.0)


@pytest.mark.parametrize(('window', 'last'), [(18432, 8), (2048, 1), (10240, 5), (32768, 8)])
def test_the_passkey_mean_ends_at_the_window_and_at_8_l(window, last):
    """One accuracy for each of the lengths 1 L to 16 L."""
    by_length = np.arange(1, 17) / 20
    record = passkey_records(
        32768, window=window, accuracy=np.repeat(by_length[:, None], 10, axis=1)
    )
    found = ablation.passkey_inside(record)
    assert found == pytest.approx(100 * by_length[:last].mean())


def test_cells_of_all_depths_weigh_the_same():
    accuracy = np.zeros((16, 10))
    accuracy[:4, 3] = 1.0
    record = passkey_records(32768, window=8192, accuracy=accuracy)
    assert ablation.passkey_inside(record) == pytest.approx(10)


def test_measures_that_cannot_be_taken_say_why():
    runs = {
        'a@pg19': perplexity_records((3, 4), multiples=(1, 2)),
        'a_passkey': passkey_records(32768, window=1024),
        'a_longbench': longbench_records(SCORES[1:], datasets=ablation.longbench.COLUMNS[1:]),
    }
    options = {'corpora': CORPORA[:1], 'rows': (ROW,)}
    output = KINDS[KIND].draw(FigureInput('f', runs, options))
    assert [r['missing'] for r in output.rows] == [
        'the records hold no window of this length',
        'no prompt of the grid fits into the window',
        'the records lack tasks of the mean',
    ]


def test_claims_hold_on_the_papers_numbers():
    """Rounded: accuracies are tenths of ten."""
    rows = paper.table('table4')['rows']
    full, free, cold = (
        rows[k] for k in ('headscale_18K', 'without_focus_constraint', 'without_initialization')
    )
    assert (full[2] - free[2], full[2] - cold[2]) == (28, 55)
    found = claims(
        {'perplexity': free[0], 'passkey': 0.5, 'longbench': free[3]},
        {'perplexity': cold[0], 'passkey': 0.3, 'longbench': cold[3]},
    )
    assert [(c.number, c.holds) for c in found] == [(8, True), (None, True)]
    drops, trade = ([n.by_seed[0] for n in found[i].numbers] for i in (MATTERS, TRADE))
    assert drops == pytest.approx([50, 30])
    assert [trade[0], trade[2]] == pytest.approx([np.log(25.9 / 30), -0.3])
    assert '10 points' in found[MATTERS].statement


WORSE = {'perplexity': 26.0, 'passkey': 0.5, 'longbench': 16.0}


@pytest.mark.parametrize(
    ('free', 'cold', 'matters', 'trade'),
    [
        (WORSE | {'passkey': 0.7}, WORSE, False, True),
        (WORSE, WORSE | {'passkey': 0.7}, False, True),
        (WORSE | {'passkey': 0.9}, WORSE, False, False),
        (WORSE | {'perplexity': 31.0}, WORSE, True, False),
        (WORSE | {'longbench': 17.5}, WORSE, True, False),
    ],
)
def test_claims_fail_where_the_numbers_do(free, cold, matters, trade):
    found = claims(free, cold)
    assert (found[MATTERS].holds, found[TRADE].holds) == (matters, trade)


def test_without_longbench_the_trade_is_decided_by_the_others():
    rows = tuple(
        {k: v for k, v in row(label).items() if label != 'free' or k != 'longbench'}
        for label in ('full', 'free', 'cold')
    )
    trade = claims(WORSE, WORSE, rows=rows, missing={'longbench': 'not run'})[TRADE]
    assert trade.holds is True
    assert set(trade.measured['scores']) == {'passkey'}


@pytest.mark.parametrize(
    ('changed', 'matters', 'trade'),
    [
        ({'roles': {}}, "no row has the role 'full'", "no row has the role 'full'"),
        ({'corpora': ({'key': 'pg19'},)}, None, "no corpus stands for the paper's 'pg19'"),
    ],
)
def test_claims_that_lack_something_are_undecided(changed, matters, trade):
    found = claims(WORSE, WORSE, **changed)
    for claim, reason in ((found[MATTERS], matters), (found[TRADE], trade)):
        assert (claim.holds is None) == (reason is not None)
        if reason:
            assert claim.measured == {'missing': reason}


@pytest.mark.parametrize(
    ('changed', 'message'),
    [
        ({'corpora': ({'key': 'a', 'paper': 'c4'},)}, 'paper of a corpus must be one of'),
        ({'missing': {'passkey': 'no'}}, "unknown key 'passkey' in missing"),
        ({'rows': ({**ROW, 'perplexity': ''},)}, "rows must give 'perplexity'"),
        ({'missing': {}}, "row 'without the constraint' has no record for 'longbench'"),
        ({'rows': ({**ROW, 'paper': 'NoPE'},)}, "paper is 'NoPE'; accepted"),
        ({'roles': {'full': 'b'}}, "role 'full' is given to the row 'b'"),
    ],
)
def test_bad_options_are_named(changed, message):
    with pytest.raises(ValueError, match=f"figure 'f'.*{message}"):
        KINDS[KIND].required('f', ABLATION_OPTIONS | changed)


def test_every_measure_that_is_named_is_asked_for():
    assert KINDS[KIND].required('f', {'corpora': CORPORA, 'rows': (ROW,)}) == {
        'a@pg19': 'perplexity',
        'a@proof_pile': 'perplexity',
        'a_passkey': 'passkey',
        'a_longbench': 'longbench',
    }
