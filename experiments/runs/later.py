"""Runs that start from another one: searches of lambda and fine-tuning."""

from __future__ import annotations

import dataclasses
from typing import Any

from experiments.config import Section
from experiments.runs import tasks
from experiments.runs.spec import RunSpec, Source
from experiments.scope import Scope
from nope.data import RunData, TaskData
from nope.model import ModelConfig
from nope.training.config import TrainConfig
from nope.training.optim import OptimizerConfig


def run(
    scope: Scope,
    entry: Section,
    section: Section,
    init: Source,
    model: ModelConfig,
    optimizer: OptimizerConfig,
    **own: Any,
) -> RunSpec:
    """A run that starts from another one. section: of its lengths and batches. own: fields that not
    every such run has."""
    lengths = scope.training_lengths(section, init.train_length)
    with section.naming():
        train = TrainConfig(lengths, section['batch_size'], section['steps'], optimizer)
    task = entry.path('task') if 'task' in entry else init.typed.task
    typed = dataclasses.replace(init.typed, lengths=scope.lengths_field(section), task=task)
    return RunSpec(
        model=model,
        data=_data(scope, entry, init, train.block),
        train=train,
        seed=scope.seed,
        data_seed=section.at_least('data_seed', 0) + scope.seed,
        train_length=init.train_length,
        init=init,
        typed=typed,
        **own,
    )


def trained_weights(init: Source) -> Source:
    """The run that trained a model's weights last: searches and changes of it leave them."""
    while init.init is not None and not init.fine_tunes:
        init = init.init
    return init


def _data(scope: Scope, entry: Section, init: Source, block: int) -> RunData:
    """Data of a run that starts from another one: text in windows of `block` tokens, or of a model
    of a task those of the run's own `task`, as a rule the same task at other lengths. ValueError
    where a task is missing, has other words or is not the model's."""
    trained = init.data
    if not isinstance(trained, TaskData):
        if 'task' in entry:
            raise entry.error('task', f'{entry.path("init")} was trained on text')
        return scope.data(entry, block, trained.tokenizer, trained.bos)
    if 'task' not in entry:
        raise ValueError(
            f'{entry.path("task")} is missing: the task to read, as in '
            f"{{'name': {trained.task.name!r}, 'longest': 15}}"
        )
    found = tasks.data_of(scope, entry)
    if found.load_tokenizer().fingerprint != trained.load_tokenizer().fingerprint:
        raise ValueError(
            f'{entry.path("task")} has other words than runs.{entry["init"]}.task '
            f'({trained.describe()}); give it the same name and symbols'
        )
    return found
