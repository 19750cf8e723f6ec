"""Models of the study of sizes at matched budgets: what they share and what alone differs."""

from __future__ import annotations

import dataclasses

import pytest

from configs.first_paper import matched
from experiments.build import Experiment, build
from experiments.config import plain
from experiments.runs import RunSpec


def built(size: str = 'quick', steps: int | None = None) -> Experiment:
    config = matched.get_config(f'{size},rope')
    config.data.source = 'stdlib'
    if steps is not None:
        config.train.steps = steps
    return build(config, ['train.steps'] if steps else [])


def trained(experiment: Experiment, kind: str = 'nope') -> dict[str, RunSpec]:
    """'64' -> the run; '128_quarter', of another number of tokens."""
    return {
        name.partition('_')[2]: spec.run
        for name, spec in experiment.evals.items()
        if name.startswith(f'{kind}_')
    }


def tokens(run: RunSpec) -> int:
    return run.train.steps * run.train.batch_size * run.train.block


@pytest.mark.parametrize('size', ['quick', 'small', 'medium'])
@pytest.mark.parametrize('kind', ['nope', 'rope'])
def test_widths_differ_in_shape_and_learning_rate_alone(size: str, kind: str) -> None:
    runs = trained(built(size), kind)
    by_width = {run.model.width: run for name, run in runs.items() if name.isdigit()}
    assert sorted(by_width) == [64, 128, 256, 512]
    assert len({tokens(run) for run in by_width.values()}) == 1
    first, *others = by_width.values()
    for run in others:
        model = dataclasses.replace(
            run.model,
            width=first.model.width,
            heads=first.model.heads,
            kv_heads=first.model.kv_heads,
            mlp_width=first.model.mlp_width,
        )
        assert model == first.model and model.head_dim == run.model.width // run.model.heads
        rate, own = run.train.optimizer.learning_rate, first.train.optimizer.learning_rate
        assert rate == pytest.approx(own * first.model.width / run.model.width)
        optimizer = dataclasses.replace(run.train.optimizer, learning_rate=own)
        train = dataclasses.replace(run.train, optimizer=optimizer)
        assert dataclasses.replace(run, model=model, train=train) == first


@pytest.mark.parametrize('kind', ['nope', 'rope'])
def test_amounts_of_tokens_differ_in_steps_alone(kind: str) -> None:
    runs = trained(built(steps=800), kind)
    less, same, more = (runs[name] for name in ('128_quarter', '128', '128_fourfold'))
    assert [run.train.steps for run in (less, same, more)] == [200, 800, 3200]
    for run in (less, more):
        assert run.model == same.model and run.train.block == same.train.block
        assert run.train.optimizer.learning_rate == same.train.optimizer.learning_rate
        assert run.train.optimizer.decay_steps == run.train.steps


def test_each_multiplier_is_chosen_on_its_own_model() -> None:
    evals = built().evals
    names = [name.removeprefix('nope_') for name in evals if name.startswith('nope_')]
    assert len(names) == 6
    for name in names:
        grid, model = evals[f'grid_{name}'], evals[f'nope_{name}'].run
        assert grid.run == model and evals[f'uniform_{name}'].multiplier == grid
        searched = evals[f'headscale_{name}'].run
        assert searched.init == model and searched.lam_start == grid


def test_rope_can_be_added() -> None:
    whole, part = (matched.get_config(asked) for asked in ('quick,rope', 'quick'))
    left_out = {name for name in whole.runs if name.startswith('rope_')}
    assert len(left_out) == 6 and set(whole.runs) - set(part.runs) == left_out
    assert (whole.name, part.name) == ('matched_rope', 'matched')
    assert plain(whole.runs.nope_512) == plain(part.runs.nope_512)
    assert not any('rope' in entry for entry in part.figure.widths + part.figure.tokens)
    with pytest.raises(ValueError, match=r"'alibi' is unknown; accepted: matched:quick,rope"):
        matched.get_config('quick,alibi')
