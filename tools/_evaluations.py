"""Evaluations of evaluate.py: for each what it asks, how it measures, what the table shows.

A new one is a class here, a line in `KINDS` and one in `NEEDS` of evaluate.py.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import os
import pathlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from _corpus import read
from jax.sharding import Mesh

from nope.data import Tokenizer, digest
from nope.data.sources import folders
from nope.data.templates import TEMPLATES
from nope.evals import (
    batching,
    helmet,
    longbench,
    longppl,
    nolima,
    passkey,
    positions,
    ruler,
    sliding,
)
from nope.evals.forward import Progress
from nope.evals.generation import Generator
from nope.evals.samples import SampleLog
from nope.model import ModelConfig
from nope.records import Records
from nope.sharding import batch_parts
from nope.variables import Variables


class Row(NamedTuple):
    """A line of the table."""

    evaluation: str
    what: str
    length: int
    value: float
    unit: str


@dataclasses.dataclass(frozen=True)
class Asked:
    """Model, mesh, tokenizer and options of a call, which its evaluations share. train_length: None
    where the model does not say it."""

    options: argparse.Namespace
    model: ModelConfig
    train_length: int | None
    tokenizer: Tokenizer
    mesh: Mesh

    @property
    def lengths(self) -> tuple[int, ...]:
        return self.options.lengths


class Plan(Protocol):
    """An evaluation, checked before the weights are read. settings: what its records depend on
    besides the model."""

    settings: dict[str, Any]

    def measure(
        self, generator: Generator, variables: Variables, log: SampleLog, bar: Progress
    ) -> Records: ...

    def rows(self, found: Records) -> list[Row]: ...


class Ruler:
    def __init__(self, asked: Asked, path: str) -> None:
        o = asked.options
        self._bos = o.bos
        self._plan = ruler.Plan(
            asked.tokenizer,
            tuple(o.tasks.split(',')) if o.tasks else ruler.FREE,
            asked.lengths,
            samples=o.samples,
            corpora=ruler.Corpora(o.files),
            cache=o.out / 'prompts',
        )
        self._plan.check()
        named = {'tasks': self._plan.tasks, 'lengths': asked.lengths, 'samples': o.samples}
        files = list(dict.fromkeys(f for task in self._plan.tasks for f in ruler.TASKS[task].files))
        words = any(ruler.TASKS[task].needs_words for task in self._plan.tasks)
        self.settings = {
            **named,
            'files': self._plan.corpora.identity(files),
            'words': ruler.load_words().fingerprint if words else None,
        }

    def measure(
        self, generator: Generator, variables: Variables, log: SampleLog, bar: Progress
    ) -> Records:
        ruler.build(self._plan, workers=os.cpu_count() or 1, progress=bar)
        return ruler.run(generator, self._plan, log=log, bos=self._bos, progress=bar)

    def rows(self, found: Records) -> list[Row]:
        tasks = [*map(str, found.coordinates['task']), 'mean']
        scores = np.concatenate([found['score'], found['average'][:, None]], axis=1)
        return [
            Row('ruler', task, length, float(scores[k, q]), '0..100')
            for q, task in enumerate(tasks)
            for k, length in enumerate(found.coordinates['length'].tolist())
        ]


class Passkey:
    def __init__(self, asked: Asked, path: str) -> None:
        o = asked.options
        if o.template not in TEMPLATES:
            raise ValueError(f'--template={o.template}; accepted: {", ".join(TEMPLATES)}')
        if o.tests > passkey.TESTS:
            raise ValueError(f'--tests={o.tests}; it must be at most {passkey.TESTS}')
        self._plan = passkey.plan(
            TEMPLATES[o.template],
            asked.tokenizer,
            max(asked.lengths),
            bos=o.bos,
            tests=o.tests,
            lengths=asked.lengths,
        )
        self._window = asked.train_length or max(asked.lengths)
        self.settings = {'lengths': asked.lengths, 'tests': o.tests, 'template': o.template}

    def measure(
        self, generator: Generator, variables: Variables, log: SampleLog, bar: Progress
    ) -> Records:
        return passkey.run(generator, self._plan, log, window=self._window, progress=bar)

    def rows(self, found: Records) -> list[Row]:
        shares = 100 * found['accuracy'].mean(axis=1)
        lengths = found.coordinates['length'].tolist()
        return [
            Row('passkey', 'keys repeated', length, float(share), '%')
            for length, share in zip(lengths, shares, strict=True)
        ]


class Longbench:
    def __init__(self, asked: Asked, path: str) -> None:
        o = asked.options
        self._asked, self._folder, self._window = asked, pathlib.Path(path), max(asked.lengths)
        longbench.check(self._folder)
        self._max_length = longbench.prompt_budget(self._window)
        names = [f'{name}.jsonl' for name in longbench.DATASETS]
        content = digest.of_json(folders.identity('longbench', self._folder, names))
        self.settings = {'window': self._window, 'limit': o.limit, 'content': content}

    def measure(
        self, generator: Generator, variables: Variables, log: SampleLog, bar: Progress
    ) -> Records:
        o = self._asked.options
        return longbench.run(
            generator,
            self._asked.tokenizer,
            longbench.read(self._folder, tuple(longbench.DATASETS), o.limit),
            max_length=self._max_length,
            log=log,
            bos=o.bos,
            window=self._window,
            progress=bar,
        )

    def rows(self, found: Records) -> list[Row]:
        names = [*map(str, found.coordinates['dataset']), 'mean']
        scores = [*found['score'].tolist(), found.attributes['average']]
        return [
            Row('longbench', name, self._window, score, '0..100')
            for name, score in zip(names, scores, strict=True)
        ]


class Helmet:
    def __init__(self, asked: Asked, path: str) -> None:
        o = asked.options
        self._plan = helmet.Plan(
            asked.tokenizer, pathlib.Path(path), asked.lengths, bos=o.bos, limit=o.limit
        )
        self._plan.check()
        self.settings = {
            'lengths': asked.lengths,
            'limit': o.limit,
            'files': folders.identity('helmet', pathlib.Path(path), self._plan.names),
        }

    def measure(
        self, generator: Generator, variables: Variables, log: SampleLog, bar: Progress
    ) -> Records:
        return helmet.run(generator, self._plan, log=log, progress=bar)

    def rows(self, found: Records) -> list[Row]:
        lengths = found.coordinates['length'].tolist()
        tasks = [*map(str, found.coordinates['task']), 'mean']
        scores = np.concatenate([found['score'], found['average'][:, None]], axis=1)
        rows = [
            Row('helmet', task, length, float(scores[k, q]), '0..100')
            for q, task in enumerate(tasks)
            for k, length in enumerate(lengths)
        ]
        cut, samples = (found[name].sum(axis=1).tolist() for name in ('truncated', 'samples'))
        return rows + [
            Row('helmet', 'contexts cut', length, cut[k], f'of {samples[k]}')
            for k, length in enumerate(lengths)
        ]


class Nolima:
    def __init__(self, asked: Asked, path: str) -> None:
        o = asked.options
        self._bos = o.bos
        self._plan = nolima.Plan(asked.tokenizer, pathlib.Path(path), asked.lengths, limit=o.limit)
        self._plan.check()
        self.settings = {
            'lengths': asked.lengths,
            'limit': o.limit,
            'files': folders.identity('nolima', pathlib.Path(path), self._plan.names),
        }

    def measure(
        self, generator: Generator, variables: Variables, log: SampleLog, bar: Progress
    ) -> Records:
        return nolima.run(generator, self._plan, log=log, bos=self._bos, progress=bar)

    def rows(self, found: Records) -> list[Row]:
        lengths = found.coordinates['length'].tolist()
        rows = [
            Row('nolima', 'right answers', length, value, '%')
            for length, value in zip(lengths, found['average'].tolist(), strict=True)
        ]
        base = found.attributes['base_score']
        if base is not None:
            effective = found.attributes['effective_length']
            rows += [Row('nolima', 'base score', min(lengths), base, '%')]
            rows += [Row('nolima', 'effective length', max(lengths), effective, 'tokens')]
        return rows


class _OfText:
    """An evaluation of a text file, or of a folder of them."""

    def __init__(self, asked: Asked, path: str) -> None:
        self._asked = asked
        self._texts = read(pathlib.Path(path), asked.tokenizer, bos=asked.options.bos)

    @functools.cached_property
    def _batch_size(self) -> int:
        parts = batch_parts(self._asked.mesh)
        length = max(self._asked.lengths)
        return batching.most_rows(self._asked.options.batch_tokens, length, parts)

    @property
    def _length(self) -> int:
        return self._asked.train_length or min(self._asked.lengths)


class Perplexity(_OfText):
    def __init__(self, asked: Asked, path: str) -> None:
        super().__init__(asked, path)
        o = asked.options
        shortest = min(self._length, *asked.lengths)
        self._stride = o.stride or max(shortest // 8, 1)
        for length in asked.lengths:
            sliding.plan(self._texts.lengths, length, stride=self._stride, budget=o.budget)
        self.settings = {
            'lengths': asked.lengths,
            'stride': self._stride,
            'budget': o.budget,
            'text': self._texts.fingerprint,
        }

    def measure(
        self, generator: Generator, variables: Variables, log: SampleLog, bar: Progress
    ) -> Records:
        o = self._asked.options
        return sliding.run(
            self._asked.model,
            variables,
            self._texts,
            self._asked.lengths,
            stride=self._stride,
            budget=o.budget,
            mesh=self._asked.mesh,
            batch_tokens=o.batch_tokens,
            log=log,
            progress=bar,
        )

    def rows(self, found: Records) -> list[Row]:
        lengths = found.coordinates['length'].tolist()
        return [
            Row('perplexity', f'last {self._stride} of a window', length, value, 'per token')
            for length, value in zip(lengths, found['perplexity'].tolist(), strict=True)
        ]


class LongPPL(_OfText):
    def __init__(self, asked: Asked, path: str) -> None:
        super().__init__(asked, path)
        o = asked.options
        short = max(min(self._length, min(asked.lengths) // 2), 1)
        self._rule = longppl.Rule(short=short, stride=max(short // 4, 1))
        longppl.check(self._texts.lengths, asked.lengths, self._rule, budget=o.budget)
        self.settings = {
            'lengths': asked.lengths,
            'rule': dataclasses.asdict(self._rule),
            'budget': o.budget,
            'text': self._texts.fingerprint,
        }

    def measure(
        self, generator: Generator, variables: Variables, log: SampleLog, bar: Progress
    ) -> Records:
        return longppl.run(
            generator,
            self._asked.tokenizer,
            self._texts,
            self._asked.lengths,
            self._rule,
            budget=self._asked.options.budget,
            log=log,
            progress=bar,
        )

    def rows(self, found: Records) -> list[Row]:
        """Rows of LongPPL by length; NaN where no token is a key token."""
        return [
            Row('longppl', what, length, float(value), unit)
            for what, measure, unit in (
                ('LongPPL', 'longppl', 'per key token'),
                ('key tokens', 'key_tokens', ''),
            )
            for length, value in zip(
                found.coordinates['length'].tolist(), found[measure].tolist(), strict=True
            )
        ]


class Loss(_OfText):
    def __init__(self, asked: Asked, path: str) -> None:
        super().__init__(asked, path)
        count, length = asked.options.windows, max(asked.lengths)
        self._blocks = self._texts.blocks(length, count)
        taken = len(self._blocks)
        self.settings = {'length': length, 'windows': taken, 'text': self._texts.fingerprint}

    def measure(
        self, generator: Generator, variables: Variables, log: SampleLog, bar: Progress
    ) -> Records:
        return positions.run(
            self._asked.model,
            variables,
            self._blocks,
            mesh=self._asked.mesh,
            batch_size=self._batch_size,
            progress=bar,
        )

    def rows(self, found: Records) -> list[Row]:
        """Means over the positions behind the length before, up to each."""
        loss, entropy = found['loss'], found['entropy'].mean(axis=(0, 1)) / np.log(2)
        ends = sorted({*self._asked.lengths, min(self._length, len(loss))})
        made = []
        for what, values, unit in (('loss', loss, 'nats'), ('entropy', entropy, 'bits')):
            for low, high in zip([0, *ends], ends, strict=False):
                mean = float(values[low:high].mean())
                made.append(Row('loss', f'{what} behind {low:,}', high, mean, unit))
        return made


KINDS: Mapping[str, Callable[[Asked, str], Plan]] = {
    'ruler': Ruler,
    'passkey': Passkey,
    'longbench': Longbench,
    'helmet': Helmet,
    'nolima': Nolima,
    'perplexity': Perplexity,
    'longppl': LongPPL,
    'loss': Loss,
}
