"""What the board says of claims in short: configs that decide them, and no others named."""

from __future__ import annotations

import functools
import pathlib

import pytest

from experiments import config_files, figure_commands
from experiments.board import of_results
from experiments.board.entries import ASKED, ENTRIES
from experiments.figures import KINDS, FigureInput
from tests.experiments.figures import renaming_test as renaming

RESULTS = pathlib.Path(__file__).parents[3] / 'configs/results'
# With one training at quick, claims about two amounts of it are not decided there; nor are those
# of one of four keys by made-up prompts that ask for one, of addition, of models that find keys
# at the beginning, nor of three seeds by one.
ELSEWHERE = {
    *('fit_budget', 'keys_four', 'no_init_beginning', 'pad_helps_addition', 'padded_encodings'),
    't5_is_as_near_as_another_seed',
}


@functools.cache
def decided(name: str) -> frozenset[str]:
    """Claims that the figure of a config decides, or reads, on made-up numbers of one seed."""
    config = config_files.module(name).get_config()
    options = config.figure.to_dict()
    kind = options.pop('kind')
    records = {}
    for index, (record, evaluation) in enumerate(KINDS[kind].required('f', options).items()):
        facts = {'train_length': renaming.LENGTH, **renaming.facts_of(config, record), 'seed': 0}
        place = f'{record}seed0' if record.endswith('/') else record
        records[place] = renaming.made(evaluation, index, 0, facts)
    output = KINDS[kind].draw(FigureInput('f', records, options))
    return frozenset(claim.id for claim in output.claims if claim.verdict != 'not measured')


@pytest.mark.parametrize('name', figure_commands.configs())
def test_a_config_decides_the_claims_that_name_it(name):
    named = {claim for claim, entry in ENTRIES.items() if name in entry.configs}
    assert named - ELSEWHERE <= decided(name)


@pytest.mark.parametrize('name', ENTRIES['keys_far'].configs)
def test_the_board_says_which_model_a_config_asks_for_keys_and_where(name):
    config = config_files.module(name).get_config()
    group = config.figure.roles['split']
    for point in config.figure.get('points', ()):
        if point['label'] == group:
            group = point['keys']
            break
    asked = config.evals[f'{group}/']
    assert ('search' in config.runs[asked.run]) == ('with lambda' in ASKED[name])
    assert (asked.get('haystack') == 'text') == ('in real text' in ASKED[name])


def test_every_committed_decision_is_of_a_config_that_its_claim_names():
    """`experiments.claims --run` draws these alone."""
    for summary in of_results(RESULTS):
        for found in summary.claims:
            if found.verdict not in ('not measured', 'reading'):
                assert summary.figure in ENTRIES[found.id].configs, (summary.figure, found.id)


def test_texts_are_short_and_differ():
    assert all(0 < len(entry.short) <= 40 for entry in ENTRIES.values())
    assert len({entry.short for entry in ENTRIES.values()}) == len(ENTRIES)
    assert all(len(entry.printed) <= 28 for entry in ENTRIES.values())
