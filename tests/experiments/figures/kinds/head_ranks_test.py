"""Rank correlations of heads between steps, data and seeds, and what is refused."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import stats

from configs.attention import initialisations
from experiments.build import build
from experiments.figures import KINDS
from experiments.figures.given import FigureInput
from nope.training.optim import learning_rate
from tests.experiments.figures import synthetic

INSIDE = slice(32, 64)


def correlations(given: FigureInput) -> dict[tuple, float]:
    """By label, what is compared, step, both seeds and layer, inside L."""
    return {
        (
            row['label'],
            row['measure'].removeprefix('rank_correlation, '),
            *(row[key] for key in ('step', 'seed', 'other', 'layer')),
        ): row['value']
        for row in KINDS['head_ranks'].draw(given).rows
        if row['up_to_L'] == 1.0 and row['measure'] != 'entropy_bits'
    }


def nats(given: FigureInput, record: str) -> np.ndarray:
    return given.records[record]['entropy'][..., INSIDE].mean(axis=-1, dtype=float)


def test_rows_have_spearmans_correlations_of_layers_of_all_heads_and_their_mean() -> None:
    given = synthetic.ranks_input()
    found = correlations(given)
    for case, first, second in (
        (('b', 'end', 1, 'seed2', 'seed2'), 'b_1/seed2', 'b_2400/seed2'),
        (('b', 'end', 240, 'seed0', 'seed0'), 'b_240/seed0', 'b_2400/seed0'),
        (('a', 'other data', 2400, 'seed1', 'seed1'), 'a_2400/seed1', 'a_again/seed1'),
        (('a', 'other seed', 2400, 'seed0', 'seed2'), 'a_2400/seed0', 'a_2400/seed2'),
    ):
        one, other = nats(given, first), nats(given, second)
        layers = [stats.spearmanr(*pair).statistic for pair in zip(one, other, strict=True)]
        assert [found[*case, layer] for layer in range(4)] == pytest.approx(layers)
        assert found[*case, 'mean of layers'] == pytest.approx(np.mean(layers))
    pairs = {key[1:5] for key in found if key[:2] == ('a', 'other seed')}
    assert len(pairs) == 3
    assert not [key for key in found if key[:2] == ('b', 'other data')]


def test_all_heads_are_ranked_together_over_layers() -> None:
    """Entropies that differ between layers alone agree over all heads and not within layers."""
    given, records = synthetic.ranks_input(seeds=1), {}
    for name, found in given.records.items():
        deeper = 100 * np.arange(4)[:, None, None]
        records[name] = synthetic.measuring(found, entropy=found['entropy'] + deeper)
    found = correlations(dataclasses.replace(given, records=records))
    case = ('a', 'end', 1, 'seed0', 'seed0')
    assert found[*case, 'all heads'] > 0.9 > found[*case, 'mean of layers']
    assert not [key for key in found if key[1] == 'other seed']


def test_the_caption_says_the_mean_of_the_first_step_and_the_table_all() -> None:
    given = synthetic.ranks_input()
    found = correlations(given)
    first = [found['a', 'end', 1, s, s, 'mean of layers'] for s in ('seed0', 'seed1', 'seed2')]
    output = KINDS['head_ranks'].draw(given)
    assert f'In (L/2, L] it is {np.mean(first):.2f} (a) and' in output.caption
    of_layers, of_all = output.markdown.splitlines()[2:4]
    assert of_layers.startswith(f'| a, (L/2, L] | of a layer | {np.mean(first):.2f} | ')
    every = [found['a', 'end', 1, s, s, 'all heads'] for s in ('seed0', 'seed1', 'seed2')]
    assert of_all.startswith(f'| a, (L/2, L] | of all layers | {np.mean(every):.2f} | ')


@pytest.mark.parametrize(
    ('again', 'facts', 'message'),
    [
        ({'group': 'a_again', 'label': 'c'}, {}, r'again must be one group of a label of steps'),
        ({'group': 'a_again', 'label': 'a'}, {'step': 240}, r"two groups of 'a' are of the same"),
        ({'group': 'a_again', 'label': 'a'}, {'run_id': 'b'}, r"groups of 'a' are of several runs"),
    ],
)
def test_groups_that_do_not_belong_together_are_refused(again, facts, message) -> None:
    given = synthetic.ranks_input(seeds=1)
    changed = {'a_1/seed0': synthetic.stating(given.records['a_1/seed0'], **facts)}
    given = synthetic.with_options(synthetic.with_records(given, **changed), again=[again])
    with pytest.raises(ValueError, match=message):
        KINDS['head_ranks'].draw(given)


def test_groups_of_other_seeds_are_refused() -> None:
    given = synthetic.ranks_input(seeds=2)
    records = {name: found for name, found in given.records.items() if name != 'b_240/seed1'}
    with pytest.raises(ValueError, match=r"'b_240' has the seeds \['seed0'\]"):
        KINDS['head_ranks'].draw(dataclasses.replace(given, records=records))


def test_the_config_measures_the_untrained_model_and_changes_first_weights_or_data_alone() -> None:
    evals = build(initialisations.get_config()).evals
    assert evals['t5_0/seed1'].step == 1
    assert learning_rate(evals['t5_0/seed1'].run.train.optimizer)(0) == 0
    runs = {name: evals[f'{name}_4/seed1'].run for name in initialisations.INITIALISATIONS}
    assert {(run.data_seed, run.seed) for run in runs.values()} == {(3408, 1)}
    for name, run in runs.items():
        again = evals[f'{name}_again/seed1'].run
        assert again == dataclasses.replace(run, data_seed=again.data_seed) != run
    assert [run.model.init for run in runs.values()] == ['tinyllama', 't5', 'sharp']
