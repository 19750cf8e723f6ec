"""Search of lambda on a frozen model, from an entry of `runs`."""

from __future__ import annotations

import dataclasses
import math

from experiments.config import Section, is_number
from experiments.models import coefficient, same_scaled_heads
from experiments.runs import later, tasks
from experiments.runs.laws import trained_with
from experiments.runs.spec import MultiplierChoice, RunSpec, Source
from experiments.scope import Scope
from nope.data import TaskData
from nope.data.tasks import training_extents
from nope.model import ModelConfig, lam
from nope.runtime.errors import one_of
from nope.training.optim import OptimizerConfig

OBJECTIVES = 'loss', 'entropy'
FIELDS = ('init', 'nope', 'own_tokenizer', 'model', 'data', 'task', 'search')


def from_entry(scope: Scope, entry: Section, init: Source) -> RunSpec:
    """A run that trains lambda alone. On a model that was trained under a law it trains a second
    law, which multiplies that law."""
    trained = trained_with(entry, init)
    section = scope.section('search', entry)
    lengths = scope.training_lengths(section, init.train_length)
    target = section.optional('target')
    if target is not None and target <= init.train_length:
        raise section.error(
            'target',
            f'it must be beyond the training length, {init.train_length} (train.length sets it)',
        )
    weights = later.trained_weights(init)
    of_weights = weights.data, weights.typed.task
    law = tasks.law_of(section, *of_weights, init.train_length, init.model.head_dim)
    of_text = not isinstance(init.data, TaskData)  # of a task its examples say how far they reach
    if of_text and not law.acts_within(max(lengths)):
        raise section.error(
            scope.lengths_field(section).rpartition('.')[2],
            f'it makes sequences of up to {max(lengths)} tokens; lambda of the law '
            f'{type(law).__name__} is 1 up to that length',
        )
    on_law = trained != lam.Constant()
    bound = _bound(section, law, trained if on_law else None)
    steps = section.at_least('steps', 1)
    warmup = section.optional('warmup_steps')
    optimizer = section.make(
        OptimizerConfig,
        trains='lam',
        decay_steps=steps,
        warmup_steps=steps // 10 if warmup is None else section.at_least('warmup_steps', 0),
        bound=bound,
        entropy_length=_entropy_length(scope, section, lengths, weights),
    )
    model = _model(entry, init, lam.Product(trained, law) if on_law else law)
    start = _start(scope, section, law, bound)
    return later.run(scope, entry, section, init, model, optimizer, lam_start=start)


def _entropy_length(
    scope: Scope, section: Section, lengths: tuple[int, ...], weights: Source
) -> int | None:
    """The training length of a search by entropy, of a task that of its prompts; None for loss.

    weights: the run that trained them last."""
    objective = section['objective']
    if objective not in OBJECTIVES:
        raise section.error('objective', one_of(OBJECTIVES))
    if objective == 'loss':
        return None
    if isinstance(weights.data, TaskData):
        with tasks.reading_task(weights.typed.task):
            return training_extents(weights.data).longest_prompt
    train_length = weights.train_length
    if min(lengths) <= train_length:
        raise section.error(
            scope.lengths_field(section).rpartition('.')[2],
            f'it makes windows of {min(lengths)} tokens; the objective entropy compares windows '
            f'beyond the training length, {train_length}, with their first {train_length} tokens',
        )
    return train_length


def _model(entry: Section, init: Source, law: lam.Law) -> ModelConfig:
    """The frozen model under that law, which may act on other heads than before."""
    model = dataclasses.replace(init.model, lam=law)
    if 'model' not in entry:
        return model
    changes = entry.below('model').only(('lam_layers',))
    if 'lam_layers' not in changes:
        return model
    if isinstance(law, lam.Product) and changes['lam_layers'] != init.model.lam_layers:
        raise changes.error(
            'lam_layers',
            f'the law that the model was trained under acts in {init.model.lam_layers!r}',
        )
    with changes.naming():
        model = dataclasses.replace(model, lam_layers=changes['lam_layers'])
    if model.temperature != 'none' and not same_scaled_heads(model, init.model):
        raise changes.error(
            'lam_layers',
            f"the model's temperature, {model.temperature!r}, acts in {init.model.lam_layers!r}",
        )
    return model


def _bound(section: Section, law: lam.Law, trained: lam.Law | None) -> float | None:
    """The least coefficient: None in the config for the law's neutral one, if it has one number a
    head and a neutral one, -inf for none. There is none on top of a law that was trained in;
    ValueError for fields without meaning there."""
    typed = section.optional('bound')
    if trained is not None:
        name = type(trained).__name__
        stays = f'{name} out, which the model was trained under'
        if typed not in (None, -math.inf):
            rule = f'it would hold for the coefficients of {name} too, which stay; accepted: None'
            raise section.error('bound', rule)
        if section['objective'] != 'loss':
            raise section.error('objective', f'its target leaves {stays}; accepted: loss')
        if section.optional('start_from') is not None:
            raise section.error('start_from', f'its grid leaves {stays}; give start')
        if section['tied']:
            raise section.error('tied', f'it would tie the coefficients of {name} too, which stay')
        return None
    if typed is None:
        alone = law.numbers == 1
        return law.neutral if alone and isinstance(law.neutral, float) else None
    if typed == -math.inf:
        return None
    if not is_number(typed) or not math.isfinite(typed):
        raise section.error('bound', 'accepted: a finite number, or -inf for none')
    return float(typed)


def _start(
    scope: Scope, section: Section, law: lam.Law, bound: float | None
) -> lam.Coefficient | MultiplierChoice:
    """`start`, unless `start_from` names a grid, whose best multiplier then takes its place.
    ValueError where the search would begin outside of its own constraint."""
    grid_name = section.named('start_from', 'a grid among the evals')
    if grid_name is not None:
        if not law.starts_from_uniform:
            raise section.error(
                'start_from',
                f'lambda of the law {type(law).__name__} cannot start from a uniform multiplier',
            )
        choice = scope.grid(grid_name, section.path('start_from'))
        if bound is not None and choice.highest < bound:
            raise section.error(
                'bound',
                f'it is above every multiplier of the grid that {section.path("start_from")} '
                f'names, up to {choice.highest}; the search would begin outside its constraint',
            )
        return choice
    start = law.neutral if section.optional('start') is None else coefficient(section, 'start')
    if start is None:
        raise section.error(
            'start',
            f'no coefficient of {type(law).__name__} leaves the model as it is, so that the '
            'search needs one to start from',
        )
    with section.naming():
        law.check_start(start)
    least = min(start) if isinstance(start, tuple) else start
    if bound is not None and least < bound:
        raise section.error(
            'start',
            f'it is below {section.path("bound")}, {bound}; the search would begin outside its '
            'own constraint',
        )
    return start
