"""Prompts of tasks at lengths, kept in files by tokenizer and length."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import itertools
import json
import logging
import multiprocessing
import pathlib
import signal
import time
from collections.abc import Sequence

from nope.data import digest
from nope.data.tokenizers import Tokenizer
from nope.evals.answers import Sample
from nope.evals.forward import Progress
from nope.evals.ruler import vocabulary
from nope.evals.ruler.corpora import Corpora
from nope.evals.ruler.fitting import SHORT, Request
from nope.evals.ruler.tasks import TASKS, check_names
from nope.evals.ruler.vocabulary import Vocabulary
from nope.runtime import files, processes
from nope.runtime.workers import end_with_parent

log = logging.getLogger(__name__)

SAMPLES, SEED = 500, 42
LEAST_TOKENS = 2**22  # of prompts that are missing, below which starting processes does not pay
FORMAT = 1  # raise where the same request gives other prompts


@dataclasses.dataclass(frozen=True)
class RulerPlan:
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
        if self.needs_words:
            self.vocabulary()

    @property
    def needs_words(self) -> bool:
        return any(TASKS[task].needs_words for task in self.tasks)

    def vocabulary(self) -> Vocabulary:
        return self.words or vocabulary.load()

    @property
    def parts(self) -> list[tuple[int, str]]:
        """Lengths and tasks, each with each."""
        return list(itertools.product(self.lengths, self.tasks))

    def fitting(self) -> tuple[RulerPlan, dict[str, str]]:
        """The plan without the tasks that some length has no room for, and for each of these why.
        ValueError where no task is left."""
        misfits: dict[str, str] = {}
        # The shortest of each kind: longer ones have room too.
        kinds = [n for n in self.lengths if n < SHORT], [n for n in self.lengths if n >= SHORT]
        shortest = tuple(min(lengths) for lengths in kinds if lengths)
        for task in self.tasks:
            try:
                dataclasses.replace(self, tasks=(task,), lengths=shortest).check()
            except ValueError as error:
                misfits[task] = str(error)
        left = tuple(task for task in self.tasks if task not in misfits)
        if not left:
            raise ValueError('; '.join(misfits.values()))
        return dataclasses.replace(self, tasks=left), misfits

    def check(self) -> None:
        """Makes the first samples that the cache lacks. ValueError for lengths that are too
        short."""
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
        try:
            text = '' if path is None else path.read_text('utf-8')
            rows: Sequence = [files.parse_json(line) for line in text.splitlines()]
            return [Sample(text, tuple(answers), tokens) for text, answers, tokens in rows]
        except FileNotFoundError:
            return []
        except (ValueError, TypeError):
            log.warning('%s is damaged: its prompts are made anew', path)
            return []

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


def build(plan: RulerPlan, *, workers: int, progress: Progress = iter) -> None:
    """Puts the prompts of a plan that its cache lacks there, `workers` parts at a time.

    The number of workers changes no prompt: the samples of a part are drawn from one random stream,
    by one process. With one worker, or little to do, no process is started. With more, each imports
    the main program again, which needs its `if __name__ == '__main__'`. Nothing is done without a
    cache. Errors as `RulerPlan.prompts`.
    """
    if plan.cache is None:
        return
    missing = [part for part in plan.parts if len(plan.cached(*part)) < plan.samples]
    missing.sort(reverse=True)  # the longest take longest
    tokens = plan.samples * sum(length for length, _ in missing)
    if min(workers, len(missing)) <= 1 or tokens < LEAST_TOKENS:
        for length, task in missing:
            plan.make(length, task, write=True)
        return
    # spawn: a fork would copy the threads' locks of whatever else runs in this process.
    context = multiprocessing.get_context('spawn')
    with concurrent.futures.ProcessPoolExecutor(
        min(workers, len(missing)), context, _start_worker
    ) as pool:
        jobs = [pool.submit(plan.make, *part, write=True) for part in missing]
        try:
            for job in progress(concurrent.futures.as_completed(jobs)):
                job.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _start_worker() -> None:
    """Ctrl-C reaches all processes of a terminal; the parent answers it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
