"""Pre-training from an entry of `runs`."""

from __future__ import annotations

import dataclasses
from typing import Any

from experiments.config import Section, is_number
from experiments.models import LAW_MOVED, same_law_heads, same_scaled_heads
from experiments.runs import laws, tasks
from experiments.runs.spec import RunSpec, Typed
from experiments.scope import Scope, warmup_steps
from nope.data import RunData, TaskData
from nope.model import ModelConfig
from nope.positions import NoPE
from nope.runtime.errors import FieldError
from nope.training.config import Earlier, TrainConfig, Validation
from nope.training.optim import OptimizerConfig

FIELDS = ('init', 'nope', 'model', 'data', 'task', 'train', 'lam', 'drop_at')


def from_entry(scope: Scope, entry: Section) -> RunSpec:
    """A run from fresh parameters, with its own data, task and training length where it names them,
    and under a law of lambda where it names one."""
    section = scope.section('train', entry)
    length = scope.length if section.optional('length') is None else section.at_least('length', 1)
    steps = section.at_least('steps', 1)
    config = tasks.data_of(scope, entry) if 'task' in entry else scope.data(entry, length)
    decay = steps if section.optional('decay_steps') is None else section.at_least('decay_steps', 1)
    model = scope.model(entry, config, length)
    fields = scope.section('model', entry)
    tasks.check_answers(config, model, fields.path('causal'))
    model = _with_random_positions(scope, section, model, config, length)
    law, trains = None, 'params'
    if 'lam' in entry:
        law, trained = laws.in_training(entry, config, length, model.head_dim)
        model = dataclasses.replace(model, lam=law.law)
        trains = 'all' if trained else trains
    model, earlier = _dropped(entry, model, steps)
    given: dict[str, Any] = {'trains': trains, 'decay_steps': decay}
    if 'warmup_share' in section and section.optional('warmup_steps') is None:
        given['warmup_steps'] = warmup_steps(section, steps)
    optimizer = section.make(OptimizerConfig, **given)
    if optimizer.entropy_penalty:
        if isinstance(config, TaskData):
            rule = 'rows of a task are padded, and the entropy of padding would count'
            raise section.error('entropy_penalty', rule)
        first = model if earlier is None else earlier.model
        if not first.heads_without_position.any():
            described = first.describe_position()
            rule = f'it is of heads without position, and the model has {described} in all of them'
            raise section.error('entropy_penalty', rule)
    kept = tuple(kept_step(share, steps, section.path('keep')) for share in section['keep'])
    with section.naming(lengths='length', validation='validate_every'):
        train = TrainConfig(
            (length,),
            section['batch_size'],
            steps,
            optimizer,
            kept,
            _validation(section, config, dropped=earlier is not None),
        )
    return RunSpec(
        model=model,
        data=config,
        train=train,
        seed=scope.seed,
        data_seed=section.at_least('data_seed', 0) + scope.seed,
        train_length=length,
        lam_start=None if law is None else law.coefficient,
        earlier=earlier,
        typed=Typed(
            section.path('length'),
            fields.path('attention'),
            fields.path('pattern'),
            entry.path('task'),
        ),
    )


def _validation(section: Section, config: RunData, *, dropped: bool) -> Validation | None:
    """Validation every `validate_every` steps of a run on a task, on `validation_share` of its
    validation examples."""
    field = 'validate_every'
    if field not in section or section.optional(field) is None:
        return None
    every = section.at_least(field, 1)
    if not isinstance(config, TaskData):
        raise section.error(field, 'accepted: None for text; what is scored are answers of a task')
    if dropped:
        raise section.error(
            field, 'accepted: None with drop_at; the best step might be one before the drop'
        )
    with section.naming(every=field, share='validation_share'):
        return Validation(every, section.finite('validation_share'))


def _dropped(entry: Section, model: ModelConfig, steps: int) -> tuple[ModelConfig, Earlier | None]:
    """The model at the end of a run, and the one at its beginning. They differ where the run drops
    its position encoding after the share `drop_at` of its steps (DroPE, arXiv 2512.12167, in one
    run)."""
    share = entry.optional('drop_at') if 'drop_at' in entry else None
    if share is None:
        return model, None
    if isinstance(share, bool) or not isinstance(share, int | float):
        raise entry.error('drop_at', 'accepted: a share of the steps, between 0 and 1')
    at = kept_step(share, steps, entry.path('drop_at'))
    if at >= steps:
        raise entry.error('drop_at', f'it is the last of {steps} steps; none is left without')
    if all(kind.position == NoPE() for kind in model.kinds):
        raise entry.error('drop_at', 'the model has no position encoding to drop')
    if model.table is not None or model.gate is not None or model.position_range is not None:
        raise entry.error(
            'drop_at',
            f'{model.describe_position()} positions have arrays or a range of their own, which '
            'cannot be dropped; accepted: encodings without, as RoPE',
        )
    try:
        later = model.with_position(NoPE())
    except FieldError as error:
        raise entry.error('drop_at', f'{error.field}: {error.rule}') from error
    if not same_law_heads(later, model):
        raise entry.error('drop_at', f"the model's law {LAW_MOVED} after the drop")
    scaled = model.temperature != 'none' or 'lam' in entry
    if scaled and not same_scaled_heads(later, model):
        raise entry.error(
            'drop_at',
            f'lam_layers of the model is {model.lam_layers!r}: its lambda and its temperature, '
            f"{model.temperature!r}, would begin in other heads at the drop; accepted: 'all'",
        )
    return later, Earlier(model, at)


def _with_random_positions(
    scope: Scope, section: Section, model: ModelConfig, config: RunData, length: int
) -> ModelConfig:
    """The model whose encodings take random positions below `random_positions` times L."""
    field = 'random_positions'
    times = section.optional(field) if field in section else None
    if times is None:
        return model
    if isinstance(times, bool) or not isinstance(times, int | float):
        raise section.error(field, 'accepted: a multiple of L, or None for 0, 1, 2 and so on')
    position_range = scope.times(times, length, section.path(field))
    if position_range < length:
        raise section.error(field, f'{position_range} positions are fewer than the {length} tokens')
    if isinstance(config, TaskData):
        raise section.error(field, 'a task takes none: padding would take the highest positions')
    if 'positions' in config.arrays:
        raise section.error(field, "data.documents is 'apart', whose positions begin anew")
    try:
        return dataclasses.replace(model, position_range=position_range)
    except FieldError as error:
        raise section.error(field, error.rule) from error


def kept_step(share: float, steps: int, field: str) -> int:
    """The step after a share of the training."""
    if not is_number(share) or not 0 < share < 1:
        raise ValueError(f'{field} is {share!r}; a share of the training steps lies in (0, 1)')
    return max(round(share * steps), 1)
