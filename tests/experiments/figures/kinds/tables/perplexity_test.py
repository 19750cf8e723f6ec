"""Cells, choices, missing cells, options and caption of the table of perplexities."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from experiments.figures import KINDS, FigureInput
from tests.experiments.figures.synthetic import (
    CORPORA,
    INPUTS,
    PERPLEXITY,
    longppl_records,
    perplexity_records,
    stating,
)

KIND = KINDS['perplexity_table']
GIVEN = INPUTS['perplexity_table']
PG19 = ({'key': 'pg19', 'label': 'PG19', 'paper': 'pg19'},)
ROW = {'label': 'NoPE', 'paper': 'NoPE', 'record': 'nope'}


def draw(runs, rows, **more):
    options = {'corpora': PG19, 'rows': rows, **more}
    return KIND.draw(FigureInput('f', runs, options))


def found(output, row, window, corpus='pg19'):
    (cell,) = [
        r
        for r in output.rows
        if (r['row'], r['corpus'], r['window_over_L']) == (row, corpus, window)
    ]
    return cell


def choices(*values):
    """Records and rows of a method, perplexities by factor."""
    runs = {f'm_{2**i}@pg19': perplexity_records(v) for i, v in enumerate(values)}
    chosen = tuple({'factor': 2**i, 'record': f'm_{2**i}'} for i in range(len(values)))
    return runs, ({'label': 'method', 'paper': 'NTK_zero', 'choices': chosen},)


def test_values_land_in_their_cells_next_to_the_papers():
    output = KIND.draw(GIVEN)
    for column, window in enumerate((1, 2, 4, 8)):
        for corpus, power in (('pg19', 1.0), ('proof_pile', 0.5)):
            cell = found(output, 'HeadScale 9 L', window, corpus)
            seeds = PERPLEXITY['headscale_9'][column] ** power * np.array([1.0, 1.01])
            assert cell['ours'] == pytest.approx(seeds.mean())
            assert cell['spread'] == pytest.approx(seeds.std(ddof=1))
            assert cell['loss_nats'] == pytest.approx(np.log(seeds).mean())
            assert (cell['runs'], cell['missing']) == (2, '')
    last = found(output, 'HeadScale 9 L', 8)
    assert (last['paper'], last['group']) == (30.4, 'NoPE, extended')
    assert last['difference'] == pytest.approx(last['ours'] - 30.4)
    assert (last['tuned_over_L'], last['tokens'], last['paper_tokens']) == (9, 29491200, 30_000_000)


def test_what_the_paper_prints_as_a_bound_has_no_difference_and_no_ratio():
    cell = found(KIND.draw(GIVEN), 'NoPE', 8)
    assert (cell['paper'], cell['difference'], cell['paper_ratio']) == ('>1000', None, None)
    assert cell['ratio'] == pytest.approx(PERPLEXITY['nope'][3] / PERPLEXITY['nope'][0])


def test_ratios_are_to_the_base_row_at_L_on_the_same_corpus():
    output = KIND.draw(GIVEN)
    cell = found(output, 'uniform 1.8', 8, 'proof_pile')
    assert cell['ratio'] == pytest.approx((PERPLEXITY['uniform_1.8'][3] / 14.9) ** 0.5)
    assert cell['paper_ratio'] == pytest.approx(38.2 / 3.5)
    without = draw({'nope@pg19': perplexity_records((3, 4, 5, 6))}, (ROW,))
    assert found(without, 'NoPE', 2)['ratio'] is None


def test_a_name_with_a_slash_takes_every_seed_and_one_without_takes_one_record():
    runs = {'nope@pg19': perplexity_records((3, 4, 5, 6))}
    assert KIND.required('f', {'corpora': PG19, 'rows': (ROW,)}) == {'nope@pg19': 'perplexity'}
    cell = found(draw(runs, (ROW,)), 'NoPE', 4)
    assert (cell['ours'], cell['spread'], cell['runs']) == (5.0, None, 1)
    needs = KIND.required(GIVEN.name, GIVEN.options)
    assert {'nope@pg19/', 'nope@proof_pile/', 'ntk_4@pg19/'} <= set(needs)


def test_the_best_factor_is_found_for_each_window_and_for_all():
    runs, rows = choices((2, 3, 60, 70), (4, 5, 6, 30), (8, 9, 10, 11))
    output = draw(runs, rows)
    best = [found(output, 'method, best factor for each window', w) for w in (1, 2, 4, 8)]
    assert [c['ours'] for c in best] == pytest.approx([2, 3, 6, 11])
    assert [c['factor'] for c in best] == [1, 1, 2, 4]
    # Mean logarithms: 2.53, 2.05 and 2.24.
    single = [found(output, 'method, one factor (2)', w) for w in (1, 2, 4, 8)]
    assert [c['ours'] for c in single] == pytest.approx([4, 5, 6, 30])
    assert {c['factor'] for c in single} == {2}
    assert [c['paper'] for c in best] == [c['paper'] for c in single] == [14.5, 14.9, 22.8, 80.4]
    assert 'method: 1, 1, 2, 4 of 1, 2, 4' in output.caption


def test_factors_are_chosen_by_the_mean_over_seeds():
    runs = {
        f'm_{factor}@pg19/seed{seed}': perplexity_records((value,) * 4)
        for factor, values in ((1, (2.0, 8.0)), (2, (3.0, 5.0)))
        for seed, value in enumerate(values)
    }
    chosen = tuple({'factor': f, 'record': f'm_{f}/'} for f in (1, 2))
    cell = found(
        draw(runs, ({'label': 'm', 'choices': chosen},)), 'm, best factor for each window', 1
    )
    assert (cell['factor'], cell['ours']) == (2, 4.0)


def test_missing_rows_and_windows_say_why():
    runs = {'nope@pg19': perplexity_records((3, 4, 5), multiples=(1, 2, 4))}
    rows = (ROW, {'label': 'MPT', 'paper': 'MPT-7B', 'missing': 'too large'})
    output = draw(runs, rows)
    for (row, window), (paper, reason) in {
        ('NoPE', 4): ('>1000', ''),
        ('NoPE', 8): ('>1000', 'the records hold no window of this length'),
        ('MPT', 1): (10.6, 'too large'),
    }.items():
        cell = found(output, row, window)
        assert (cell['paper'], cell['missing']) == (paper, reason)
        assert (cell['ours'] is None) == bool(reason)
    assert output.runs == {'nope@pg19': 'nope-64-4x64-seed0-0123456789ab'}


def test_choices_without_a_window_in_common_are_refused():
    runs, rows = choices((2, 3), (4, 5))
    runs['m_1@pg19'] = perplexity_records((2, 3), multiples=(1, 2))
    runs['m_2@pg19'] = perplexity_records((4, 5), multiples=(4, 8))
    with pytest.raises(ValueError, match=r"figure 'f'.*'method'.*no window of \[1, 2, 4, 8\] L"):
        draw(runs, rows)


def test_other_windows_than_the_papers_have_no_number_of_it():
    runs = {'nope@pg19': perplexity_records((3, 4, 5), multiples=(1, 3, 4))}
    output = draw(runs, (ROW,), windows=(1, 3, 4))
    assert [found(output, 'NoPE', w)['paper'] for w in (1, 3, 4)] == [14.6, None, '>1000']


def test_bytes_are_said_not_to_compare_and_shown_with_two_decimals():
    runs = {'nope@pg19': perplexity_records((3.14, 4, 5, 6), token='byte')}
    output = draw(runs, (ROW,), roles={'base': 'NoPE'})
    assert 'values cannot be compared, only their order and their ratios' in output.caption
    assert 'ratio to the value of NoPE at L' in output.caption
    assert '| 3.14 / 14.6 |' in output.markdown and 'less' not in output.markdown
    assert {row['difference'] for row in output.rows} == {None}
    assert 'cannot be compared' not in KIND.draw(GIVEN).caption


def test_options_from_json_draw_the_same():
    again = FigureInput(GIVEN.name, GIVEN.records, json.loads(json.dumps(GIVEN.options)))
    first, second = (KIND.draw(given) for given in (GIVEN, again))
    assert first.rows == second.rows
    assert first.claims == second.claims


@pytest.mark.parametrize(
    ('attribute', 'value'), [('train_length', 1024), ('stride', 128), ('scored', 2**20)]
)
def test_rows_were_measured_alike(attribute, value):
    runs = {'nope@pg19': perplexity_records((3, 4, 5, 6)), 'a@pg19': perplexity_records((3,) * 4)}
    runs['a@pg19'] = stating(runs['a@pg19'], **{attribute: value})
    with pytest.raises(ValueError, match=f"runs differ in '{attribute}'"):
        draw(runs, (ROW, {'label': 'a', 'record': 'a'}))


def test_a_column_is_one_corpus():
    runs = {
        'nope@pg19': perplexity_records((3, 4, 5, 6)),
        'a@pg19': perplexity_records((3, 4, 5, 6), corpus='another'),
    }
    with pytest.raises(ValueError, match="runs differ in 'corpus'"):
        draw(runs, (ROW, {'label': 'a', 'record': 'a'}))


CHOICE = {'factor': 2, 'record': 'a'}


@pytest.mark.parametrize(
    ('changed', 'message'),
    [
        ({'corpora': ({'label': 'a'},)}, "corpora must give 'key'"),
        ({'corpora': ({'key': 'a', 'paper': 'c4'},)}, "paper of a corpus must be one of .*'c4'"),
        ({'corpora': (*PG19, *PG19)}, 'keys of corpora must differ'),
        ({'windows': (1, 0)}, 'windows must be a number above 0, got 0'),
        ({'windows': (2, 1)}, r'windows must ascend, got \[2, 1\]'),
        ({'rows': (ROW, ROW)}, 'labels of rows must differ'),
        ({'rows': ({**ROW, 'paper': 'Nope'},)}, "paper is 'Nope'; accepted"),
        ({'rows': ({'label': 'a'},)}, r"row 'a' must give one of .*, got \[\]"),
        ({'rows': ({**ROW, 'missing': 'b'},)}, r"one of .*, got \['record', 'missing'\]"),
        ({'rows': ({**ROW, 'tuned': '8'},)}, "tuned of row 'NoPE' must be a number above 0"),
        ({'rows': ({**ROW, 'tokens': -1},)}, "tokens of row 'NoPE' must be a number above 0"),
        ({'rows': ({'label': 'a', 'choices': ({'factor': 2},)},)}, "choices must give 'record'"),
        (
            {'rows': ({'label': 'a', 'choices': (CHOICE, CHOICE)},)},
            "factors of row 'a' must differ",
        ),
        (
            {'rows': ({'label': 'a', 'choices': ({**CHOICE, 'factor': 'x'},)},)},
            "factor of row 'a' must be a number above 0",
        ),
        ({'roles': {'base': 'RoPE'}}, "role 'base' is given to the row 'RoPE'; the rows are"),
        ({'roles': {'uniform': 'NoPE'}}, "role 'uniform' must be {multiple of L: label}"),
        ({'roles': {'headscale': {'long': 'NoPE'}}}, "role 'headscale' must be"),
        ({'roles': {'headscale': {2: 'RoPE'}}}, "role 'headscale' is given to the row 'RoPE'"),
    ],
)
def test_bad_options_are_named(changed, message):
    options = {'corpora': CORPORA, 'rows': (ROW,)} | changed
    with pytest.raises(ValueError, match=f"figure 'f'.*{message}"):
        KIND.required('f', options)


WITH_LONGPPL = (
    *PG19,
    {'key': 'long', 'label': 'PG19, LongPPL', 'measure': 'longppl', 'windows': (2, 4)},
)


def test_longppl_has_columns_of_its_own_beside_perplexity():
    runs = {'nope@pg19': perplexity_records((3, 4, 5, 6)), 'nope@long': longppl_records((7, 8))}
    output = draw(runs, (ROW,), corpora=WITH_LONGPPL)
    assert [found(output, 'NoPE', w)['ours'] for w in (1, 2, 4, 8)] == [3, 4, 5, 6]
    assert [found(output, 'NoPE', w, 'long')['ours'] for w in (2, 4)] == [7, 8]
    assert len(output.rows) == 6
    assert found(output, 'NoPE', 2, 'long')['paper'] is None
    assert 'LongPPL (arXiv:2410.23771)' in output.caption
    assert 'a short context of 2,048, in steps of 512' in output.caption
    assert 'LongPPL' not in draw({'nope@pg19': runs['nope@pg19']}, (ROW,)).caption
    needs = KIND.required('f', {'corpora': WITH_LONGPPL, 'rows': (ROW,)})
    assert needs == {'nope@pg19': 'perplexity', 'nope@long': 'longppl'}


def test_a_length_without_key_tokens_is_an_empty_cell():
    runs = {
        'nope@pg19': perplexity_records((3, 4, 5, 6)),
        'nope@long': longppl_records((7, np.nan)),
    }
    output = draw(runs, (ROW,), corpora=WITH_LONGPPL)
    assert found(output, 'NoPE', 2, 'long')['ours'] == 7
    cell = found(output, 'NoPE', 4, 'long')
    assert (cell['ours'], cell['missing']) == (
        None,
        'no token is key at this length, or it was not measured',
    )


def test_one_factor_for_all_is_chosen_by_perplexity_alone():
    runs, rows = choices((2, 3, 60, 70), (4, 5, 6, 30))
    runs |= {'m_1@long': longppl_records((1.1, 1.1)), 'm_2@long': longppl_records((90, 90))}
    output = draw(runs, rows, corpora=WITH_LONGPPL)
    assert found(output, 'method, one factor (2)', 2, 'long')['ours'] == pytest.approx(90)
    best = found(output, 'method, best factor for each window', 2, 'long')
    assert (best['ours'], best['factor']) == (pytest.approx(1.1), 1)


def test_claims_hear_nothing_of_longppl():
    """Ten times better after the longest windows, and no verdict is another."""
    plain = KIND.draw(GIVEN)
    added = {
        name.replace('@pg19', '@long'): longppl_records((1.5, 1.5))
        for name in GIVEN.records
        if '@pg19' in name
    }
    options = {**GIVEN.options, 'corpora': (*GIVEN.options['corpora'], WITH_LONGPPL[1])}
    given = dataclasses.replace(GIVEN, records={**GIVEN.records, **added}, options=options)
    assert KIND.draw(given).claims == plain.claims


@pytest.mark.parametrize('attribute', ['short', 'evaluator'])
def test_longppl_was_measured_alike(attribute):
    rows = (ROW, {'label': 'other', 'record': 'other'})
    runs = {f'{name}@pg19': perplexity_records((3, 4, 5, 6)) for name in ('nope', 'other')}
    runs['nope@long'] = longppl_records((7, 8))
    runs['other@long'] = longppl_records((7, 8), **{attribute: 'another'})
    with pytest.raises(ValueError, match=attribute):
        draw(runs, rows, corpora=WITH_LONGPPL)
