"""Claims of the table of perplexities, where they hold, where they fail and where rows lack."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from experiments.figures import KINDS, FigureInput
from experiments.figures.read.tables import paper
from tests.experiments.figures.synthetic import (
    INPUTS,
    PERPLEXITY,
    PERPLEXITY_OPTIONS,
    perplexity_records,
    perplexity_runs,
)

PARITY, HARM, UNIFORM, PAST, BETWEEN, BY_WINDOW, LESS = range(7)
NUMBERS = [1, 6, 7, 10, 11, None, 7]


def claims(changed=None, **options):
    """changed: other perplexities, by record; on both corpora, one of them its square root."""
    runs = perplexity_runs(1)
    for name, values in (changed or {}).items():
        for corpus, power in (('pg19', 1.0), ('proof_pile', 0.5)):
            runs[f'{name}@{corpus}/seed0'] = perplexity_records(
                np.array(values) ** power, corpus=corpus
            )
    given = FigureInput('f', runs, PERPLEXITY_OPTIONS | options)
    return KINDS['perplexity_table'].draw(given).claims


def test_all_hold_on_these_numbers_and_say_their_thresholds():
    found = KINDS['perplexity_table'].draw(INPUTS['perplexity_table']).claims
    assert [claim.number for claim in found] == NUMBERS
    assert [claim.holds for claim in found] == [True] * 7
    thresholds = ('0.05', '0.01', '0.01', '0.5', '0.01', '4 L', '0.01')
    for claim, threshold in zip(found, thresholds, strict=True):
        assert threshold in claim.statement


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
        'rotary': 'RoPE',
        'ntk': 'NTK_zero',
        'yarn': 'YaRN_zero',
        'uniform': {2: 'uniform_1.2', 4: 'uniform_1.5', 8: 'uniform_1.8'},
        'headscale': {2: 'headscale_4K', 4: 'headscale_8K', 9: 'headscale_18K'},
    }
    options = {'corpora': PERPLEXITY_OPTIONS['corpora'], 'rows': rows, 'roles': roles}
    output = KINDS['perplexity_table'].draw(FigureInput('f', runs, options))
    assert {row['difference'] for row in output.rows if row['paper'] != '>1000'} == {0.0}
    assert [(c.number, c.holds) for c in output.claims] == [(n, True) for n in NUMBERS]
    parity, harm = output.claims[:2]
    assert parity.measured['nope_minus_rope_nats']['pg19']['mean'] == pytest.approx(0.007, abs=5e-4)
    changes = [v['pg19']['mean'] for v in harm.measured['change_at_L_nats'].values()]
    np.testing.assert_allclose(changes, [0.03, 0.26, 0.73], atol=5e-3)


@pytest.mark.parametrize(
    ('changed', 'index'),
    [
        ({'rope': (13.9, 505, 470, 640)}, PARITY),
        ({'rope': (16.0, 505, 470, 640)}, PARITY),
        ({'uniform_1.8': (14.9, 44.0, 70.6, 189.5)}, HARM),
        ({'headscale_2': (15.9, 15.6, 390.0, 1250.0)}, LESS),
        ({'headscale_2': (14.9, 17.0, 390.0, 1250.0)}, UNIFORM),
        ({'headscale_9': (18.6, 19.2, 19.1, 200.0)}, UNIFORM),
        ({'headscale_4': (16.0, 15.7, 20.6, 22.7)}, PAST),
        ({'headscale_9': (18.6, 19.2, 19.1, 80.0)}, BETWEEN),
        ({'headscale_9': (18.6, 19.2, 19.1, 17.0)}, BETWEEN),
        ({'headscale_9': (18.6, 19.2, 24.5, 31.7)}, BY_WINDOW),
        ({'headscale_9': (14.3, 19.2, 19.1, 31.7)}, BY_WINDOW),
        ({'headscale_9': (18.6, 14.7, 19.1, 31.7)}, BY_WINDOW),
    ],
)
def test_each_fails_where_its_numbers_do(changed, index):
    assert claims(changed)[index].holds is False


@pytest.mark.parametrize(
    ('changed', 'index'),
    [
        ({'headscale_2': (15.3, 15.6, 390.0, 1250.0)}, LESS),
        ({'headscale_9': (18.6, 19.2, 19.1, 17.6)}, BETWEEN),
        ({'headscale_9': (14.8, 19.2, 19.1, 31.7)}, BY_WINDOW),
    ],
)
def test_losses_that_are_level_decide_nothing(changed, index):
    assert claims(changed)[index].holds is None


def test_one_corpus_that_disagrees_is_enough():
    runs = perplexity_runs(1)
    runs['headscale_9@proof_pile/seed0'] = perplexity_records(
        (4.3, 4.4, 4.4, 4.1), corpus='proof_pile'
    )
    found = KINDS['perplexity_table'].draw(FigureInput('f', runs, PERPLEXITY_OPTIONS)).claims
    assert found[BETWEEN].holds is False
    differences = found[BETWEEN].measured['headscale_minus_yarn_nats']
    assert differences['pg19']['mean'] > 0 > differences['proof_pile']['mean']


def test_methods_with_factors_count_with_the_best_of_each_window():
    between = claims()[BETWEEN].measured
    assert between['window_over_L'] == 8
    assert between['headscale_minus_ntk_nats']['pg19']['mean'] == pytest.approx(np.log(31.7 / 78.8))
    by_window = claims()[BY_WINDOW].measured['headscale_minus_ntk_nats']
    assert by_window['1 L']['pg19']['mean'] == pytest.approx(np.log(18.6 / 14.8))
    assert by_window['4 L']['pg19']['mean'] == pytest.approx(np.log(19.1 / 23.9))
    # The one factor for all windows is 8, which is not the best one at 4 L.
    assert between['with_one_factor_nats']['ntk']['pg19']['mean'] == pytest.approx(
        np.log(31.7 / 78.8)
    )


def test_a_search_is_compared_in_the_longest_windows_within_it():
    found = claims()
    target, inside = (found[i].measured['headscale_minus_uniform_nats'] for i in (UNIFORM, LESS))
    searches = {2: 2, 4: 4, 9: 8}  # length of the search -> of the windows
    assert set(target) == {
        f'searched at {n} L, at {m} L, {corpus}'
        for n, m in searches.items()
        for corpus in ('pg19', 'proof_pile')
    }
    at_8 = target['searched at 9 L, at 8 L, pg19']['mean']
    assert at_8 == pytest.approx(np.log(31.7 / 189.5))
    assert inside['searched at 9 L, pg19']['mean'] == pytest.approx(np.log(18.6 / 31.2))
    past = found[PAST].measured['rise_from_tuned_to_twice_nats']
    assert set(past) == {
        f'searched at {n} L, {corpus}' for n in (2, 4) for corpus in ('pg19', 'proof_pile')
    }
    assert past['searched at 4 L, pg19']['mean'] == pytest.approx(np.log(700 / 20.6))


def test_seeds_whose_interval_contains_the_limit_decide_nothing():
    runs = perplexity_runs(3)
    for seed, value in enumerate((14.0, 14.9, 15.9)):  # level with NoPE in the mean
        values = (value, 505.0, 470.0, 640.0)
        runs[f'rope@pg19/seed{seed}'] = perplexity_records(values, corpus='pg19', seed=seed)
    found = KINDS['perplexity_table'].draw(FigureInput('f', runs, PERPLEXITY_OPTIONS)).claims
    assert found[PARITY].holds is None and found[PARITY].verdict == 'undecided'


@pytest.mark.parametrize(
    ('role', 'undecided'),
    [
        ('base', [PARITY, HARM]),
        ('rotary', [PARITY]),
        ('uniform', [HARM, UNIFORM, LESS]),
        ('headscale', [UNIFORM, PAST, BETWEEN, BY_WINDOW, LESS]),
        ('ntk', [BETWEEN, BY_WINDOW]),
        ('yarn', [BETWEEN]),
    ],
)
def test_without_a_role_its_claims_are_undecided(role, undecided):
    roles = {k: v for k, v in PERPLEXITY_OPTIONS['roles'].items() if k != role}
    found = claims(roles=roles)
    assert [i for i, claim in enumerate(found) if claim.holds is None] == undecided
    for index in undecided:
        assert found[index].measured == {'missing': f'no row has the role {role!r}'}


def test_a_role_whose_row_is_missing_leaves_its_claims_undecided():
    rows = tuple(
        {'label': 'RoPE', 'paper': 'RoPE', 'missing': 'not trained'} if r['label'] == 'RoPE' else r
        for r in PERPLEXITY_OPTIONS['rows']
    )
    parity = claims(rows=rows)[PARITY]
    assert parity.holds is None
    assert parity.measured == {'missing': "'RoPE' has no perplexity at 1 L on 'pg19'"}


def test_windows_and_corpora_that_were_not_measured_leave_claims_undecided():
    short = claims(windows=(1, 2))
    assert [claim.holds for claim in short] == [True, True, True, None, None, None, True]
    assert set(short[UNIFORM].measured['headscale_minus_uniform_nats']) == {
        f'searched at 2 L, at 2 L, {corpus}' for corpus in ('pg19', 'proof_pile')
    }
    assert "no window is near 9 L, where 'HeadScale 9 L'" in short[BETWEEN].measured['missing']
    nothing = tuple(c | {'missing': 'not there'} for c in PERPLEXITY_OPTIONS['corpora'])
    assert {claim.holds for claim in claims(corpora=nothing)} == {None}


def test_claims_are_means_over_seeds():
    given = INPUTS['perplexity_table']
    runs = dict(given.records)
    for seed, factor in ((0, 0.999), (1, 1.001)):
        runs[f'rope@pg19/seed{seed}'] = perplexity_records(
            factor * np.array(PERPLEXITY['nope']), corpus='pg19'
        )
        runs[f'nope@pg19/seed{seed}'] = perplexity_records(PERPLEXITY['nope'], corpus='pg19')
    found = KINDS['perplexity_table'].draw(dataclasses.replace(given, records=runs)).claims[PARITY]
    difference = found.measured['nope_minus_rope_nats']['pg19']
    assert difference['mean'] == pytest.approx(-(np.log(0.999) + np.log(1.001)) / 2)
    assert found.holds is True
