"""Data of a run that trains on one synthetic task, as a frozen value."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar

from nope.data import digest
from nope.data.tasks.base import SPLITS, Example, Sizes, Task
from nope.data.tasks.dataset import SEED, Dataset, dataset
from nope.data.tasks.words import WordTokenizer
from nope.data.tokenizers import Tokenizer, load_tokenizer
from nope.identity import plain
from nope.runtime.errors import FieldError

WORDS = 'words'  # the closed vocabulary of the task itself
PARTS = ('train', 'validation', 'test')
CHECKED = 20  # examples of each length of a held-out split whose targets are checked


@dataclasses.dataclass(frozen=True)
class TaskData:
    """One task's data set, read through one tokenizer.

    sizes: None for the paper's. seed: draws the examples, not their order. tokenizer: 'words', the
    closed vocabulary of the task, or the path of a SentencePiece `*.model` or a Hugging Face
    `tokenizer.json`. arrays: of its batches, besides tokens and targets.
    FieldError for a seed that is none.
    """

    task: Task
    sizes: Sizes | None = None
    tokenizer: str = WORDS
    seed: int = SEED
    kinds: ClassVar[tuple[str, ...]] = ('task',)
    arrays: ClassVar[tuple[str, ...]] = ('weights',)

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise FieldError('seed', self.seed, 'it must be at least 0')

    def load_tokenizer(self) -> Tokenizer:
        """The tokenizer that examples are read through; errors as `nope.data.load_tokenizer`."""
        if self.tokenizer == WORDS:
            return WordTokenizer.of(self.task)
        return load_tokenizer(self.tokenizer, 'task.tokenizer')

    def dataset(self) -> Dataset:
        """All examples; errors as `nope.data.tasks.dataset`."""
        return _dataset(self.task, self.sizes, self.seed)

    def check_targets(self) -> None:
        """ValueError for a held-out example that could not be graded (`Task.check_target`), among
        the first of each length."""
        _check_targets(self)

    def identity(self) -> dict[str, Any]:
        """Identity of the examples and of their tokens, for the run's content hash: no paths. Of a
        task that is not of this package the examples themselves, since its code may change."""
        fields = plain(self.task)
        if 'symbols' in fields:
            fields['symbols'] = digest.of_json(list(fields['symbols']))
        if 'path' in fields:
            names = [f'{split}.{end}' for split in SPLITS for end in ('src', 'tgt')]
            found = [pathlib.Path(fields['path']) / name for name in names if fields['path']]
            # Missing ones are told where they are read.
            fields['path'] = [digest.of_file(file) for file in found if file.is_file()]
        if not type(self.task).__module__.startswith(f'{__package__}.'):
            fields['examples'] = _digest(self)
        return {
            'task': {'name': self.task.name, **fields},
            'sizes': plain(self.sizes or self.task.paper_sizes),
            'seed': self.seed,
            'tokenizer': self.load_tokenizer().fingerprint,
        }

    def describe(self) -> str:
        """The data in a few words: 'lego of lengths 4 to 8, full scratchpad, words'."""
        lengths, style = self.task.lengths('train'), self.task.style
        pad = f'{style.name} scratchpad, ' if style else ''
        name = pathlib.PurePath(self.tokenizer).name
        return f'{self.task.name} of lengths {lengths[0]} to {lengths[-1]}, {pad}{name}'

    def held_out(self) -> Iterator[tuple[str, Example]]:
        """Split and example of validation, which has the lengths of training, then of the test."""
        found = self.dataset()
        for split in ('validation', 'test'):
            for example in getattr(found, split):
                yield split, example


@functools.lru_cache(maxsize=64)
def _check_targets(data: TaskData) -> None:
    seen: Counter[tuple[str, int]] = Counter()
    for split, example in data.held_out():
        seen[split, example.length] += 1
        if seen[split, example.length] <= CHECKED:
            data.task.check_target(example)


@functools.lru_cache(maxsize=64)
def _digest(data: TaskData) -> str:
    found = data.dataset()
    return digest.of_json([[list(e) for e in getattr(found, split)] for split in PARTS])


@functools.lru_cache(maxsize=4)
def _dataset(task: Task, sizes: Sizes | None, seed: int) -> Dataset:
    return dataset(task, sizes, seed)
