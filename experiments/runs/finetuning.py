"""Fine-tuning of all parameters from an entry of `runs`."""

from __future__ import annotations

from experiments.config import Section
from experiments.models import position_for, with_position
from experiments.runs import later, tasks
from experiments.runs.spec import HeadScores, RunSpec, SilencedSpec, Source, adds_table
from experiments.scope import Scope, warmup_steps
from nope.model import ModelConfig
from nope.positions import Learned, NoPE, RoPE, Sinusoidal, Split
from nope.training.optim import OptimizerConfig
from nope.variables import TABLE

FIELDS = ('init', 'nope', 'own_tokenizer', 'model', 'data', 'task', 'finetune', 'heads_from')

# Encodings under which the heads of a layer can change places.
_ALIKE = (NoPE, RoPE, Sinusoidal, Learned)


def from_entry(scope: Scope, entry: Section, init: Source) -> RunSpec:
    """A run that trains all parameters on, or the learned positions alone, for another length and
    perhaps another position encoding."""
    if isinstance(init, SilencedSpec):
        raise entry.error('init', 'its heads are silenced; name the run that it starts from')
    model = init.model
    if 'model' in entry:
        changes = entry.below('model').only(('position',))
        if 'position' in changes:
            field, weights = changes.path('position'), later.trained_weights(init)
            read = tasks.length_read(weights.data, weights.typed.task, init.train_length)
            position = position_for(changes['position'], model, read, field)
            model = with_position(model, position, changes, init.searched)
            if model.table != init.model.table and not adds_table(model, init.model):
                raise changes.error(
                    'position',
                    f'it and the positions trained with, {init.model.describe_position()}, differ '
                    'in a learned table, which cannot be exchanged; a model without position '
                    'encoding can get one of the kinds learned and t5',
                )
    section = scope.section('finetune', entry)
    steps = section.at_least('steps', 1)
    trains = section.named('trains', TABLE)
    if trains not in (None, TABLE):
        raise section.error('trains', f'accepted: {TABLE}, or None for all parameters')
    if trains and model.table is None:
        raise section.error(
            'trains', f'{model.describe_position()} positions have no learned table to train'
        )
    optimizer = section.make(
        OptimizerConfig,
        trains=trains or 'params',
        decay_steps=steps,
        warmup_steps=warmup_steps(section, steps),
    )
    order = _order(scope, entry, init, model)
    return later.run(scope, entry, section, init, model, optimizer, order_from=order)


def _order(scope: Scope, entry: Section, init: Source, model: ModelConfig) -> HeadScores | None:
    """The scores that order the heads of every layer, the most local ones first, before a split
    makes these local. None leaves the order. ValueError where no split would tell them apart, or
    something already does."""
    name = entry.named('heads_from', 'an eval of kind attention_shape')
    if name is None:
        return None
    if not any(isinstance(kind.position, Split) for kind in model.kinds):
        raise entry.error(
            'heads_from',
            f'{entry.path("model.position")} has no split, which would tell heads apart: the order '
            'of heads changes nothing',
        )
    alike = all(isinstance(kind.position, _ALIKE) for kind in init.model.kinds)
    if init.model.apart:
        rule = f'layers of {entry.path("init")} differ in their arrays'
        raise entry.error('heads_from', f'{rule}: their heads stay in order')
    if not alike or _has_own_lambda(init):
        raise entry.error(
            'heads_from',
            f'the heads of {entry.path("init")} have a lambda or a position encoding of their own: '
            'they cannot be put in another order',
        )
    found = scope.head_scores(name, entry.path('heads_from'))
    if found.run != init:
        raise entry.error('heads_from', f'it measures another run than {entry.path("init")}')
    return found


def _has_own_lambda(run: Source) -> bool:
    """Whether lambda was trained in it, head by head, or in what it starts from."""
    if isinstance(run, RunSpec) and run.train.optimizer.trains in ('all', 'lam'):
        return True
    return run.searched if run.init is None else _has_own_lambda(run.init)
