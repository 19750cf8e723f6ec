"""Runs of models with other attention weights: the config that compares them, and their names."""

from __future__ import annotations

import pytest

from configs.encodings import weights
from experiments.build import Experiment, build
from experiments.facts import describe_model


@pytest.fixture(scope='module')
def quick() -> Experiment:
    return build(weights.get_config('quick'))


def test_every_rule_has_a_model_of_half_alibi_half_nope(quick: Experiment) -> None:
    """And one that differs from softmax's in nothing but the rule."""
    models = {name.removesuffix('/seed0'): spec.run.model for name, spec in quick.evals.items()}
    split = [name for name, model in models.items() if model.position.describe() != 'none']
    assert {models[name].weights for name in split} == {'softmax', 'entmax', 'stick_breaking'}
    assert {models[name].lam_layers for name in split} == {'nope'}
    assert models['asentmax'].temperature == 'adaptive'
    assert models['stick_breaking_nope'].position.describe() == 'none'


def test_windows_stay_short(quick: Experiment) -> None:
    """T x T arrays: no window beyond 8 L."""
    assert {spec.extent for spec in quick.evals.values()} == {8 * 64}


def test_folders_and_captions_name_the_rule(quick: Experiment) -> None:
    runs = {name: quick.evals[f'{name}/seed0'].run for name in ('half_alibi', 'stick_breaking')}
    assert 'split-alibi-64-' in runs['half_alibi'].slug()
    assert 'split-alibi-stick-breaking-64-' in runs['stick_breaking'].slug()
    softmax, other = (describe_model(run.model) for run in runs.values())
    assert other == softmax.replace('4 layers', 'stick-breaking, 4 layers')


def test_the_shape_of_attention_is_refused_by_the_field_that_names_the_run() -> None:
    config = weights.get_config('quick')
    config.evals['entmax/'] = {'kind': 'attention_shape', 'run': 'entmax', 'times': 2.0}
    message = r"^evals\.entmax/\.run is 'entmax'; its weights are 'entmax'; accepted: softmax"
    with pytest.raises(ValueError, match=message):
        build(config)
