"""Prompts of tasks at lengths, kept in files by tokenizer and length."""

from __future__ import annotations

import dataclasses
import itertools
import json
import logging
import pathlib
import time
from collections.abc import Sequence

from nope.data import digest
from nope.data.tokenizers import Tokenizer
from nope.evals.answers import Sample
from nope.evals.ruler import vocabulary
from nope.evals.ruler.corpora import Corpora
from nope.evals.ruler.fitting import Request
from nope.evals.ruler.tasks import TASKS, check_names
from nope.evals.ruler.vocabulary import Vocabulary
from nope.runtime import files, processes

log = logging.getLogger(__name__)

SAMPLES, SEED = 500, 42
FORMAT = 1  # raise where the same request gives other prompts


@dataclasses.dataclass(frozen=True)
class Plan:
    """Tasks at lengths, in tokens of a prompt and its answer; `samples` of each."""

    tokenizer: Tokenizer
    tasks: tuple[str, ...]
    lengths: tuple[int, ...]
    samples: int = SAMPLES
    seed: int = SEED
    corpora: Corpora = dataclasses.field(default_factory=lambda: Corpora(None))
    words: Vocabulary | None = None
    cache: pathlib.Path | None = None

    def __post_init__(self) -> None:
        """ValueError, FileNotFoundError or ModuleNotFoundError, naming the field, for what no
        prompts can be made of."""
        check_names(self.tasks)
        if not self.lengths or len(set(self.lengths)) < len(self.lengths):
            raise ValueError(f'lengths are {self.lengths}; they must be one or more, each once')
        if self.samples < 1:
            raise ValueError(f'samples is {self.samples}; it must be at least 1')
        self.corpora.check(name for task in self.tasks for name in TASKS[task].files)
        if any(TASKS[task].needs_words for task in self.tasks):
            self.vocabulary()

    def vocabulary(self) -> Vocabulary:
        return self.words or vocabulary.load()

    @property
    def parts(self) -> list[tuple[int, str]]:
        """Lengths and tasks, each with each."""
        return list(itertools.product(self.lengths, self.tasks))

    def fitting(self) -> tuple[Plan, dict[str, str]]:
        """The plan without the tasks that some length has no room for, and for each of these why.
        ValueError where no task is left."""
        misfits: dict[str, str] = {}
        for task in self.tasks:
            try:
                dataclasses.replace(self, tasks=(task,)).check()
            except ValueError as error:
                misfits[task] = str(error)
        left = tuple(task for task in self.tasks if task not in misfits)
        if not left:
            raise ValueError('; '.join(misfits.values()))
        return dataclasses.replace(self, tasks=left), misfits

    def check(self) -> None:
        """Makes the first sample of every part that the cache lacks: ValueError for lengths that
        are too short."""
        for length, task in self.parts:
            path = self._path(length, task)
            if path is None or not path.is_file():
                self._made(length, task, 1)

    def prompts(self, length: int, task: str) -> list[Sample]:
        """The samples of a part, from the cache where they are in it.

        ValueError where the length has no room for a prompt and its answer, and where a file of
        the user has fewer questions.
        """
        found = self.cached(length, task)
        if len(found) < self.samples:
            found = self.make(length, task, write=processes.is_first())
        return found[: self.samples]

    def cached(self, length: int, task: str) -> list[Sample]:
        """The samples of a part that are in the cache."""
        path = self._path(length, task)
        return [] if path is None else _read(path)

    def make(self, length: int, task: str, *, write: bool) -> list[Sample]:
        """Makes the samples of a part; `write` puts them into the cache. Asks nothing of JAX.
        Errors as `prompts`."""
        start = time.perf_counter()
        found = self._made(length, task, self.samples)
        log.info(
            '%d prompts of %s at %d tokens in %.1f s',
            *(len(found), task, length, time.perf_counter() - start),
        )
        path = self._path(length, task)
        if path is not None and write:
            files.write_text(path, ''.join(f'{json.dumps(sample)}\n' for sample in found))
        return found

    def _made(self, length: int, task: str, samples: int) -> list[Sample]:
        request = Request(
            count=lambda text: len(self.tokenizer.encode(text)),
            length=length,
            seed=self.seed,
            vocabulary=self.vocabulary,
            corpora=self.corpora,
        )
        try:
            return list(itertools.islice(TASKS[task].samples(request), samples))
        except ValueError as error:
            raise ValueError(f'{task}: {error}') from error

    def _path(self, length: int, task: str) -> pathlib.Path | None:
        if self.cache is None:
            return None
        asked = {
            'format': FORMAT,
            'tokenizer': self.tokenizer.fingerprint,
            'seed': self.seed,
            'words': self.vocabulary().fingerprint if TASKS[task].needs_words else None,
            'files': self.corpora.identity(TASKS[task].files),
        }
        return self.cache / f'{task}-{length}-{digest.of_json(asked)}.jsonl'


def _read(path: pathlib.Path) -> list[Sample]:
    """The samples of a file; none where it is damaged or missing."""
    try:
        rows: Sequence = [files.parse_json(line) for line in path.read_text('utf-8').splitlines()]
        return [Sample(text, tuple(answers), tokens) for text, answers, tokens in rows]
    except FileNotFoundError:
        return []
    except (ValueError, TypeError):
        log.warning('%s is damaged: its prompts are made anew', path)
        return []
