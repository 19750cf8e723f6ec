"""The config that holds HeadScale against fine-tuning of all weights: what is alike in both."""

from __future__ import annotations

import pytest

from configs.first_paper import tuned_nope
from experiments.build import build


def test_a_search_and_a_fine_tuning_read_the_same_batches_at_the_length_of_their_roles() -> None:
    config = tuned_nope.get_config()
    evals, roles = build(config).evals, config.figure.roles
    for times in (4, 8):
        names = (roles.headscale[times], roles.tuned[times])
        searched, tuned = (evals[f'{name}/seed1'].run for name in names)
        assert searched.searches and tuned.fine_tunes and searched.init == tuned.init
        for run in (searched, tuned):
            assert run.train.lengths == (64 * times,)
        for field in ('data', 'data_seed', 'seed'):
            assert getattr(searched, field) == getattr(tuned, field)
        for field in ('batch_size', 'steps'):
            assert getattr(searched.train, field) == getattr(tuned.train, field)
        longer = evals[f'tuned_{times}x_1000_0_25/seed1'].run.train
        assert longer.steps == 5 * tuned.train.steps


def test_rates_are_compared_on_validation_windows_and_are_those_of_the_figure() -> None:
    rates = build(tuned_nope.get_config('quick,rates')).evals
    assert {spec.windows.split for spec in rates.values()} == {'validation'}
    drawn = {spec.run for spec in rates.values()}
    figure = {spec.run for spec in build(tuned_nope.get_config()).evals.values()}
    chosen = {run for run in drawn & figure if run.fine_tunes}
    assert {run.train.steps for run in chosen} == set(tuned_nope.RATES)
    with pytest.raises(ValueError, match=r"tuned_nope: 'rate' behind the size is unknown"):
        tuned_nope.get_config('quick,rate')
