"""Files of the recall group, and the prompts that a tokenizer makes of them."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from nope.data.prefix import encode_with_bos
from nope.data.spans import encode_spans
from nope.data.tokenizers import Tokenizer
from nope.evals.answers import Sample
from nope.evals.helmet.tasks import TASKS, Task
from nope.runtime.files import are_texts, json_rows

SAMPLES, SEED = 100, 42  # of the rows of a file
LENGTHS = tuple(TASKS['json_kv'].files)

_LAYOUT = (
    'it must be the folder data of the published archive, data.tar.gz, with json_kv/ and ruler/ '
    'in it'
)


@dataclasses.dataclass(frozen=True)
class HelmetPlan:
    """The tasks at `lengths`, in tokens of a prompt and its answer, from the files in `folder`.

    bos: as `nope.data.prefix` has it; the prefix counts. limit: samples of each file, for trials.
    """

    tokenizer: Tokenizer
    folder: pathlib.Path
    lengths: tuple[int, ...]
    bos: bool | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        """ValueError for lengths that no file has, FileNotFoundError for missing files."""
        others = [length for length in self.lengths if length not in LENGTHS]
        if others or not self.lengths or len(set(self.lengths)) < len(self.lengths):
            raise ValueError(
                f'lengths are {self.lengths}; HELMET has {", ".join(map(str, LENGTHS))}, each once'
            )
        missing = [name for name in self.names if not (self.folder / name).is_file()]
        if missing:
            raise FileNotFoundError(
                f"folder is '{self.folder}': {', '.join(missing)} missing; {_LAYOUT}"
            )

    @property
    def parts(self) -> list[tuple[int, str]]:
        """Lengths and tasks, each with each."""
        return list(itertools.product(self.lengths, TASKS))

    @property
    def names(self) -> list[str]:
        """Of the files that are read."""
        return [TASKS[task].files[length] for length, task in self.parts]

    def check(self) -> None:
        """Reads all files: ValueError, naming file and line, for what is no row of its task."""
        for length, task in self.parts:
            self._rows(length, TASKS[task])

    def prompts(self, length: int, task: str) -> tuple[list[Sample], int]:
        """Samples of a file, and of how many the end of the context was left out to fit."""
        asked = TASKS[task]
        made = [self._prompt(asked, row, length) for row in self._rows(length, asked)]
        return [sample for sample, _ in made], sum(cut for _, cut in made)

    def _rows(self, length: int, task: Task) -> list[Mapping[str, Any]]:
        """Those that the published evaluation draws, in its order."""
        path = self.folder / task.files[length]
        rows = [*json_rows(path, functools.partial(_checked, task))]
        if not rows:
            raise ValueError(f'{path}: there is no sample in it')
        # As `datasets` shuffles, with which the published code draws.
        order = np.random.default_rng(SEED).permutation(len(rows))[:SAMPLES][: self.limit]
        return [rows[i] for i in order]

    def _prompt(self, task: Task, row: Mapping[str, Any], length: int) -> tuple[Sample, bool]:
        fields, answers = task.fields(row), _answers(row)
        text = task.template.format(**fields)
        tokens = len(self.tokenizer.encode(text))
        around = len(encode_with_bos(self.tokenizer, text, self.bos)) - tokens
        excess = tokens + around + task.budget - length
        if excess <= 0:
            return Sample(text, answers, tokens), False
        fields['context'] = self._shortened(fields['context'], excess)
        text = task.template.format(**fields)
        return Sample(text, answers, len(self.tokenizer.encode(text))), True

    def _shortened(self, context: str, excess: int) -> str:
        """A context without its last `excess` tokens."""
        try:
            ids, spans = encode_spans(self.tokenizer, context)
        except ValueError:  # the tokenizer has no spans
            return self.tokenizer.decode(self.tokenizer.encode(context)[:-excess])
        return context[: spans[-excess, 0]] if excess <= len(ids) else ''


def _checked(task: Task, row: Mapping[str, Any]) -> Mapping[str, Any]:
    """ValueError saying what is wrong with the row."""
    missing = [name for name in task.columns if name not in row]
    if missing or not ('answer' in row or 'outputs' in row):
        wanted = ', '.join(task.columns)
        raise ValueError(f'it has {", ".join(sorted(row))}; needed are {wanted}, answer or outputs')
    for name in task.columns:
        held = _are_pairs(row[name]) if name == 'demos' else isinstance(row[name], str)
        if not held:
            kind = 'a list of pairs of texts' if name == 'demos' else 'a text'
            raise ValueError(f'{name} is {str(row[name])[:40]!r}; it must be {kind}')
    _answers(row)
    return row


def _answers(row: Mapping[str, Any]) -> tuple[str, ...]:
    found = row['answer'] if 'answer' in row else row['outputs']
    answers = [found] if isinstance(found, str) else found
    if not (are_texts(answers) and answers):
        raise ValueError(f'the answer is {str(found)[:40]!r}; it must be a text, or a list of them')
    return tuple(answers)


def _are_pairs(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(pair, list) and len(pair) == 2 and are_texts(pair) for pair in value
    )
