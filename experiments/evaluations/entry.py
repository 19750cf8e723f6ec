"""An entry of `evals`, and what it may ask for."""

from __future__ import annotations

import dataclasses
import datetime
import pathlib
from collections.abc import Mapping
from typing import Any, TypeVar

from experiments.config import Section
from experiments.models import position_for, with_position
from experiments.runs import (
    OWN,
    ImportSpec,
    MultiplierChoice,
    RunSpec,
    Source,
    check_same_gates,
    check_same_table,
    first_run,
    later,
    pretraining,
    tasks,
)
from experiments.scope import MOST_TOKENS, Scope
from nope.data.chat import Chat, load_chat
from nope.model.lam import Constant
from nope.positions import Position

T = TypeVar('T', int, None)
Multiplier = float | MultiplierChoice | None
# That chat templates ask for: of every day's, one command would ask other questions tomorrow.
CHAT_DATE = datetime.date(2024, 7, 26)


@dataclasses.dataclass(frozen=True)
class EvalEntry:
    """An entry of `evals`, and what it may ask for."""

    entry: Section
    run: Source
    scope: Scope

    @property
    def where(self) -> str:
        return self.entry.name

    @property
    def train_length(self) -> int:
        """L of the model, which lengths are multiples of."""
        return self.run.train_length

    def section(self, name: str, default: Mapping[str, Any] | None = None) -> Section:
        """A section of the config with the entry's changes."""
        return self.scope.section(name, self.entry, default)

    def times(self, field: str, default: float) -> int:
        """Tokens of a multiple of L."""
        value = self.entry.get(field, default)
        return self.scope.times(value, self.train_length, self.entry.path(field))

    def lengths(self, field: str = 'times') -> tuple[int, ...]:
        """Tokens of several multiples of L, or `tokens` as they are."""
        if field == 'times' and 'tokens' in self.entry:
            given = self.entry.several('tokens', 'lengths in tokens')
            if not all(type(n) is int and 0 < n <= MOST_TOKENS for n in given):
                rule = f'accepted: whole numbers from 1 to {MOST_TOKENS:,}, as in (4096,)'
                raise self.entry.error('tokens', rule)
            return given
        where = self.entry.path(field)
        several = self.entry.several(field, 'multiples of L')
        lengths = tuple(self.scope.times(t, self.train_length, where) for t in several)
        if len(set(lengths)) < len(lengths):
            raise self.entry.error(field, f'some are the same number of tokens: {lengths}')
        return lengths

    def length(self) -> int:
        """Tokens of the one length: `target`, or a multiple of L, or the longest of `tokens`."""
        if 'tokens' in self.entry:
            return max(self.lengths())
        return self.scope.length_of(self.entry, self.train_length)

    def chat(self) -> Chat | None:
        """The chat template beside the run's tokenizer, where the entry asks for `chat`."""
        if not self.entry.get('chat'):
            return None
        file = pathlib.Path(self.run.data.tokenizer)
        if not file.is_file():
            raise self.entry.error('chat', f'no chat template is beside the tokenizer {file}')
        return load_chat(file.parent, CHAT_DATE)

    def multiplier(self) -> Multiplier:
        """`multiplier`, or the best of the evaluation that `multiplier_from` names."""
        entry = self.entry
        if entry.get('multiplier_from'):
            self.check_no_law('multiplier_from')
            return self.scope.grid(entry['multiplier_from'], entry.path('multiplier_from'))
        if entry.get('multiplier') is not None:
            self.check_no_law('multiplier')
        return entry.finite('multiplier', positive=True) if 'multiplier' in entry else None

    def check_no_law(self, field: str) -> None:
        """ValueError for uniform multipliers on a model whose weights were trained under a law, or
        that brings its own multipliers, which they would take the place of."""
        first = first_run(self.run)
        law = first.model.lam
        if isinstance(first, ImportSpec) and first.searched:
            raise self.entry.error(field, OWN)
        if isinstance(first, RunSpec) and law != Constant():
            raise self.entry.error(
                field,
                f'the model was trained with lambda of the law {type(law).__name__}, which a '
                'uniform multiplier would take the place of',
            )

    def position(self) -> Position | None:
        """Another position encoding than the run was trained with."""
        if 'position' not in self.entry:
            return None
        field, weights = self.entry.path('position'), later.trained_weights(self.run)
        length = tasks.length_read(weights.data, weights.typed.task, self.train_length)
        found = position_for(self.entry['position'], self.run.model, length, field)
        with_position(self.run.model, found, self.entry, self.run.searched)
        return found

    def window(self) -> int:
        """`window` in multiples of L; without it the length that the model was tuned at, if it
        was, also under a law or another change, else L."""
        if 'window' in self.entry:
            return self.times('window', 1.0)
        return self.run.tuned_length or self.train_length

    def check_reach(self, position: Position | None, length: int) -> None:
        """ValueError where sequences are longer than the position encoding is defined for."""
        model = self.run.model
        if position is not None:
            model = with_position(model, position, self.entry, self.run.searched)
        check_same_table(model, self.run.model)
        check_same_gates(model, self.run.model)
        if model.longest is not None and length > model.longest:
            raise ValueError(
                f'{self.where}: sequences of {length} tokens; {model.describe_position()} '
                f'positions end at {model.longest}'
            )

    def kept_step(self) -> int | None:
        """The step after `step_share` of the training, whose checkpoint the run keeps; None for the
        last."""
        entry = self.entry
        if 'step_share' not in entry or entry['step_share'] == 1.0:
            return None
        field, run = entry.path('step_share'), self.run.unchanged
        if isinstance(run, ImportSpec):
            raise ValueError(f'{field}: an imported model has no earlier steps')
        step = pretraining.kept_step(entry['step_share'], run.train.steps, field)
        if step not in run.train.keep_steps:
            raise entry.error('step_share', f'the run keeps the steps {run.train.keep_steps}')
        if run.earlier is not None and step <= run.earlier.steps:
            raise entry.error(
                'step_share',
                f'the run drops its position encoding after step {run.earlier.steps}; measured is '
                'the model that it ends with, at a later step',
            )
        return step


def count_of(section: Section, field: str, default: T) -> int | T:
    """A whole number above 0, or the default where the field is None or left out."""
    left_out = field not in section or section.optional(field) is None
    return default if left_out else section.at_least(field, 1)
