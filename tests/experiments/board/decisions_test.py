"""The board from made-up summaries: seeds, figures that disagree, sizes, what is missing."""

from __future__ import annotations

import re

import numpy as np
import pytest

from experiments import board, config_files
from experiments.board import Finding, Summary, decisions, page
from experiments.figures import KINDS, FigureInput
from experiments.figures.claims.catalogue import CLAIMS
from experiments.figures.claims.headline import line, number
from tests.experiments.figures import renaming_test as renaming

HOLDS, FAILS, OPEN, NOT = 'holds', 'does not hold', 'undecided', 'not measured'


def summary(figure='fig1', size='quick', verdict=HOLDS, value=0.02, claim='parity', seeds=(0,)):
    numbers = () if verdict == NOT else (number('NoPE - RoPE', value, 'nats'),)
    finding = Finding(claim, verdict, numbers, 'at most 0.05 nats')
    return Summary(figure, size, seeds, {'nope': 'a1'}, '2026-01-02', (finding,))


def parity(*summaries):
    return next(s for s in board.standings(summaries) if s.claim.id == 'parity')


def test_every_claim_stands_once_the_eleven_first():
    found = [standing.claim for standing in board.standings([])]
    assert [c for c in found if c.number is None] == [
        c for c in CLAIMS.values() if c.number is None
    ]
    numbers = [c.number for c in found if c.number is not None]
    assert numbers == sorted(numbers) and len(found) == len(CLAIMS)


THREE = {'seeds': (0, 1, 2)}


@pytest.mark.parametrize(
    ('summaries', 'verdict', 'decisions'),
    [
        ([], NOT, 0),
        ([{'verdict': NOT}], NOT, 0),
        ([{}], HOLDS, 1),
        ([{}, {'figure': 'table2'}], HOLDS, 2),
        ([{}, {'figure': 'table2', 'verdict': FAILS}], 'figures disagree', 2),
        ([{'figure': 'table2'}, {'verdict': OPEN, **THREE}], OPEN, 2),
        ([{'figure': 'table2', 'verdict': OPEN}, {'verdict': FAILS, **THREE}], FAILS, 2),
        # An opposite verdict of fewer seeds may be of a case that the others have not measured.
        ([{'figure': 'table2'}, {'verdict': FAILS, **THREE}], 'figures disagree', 2),
        ([{'verdict': OPEN}, {'figure': 'table2'}], OPEN, 2),
        ([{'verdict': OPEN}, {'figure': 'table2', 'verdict': FAILS}], OPEN, 2),
        (
            [{'verdict': OPEN}, {'figure': 'table2'}, {'figure': 'fig2', 'verdict': FAILS}],
            'figures disagree',
            3,
        ),
    ],
)
def test_figures_with_the_most_seeds_decide_and_none_is_outvoted(summaries, verdict, decisions):
    made = [summary(**given) for given in summaries]
    found = parity(*made)
    assert (found.verdict('quick'), len(found.at('quick'))) == (verdict, decisions)
    assert board.standings(made) == board.standings(made[::-1])


def test_two_texts_stand_beside_each_other_and_never_in_one_verdict():
    made = [
        summary(**THREE),
        summary(figure='fig1_books', verdict=FAILS, **THREE),
        summary(figure='fig1_books', size='small', verdict=OPEN),
    ]
    found = [s for s in board.standings(made) if s.claim.id == 'parity']
    assert [(s.text, s.verdict('quick'), s.verdict('small')) for s in found] == [
        ('', HOLDS, NOT),
        ('books', FAILS, OPEN),
    ]
    text = page.markdown(board.standings(made), ['quick', 'small'], lambda d: d.figure)
    lines = [line for line in text.splitlines() if '1. NoPE and RoPE level inside L' in line]
    none = page.MARKS[NOT]
    assert [line.split(' | ')[:2] for line in lines] == [
        [f'| ✓³ {none}', 'Python'],
        ['| ✗³ ~¹', 'books'],
    ]
    alone = page.markdown(board.standings(made[1:]), ['quick', 'small'], lambda d: d.figure)
    assert 'Not measured: ' in alone and 'measured: NoPE and RoPE level inside L' not in alone


def test_a_size_on_another_text_stands_with_that_text():
    made = [summary(**THREE), summary(size='large', verdict=FAILS)]
    found = [s for s in board.standings(made) if s.claim.id == 'parity']
    assert [(s.text, s.verdict('quick'), s.verdict('large')) for s in found] == [
        ('', HOLDS, NOT),
        ('books', NOT, FAILS),
    ]


def test_another_text_is_shown_by_the_figure_of_the_first_where_it_has_one():
    """Numbers of two texts stand in one column and are of one measure."""
    made = [summary('fig2', size=size) for size in ('quick', 'small')]
    made += [summary('fig1'), summary('fig1_books'), summary('fig2_books')]
    text = page.markdown(board.standings(made), ['quick', 'small'], lambda d: d.figure)
    lines = [line for line in text.splitlines() if '1. NoPE and RoPE level inside L' in line]
    assert [line.split('](')[1].split(')')[0] for line in lines] == ['fig2', 'fig2_books']
    text = page.markdown(board.standings(made[:-1]), ['quick', 'small'], lambda d: d.figure)
    assert '](fig1_books)' in text


def test_a_standing_has_the_figure_the_seeds_and_the_numbers_of_each_size():
    values = np.array([0.01, 0.02, 0.03])
    found = parity(summary(), summary(size='small', verdict=FAILS, value=values, **THREE))
    verdicts = [found.verdict(size) for size in ('quick', 'small', 'paper')]
    assert verdicts == [HOLDS, FAILS, NOT]
    (decision,) = found.at('small')
    assert (decision.figure, decision.seeds) == ('fig1', (0, 1, 2))
    assert line(decision.numbers) == 'NoPE - RoPE 0.020 nats [-0.005, 0.045]'
    assert found.configs == ('fig1', 'fig2', 'table1', 'table2')
    with pytest.raises(ValueError, match="summary of 'fig1' at 'quick' is given twice"):
        board.standings([summary(), summary()])


# With one training at quick, claims about two amounts of it are not decided there; nor are those
# of one of four keys by made-up prompts that ask for one, of addition, of models that find keys
# at the beginning, nor of three seeds by one.
ELSEWHERE = {
    *('fit_budget', 'keys_four', 'no_init_beginning', 'pad_helps_addition', 'padded_encodings'),
    't5_is_as_near_as_another_seed',
}


@pytest.mark.parametrize('name', sorted(set().union(*decisions.configs().values())))
def test_a_config_decides_the_claims_that_its_roles_ask_for(name):
    """On made-up numbers of one seed."""
    config = config_files.module(name).get_config()
    options = config.figure.to_dict()
    kind = options.pop('kind')
    records = {}
    for index, (record, evaluation) in enumerate(KINDS[kind].required('f', options).items()):
        facts = {'train_length': renaming.LENGTH, **renaming.facts_of(config, record), 'seed': 0}
        place = f'{record}seed0' if record.endswith('/') else record
        records[place] = renaming.made(evaluation, index, 0, facts)
    output = KINDS[kind].draw(FigureInput('f', records, options))
    measured = {claim.id: claim for claim in output.claims if claim.verdict != NOT}
    for claim in measured.values():
        assert re.search(r'\d|none measured', claim.headline) and len(claim.headline) <= 300
        assert '\n' not in claim.headline
        assert all(number.what and number.by_seed for number in claim.numbers)
    asked = {claim for claim, names in decisions.configs().items() if name in names}
    assert asked and asked - ELSEWHERE <= set(measured)


def test_models_with_lambda_decide_nothing_for_those_as_trained():
    """Each has a line of its own."""
    both = (('split_seeds', FAILS), ('frontier', HOLDS))
    made = [summary(figure, verdict=verdict, claim='keys_far') for figure, verdict in both]
    trained, scaled = (s for s in board.standings(made) if s.claim.id == 'keys_far')
    assert (trained.asked, scaled.asked) == (' (as trained)', ' (with lambda)')
    assert (trained.verdict('quick'), scaled.verdict('quick')) == (FAILS, HOLDS)


@pytest.mark.parametrize('name', decisions.configs()['keys_far'])
def test_the_board_says_which_model_a_config_asks_for_keys_and_where(name):
    config = config_files.module(name).get_config()
    group = config.figure.roles['split']
    for point in config.figure.get('points', ()):
        if point['label'] == group:
            group = point['keys']
            break
    asked = config.evals[f'{group}/']
    assert ('search' in config.runs[asked.run]) == ('with lambda' in decisions.ASKED[name])
    assert (asked.get('haystack') == 'text') == ('in real text' in decisions.ASKED[name])
