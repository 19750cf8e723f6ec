"""Data of runs on a synthetic task, from the section `task`."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
from collections.abc import Iterator
from typing import Any

from experiments.config import USERS, Section
from experiments.runs.spec import RunSpec
from experiments.scope import Scope
from nope.data import RunData, TaskData, load_tokenizer, tasks
from nope.data.tasks import Sizes, Task, answers, scratchpad, symbols, training_extents
from nope.data.tokenizers import SentencePieceTokenizer
from nope.model import ModelConfig, lam
from nope.model.lam import Product
from nope.model.lam.relative import Relative
from nope.runtime.errors import describe

_SIZES = ('train', 'validation', 'test')
_CHOSEN = ('longest', 'shortest', 'symbols', 'scratchpad', 'path', *_SIZES)  # by the task, or given


def data_of(scope: Scope, entry: Section) -> TaskData:
    """The data set of the task that the section and the run's changes of it name.

    ValueError, naming the field, for an unknown task, a field of other tasks, and values that do
    not fit.
    """
    if 'data' in entry:
        raise entry.error('data', f'{entry.path("task")} says what the run reads; give one of them')
    section = scope.section('task', entry).allowing(*_CHOSEN)
    tokenizer = section['tokenizer']
    if tokenizer != tasks.WORDS and not pathlib.Path(tokenizer).is_file():
        raise section.error(
            'tokenizer',
            f"there is no such file; t5-base's SentencePiece model {USERS}: give its path, or "
            f'{tasks.WORDS!r} for the words of the task',
        )
    task = _task(section, entry, section.choice('name', tasks.TASKS), tokenizer)
    given = {name: section[name] for name in _SIZES}
    own = dataclasses.asdict(task.paper_sizes)
    with section.naming():
        sizes = Sizes(**{name: own[name] if n is None else n for name, n in given.items()})
        return TaskData(task, sizes, tokenizer, section['seed'])


def law_of(section: Section, data: RunData, task: str, train_length: int, head_dim: int) -> lam.Law:
    """The law of lambda of a section. data, task, train_length: as `length_read`, which gives its
    L. A law of the length adds the last token of a task's answer, which n counts."""

    def of_length(length: int) -> lam.Law:
        return lam.from_section(
            section['law'], section.path('law'), train_length=length, head_dim=head_dim
        )

    law = of_length(train_length)
    if not isinstance(law, Relative):
        return law
    written = isinstance(data, TaskData) and law.follows_length
    return of_length(length_read(data, task, train_length) + written)


def length_read(data: RunData, task: str, train_length: int) -> int:
    """L of a law: of text the length of the pre-training. Rows of a task are padded, and it has the
    tokens of the longest example that trained the weights. task: its field."""
    if not isinstance(data, TaskData):
        return train_length
    with reading_task(task):
        return training_extents(data).longest


def check_unpadded(data: RunData, model: ModelConfig, field: str) -> None:
    """ValueError for a model that would follow the length of a task's padded rows."""
    if isinstance(data, TaskData) and model.follows_length:
        raise ValueError(
            f'{field}: rows of a task are padded to one length, which {follower(model)} would '
            'follow; accepted: what follows the position, or nothing'
        )


def follower(model: ModelConfig) -> str:
    """The part of a model that follows the length of a row, in words."""
    if model.lam.follows_length:
        return f'lambda of the law {type(model.lam).__name__}'
    return f'positions of the kind {model.describe_position()}'


def check_answers(data: RunData, model: ModelConfig, field: str) -> None:
    """ValueError for an encoder, whose answers are masked, on data without whole ones."""
    if model.causal or (isinstance(data, TaskData) and data.task.form is answers.WHOLE):
        return
    read = f'the task {data.task.name!r}' if isinstance(data, TaskData) else 'text'
    rule = 'an encoder reads a task whose whole targets are compared, as copying'
    raise ValueError(describe(field, False, f'accepted: True for {read}; {rule}'))


def check_extents(spec: RunSpec, data: TaskData) -> None:
    """ValueError for a search of lambda that no example is long enough for, or by entropy on
    prompts as short as those of training."""
    extents, length = training_extents(data), spec.train.optimizer.entropy_length
    if length is not None and extents.shortest_prompt <= length:
        raise ValueError(
            f'{spec.typed.task} has prompts of {extents.shortest_prompt} tokens; the objective '
            f'entropy compares prompts with their first {length} tokens, the longest of training: '
            'raise its `shortest`, where longer problems have longer prompts'
        )
    law = spec.model.lam.searched if isinstance(spec.model.lam, Product) else spec.model.lam
    read, what = extents.longest, 'examples'
    if length is not None:
        read, what = extents.longest_prompt, 'prompts'
    if isinstance(law, Relative) and not law.acts_within(read):
        raise ValueError(
            f'{spec.typed.task} has {what} of up to {read} tokens, in which lambda of the law '
            f'{type(law).__name__} is 1: it acts beyond {law.train_length}; take longer ones, or '
            'the law constant'
        )


@contextlib.contextmanager
def reading_task(field: str) -> Iterator[None]:
    """Errors of drawing or reading a task's examples name the field."""
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(f'{field}: {error}') from error
    except ValueError as error:
        raise ValueError(f'{field}: {error}') from error


def _task(section: Section, entry: Section, name: str, tokenizer: str) -> Task:
    fields = {field.name for field in dataclasses.fields(tasks.TASKS[name])}
    changes: dict[str, Any] = {}
    for field in ('longest', 'shortest', 'symbols', 'scratchpad', 'path'):
        if field in fields:
            changes[field] = section[field]
        elif field in entry.inner('task'):
            raise section.error(field, f'the task {name!r} has no such field')
    changes = {field: value for field, value in changes.items() if value is not None}
    if 'scratchpad' in changes:
        chosen = section.choice('scratchpad', scratchpad.FORMATS)
        changes['scratchpad'] = scratchpad.FORMATS[chosen]
    if 'symbols' in fields:
        most = len(vars(tasks.TASKS[name])['symbols'])
        count = section.at_least('symbols', 1) if 'symbols' in changes else most
        with section.reading('symbols'):
            if tokenizer == tasks.WORDS:
                changes['symbols'] = symbols.closed(count)
            else:
                model = load_tokenizer(tokenizer, 'task.tokenizer')
                if not isinstance(model, SentencePieceTokenizer):
                    raise ValueError(
                        f'{tokenizer} is no SentencePiece model, whose tokens would be symbols'
                    )
                sorting = symbols.SORTING_FIRST, symbols.SORTING_WITHOUT, symbols.RESERVED
                own = sorting if name == 'sort_single' else ()
                changes['symbols'] = symbols.of_model(model, count, *own)
    with section.reading('name'):
        return tasks.named(name, **changes)
