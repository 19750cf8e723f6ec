"""Fine-tuning of all parameters from an entry of `runs`."""

from __future__ import annotations

import dataclasses

from experiments.config import Section
from experiments.models import position_for
from experiments.runs.spec import RunSpec, Source
from experiments.scope import Scope
from nope.training.config import TrainConfig
from nope.training.optim import OptimizerConfig

FIELDS = ('init', 'nope', 'own_tokenizer', 'model', 'data', 'finetune')


def from_entry(scope: Scope, entry: Section, init: Source) -> RunSpec:
    """A run that trains all parameters on, for another length and perhaps another position
    encoding."""
    model = init.model
    if 'model' in entry:
        changes = Section(entry.path('model'), entry.inner('model'), scope.ledger)
        changes.only(('position',))
        if 'position' in changes:
            field = changes.path('position')
            position = position_for(changes['position'], model, init.train_length, field)
            with changes.naming():
                model = model.with_position(position)
    section = scope.section('finetune', entry)
    steps = section.at_least('steps', 1)
    optimizer = section.make(
        OptimizerConfig,
        trains='params',
        decay_steps=steps,
        warmup_steps=round(section['warmup_share'] * steps),
    )
    lengths = scope.training_lengths(section, init.train_length)
    with section.naming():
        train = TrainConfig(lengths, section['batch_size'], steps, optimizer)
    return RunSpec(
        model=model,
        data=scope.data(entry, train.block, init.data.tokenizer),
        train=train,
        seed=scope.seed,
        data_seed=section['data_seed'] + scope.seed,
        train_length=init.train_length,
        init=init,
        typed=dataclasses.replace(init.typed, lengths=scope.lengths_field(section)),
    )
