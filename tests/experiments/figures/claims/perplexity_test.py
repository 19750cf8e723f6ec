"""Claims of the table of perplexities, where they hold, where they fail and where rows lack."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.figures import KINDS, FigureInput
from experiments.figures.claims import perplexity
from experiments.figures.read.tables import paper
from tests.experiments.figures.synthetic import (
    INPUTS,
    PERPLEXITY_OPTIONS,
    perplexity_records,
    perplexity_runs,
)

IDS = [rule.id for rule in perplexity.RULES]
HOLDS, FAILS, OPEN, NOT = 'holds', 'does not hold', 'undecided', 'not measured'


def claims(changed=None, on=('pg19', 'proof_pile'), **options):
    """Claims by id. changed: other perplexities, by record; of proof-pile their square root."""
    runs = perplexity_runs(1)
    for name, values in (changed or {}).items():
        for corpus in on:
            power = 1.0 if corpus == 'pg19' else 0.5
            made = perplexity_records(np.array(values) ** power, corpus=corpus)
            runs[f'{name}@{corpus}/seed0'] = made
    given = FigureInput('f', runs, PERPLEXITY_OPTIONS | options)
    return {claim.id: claim for claim in KINDS['perplexity_table'].draw(given).claims}


def test_the_papers_own_numbers_bear_them_all():
    """'>1000' stands for 1,000: no claim needs to know more."""
    runs, rows = {}, []
    for row, printed in paper.table('table2')['rows'].items():
        rows.append({'label': row, 'paper': row, 'record': row})
        for corpus in paper.CORPORA:
            values = [1000 if v == '>1000' else v for v in printed[corpus]]
            runs[f'{row}@{corpus}'] = perplexity_records(values, corpus=corpus)
    roles = {
        'base': 'NoPE',
        'rope': 'RoPE',
        'ntk': 'NTK_zero',
        'yarn': 'YaRN_zero',
        'uniform': {2: 'uniform_1.2', 4: 'uniform_1.5', 8: 'uniform_1.8'},
        'headscale': {2: 'headscale_4K', 4: 'headscale_8K', 9: 'headscale_18K'},
    }
    options = {'corpora': PERPLEXITY_OPTIONS['corpora'], 'rows': rows, 'roles': roles}
    output = KINDS['perplexity_table'].draw(FigureInput('f', runs, options))
    assert {row['difference'] for row in output.rows if row['paper'] != '>1000'} == {0.0}
    assert [(c.id, c.verdict) for c in output.claims] == [(name, HOLDS) for name in IDS]
    parity, harm = output.claims[:2]
    assert parity.numbers[0].by_seed == pytest.approx([0.007], abs=5e-4)
    assert harm.numbers[0].by_seed == pytest.approx([0.73], abs=5e-3)


@pytest.mark.parametrize(
    ('changed', 'claim', 'verdict'),
    [
        ({'rope': (13.9, 505, 470, 640)}, 'parity', FAILS),
        ({'rope': (16.0, 505, 470, 640)}, 'parity', FAILS),
        ({'uniform_1.8': (14.9, 44.0, 70.6, 189.5)}, 'uniform_hurts', FAILS),
        ({'headscale_9': (14.3, 19.2, 19.1, 31.7)}, 'headscale_hurts', FAILS),
        ({'headscale_2': (15.9, 15.6, 390.0, 1250.0)}, 'headscale_hurts_less', FAILS),
        ({'headscale_2': (14.9, 17.0, 390.0, 1250.0)}, 'headscale_beats_uniform', FAILS),
        ({'headscale_9': (18.6, 19.2, 19.1, 200.0)}, 'headscale_beats_uniform', FAILS),
        ({'headscale_4': (16.0, 15.7, 20.6, 22.7)}, 'fails_past_searched', FAILS),
        ({'headscale_9': (18.6, 19.2, 19.1, 80.0)}, 'between_ntk_and_yarn', FAILS),
        ({'headscale_9': (18.6, 19.2, 19.1, 17.0)}, 'between_ntk_and_yarn', FAILS),
        ({'headscale_9': (18.6, 19.2, 24.5, 31.7)}, 'ntk_by_window', FAILS),
        ({'headscale_9': (14.3, 19.2, 19.1, 31.7)}, 'ntk_by_window', FAILS),
        ({'headscale_9': (18.6, 14.7, 19.1, 31.7)}, 'ntk_by_window', FAILS),
        # Losses that are level decide nothing.
        ({'headscale_2': (15.3, 15.6, 390.0, 1250.0)}, 'headscale_hurts_less', OPEN),
        ({'headscale_9': (18.6, 19.2, 19.1, 17.6)}, 'between_ntk_and_yarn', OPEN),
        ({'headscale_9': (14.8, 19.2, 19.1, 31.7)}, 'ntk_by_window', OPEN),
    ],
)
def test_each_fails_where_its_numbers_do(changed, claim, verdict):
    assert claims(changed)[claim].verdict == verdict


def test_one_corpus_that_disagrees_is_enough():
    changed = {'headscale_9': np.array((4.3, 4.4, 4.4, 4.1)) ** 2}
    found = claims(changed, on=('proof_pile',))['between_ntk_and_yarn']
    assert found.verdict == FAILS
    by_corpus = {n.what.rpartition(', ')[2]: n.by_seed[0] for n in found.numbers[2:]}
    assert by_corpus['pg19'] > 0 > by_corpus['proof_pile']


def test_methods_with_factors_count_with_the_best_of_each_window():
    found = claims()
    between, by_window = found['between_ntk_and_yarn'], found['ntk_by_window']
    assert between.numbers[0].what == 'HeadScale - NTK at 8 L, pg19'
    assert between.numbers[0].by_seed == pytest.approx([np.log(31.7 / 78.8)])
    less = by_window.measured['headscale_minus_ntk_nats']
    assert less['1 L']['pg19']['mean'] == pytest.approx(np.log(18.6 / 14.8))
    assert less['4 L']['pg19']['mean'] == pytest.approx(np.log(19.1 / 23.9))


def test_a_search_is_compared_in_the_longest_windows_within_it():
    found, corpora = claims(), ('pg19', 'proof_pile')
    target, inside = (
        found[name].measured[f'highest HeadScale - uniform{where}']
        for name, where in (('headscale_beats_uniform', ''), ('headscale_hurts_less', ' at L'))
    )
    searches = {2: 2, 4: 4, 9: 8}  # length of the search -> of the windows
    assert set(target) == {
        f'searched at {n} L, at {m} L, {corpus}' for n, m in searches.items() for corpus in corpora
    }
    at_8 = target['searched at 9 L, at 8 L, pg19']['mean']
    assert at_8 == pytest.approx(np.log(31.7 / 189.5))
    assert inside['searched at 9 L, pg19']['mean'] == pytest.approx(np.log(18.6 / 31.2))
    past = found['fails_past_searched'].measured['smallest rise to twice the length']
    assert set(past) == {f'searched at {n} L, {corpus}' for n in (2, 4) for corpus in corpora}
    assert past['searched at 4 L, pg19']['mean'] == pytest.approx(np.log(700 / 20.6))


def test_seeds_whose_interval_contains_the_limit_decide_nothing():
    runs = perplexity_runs(3)
    for seed, value in enumerate((14.0, 14.9, 15.9)):  # level with NoPE in the mean
        values = (value, 505.0, 470.0, 640.0)
        runs[f'rope@pg19/seed{seed}'] = perplexity_records(values, corpus='pg19', seed=seed)
    found = KINDS['perplexity_table'].draw(FigureInput('f', runs, PERPLEXITY_OPTIONS)).claims[0]
    one, two, three = found.numbers[0].by_seed
    assert found.verdict == OPEN
    assert (one - two, two - three) == pytest.approx(np.log((14.9 / 14.0, 15.9 / 14.9)), abs=0.03)
    every = KINDS['perplexity_table'].draw(INPUTS['perplexity_table']).claims
    assert {claim.verdict for claim in every} == {HOLDS}


MISSING = {'label': 'RoPE', 'paper': 'RoPE', 'missing': 'not trained'}


@pytest.mark.parametrize(
    ('options', 'lacking'),
    [
        *(
            ({'roles': {k: v for k, v in PERPLEXITY_OPTIONS['roles'].items() if k != role}}, names)
            for role, names in {
                'base': {'parity', 'uniform_hurts', 'headscale_hurts'},
                'rope': {'parity'},
                'uniform': {'uniform_hurts', 'headscale_beats_uniform', 'headscale_hurts_less'},
                'headscale': set(IDS) - {'parity', 'uniform_hurts'},
                'ntk': {'between_ntk_and_yarn', 'ntk_by_window'},
                'yarn': {'between_ntk_and_yarn'},
            }.items()
        ),
        (
            {
                'rows': tuple(
                    MISSING if row['label'] == 'RoPE' else row for row in PERPLEXITY_OPTIONS['rows']
                )
            },
            {'parity'},
        ),
        ({'windows': (1, 2)}, {'fails_past_searched', 'between_ntk_and_yarn', 'ntk_by_window'}),
    ],
)
def test_what_lacks_a_role_a_row_or_a_window_is_not_measured(options, lacking):
    found = claims(**options)
    assert {name for name, claim in found.items() if claim.verdict == NOT} == lacking
    assert all('missing' in found[name].measured for name in lacking)
