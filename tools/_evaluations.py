"""Evaluations of evaluate.py: for each what it asks, how it measures, what the table shows.

A new one is a class here, a line in `KINDS` and one in `NEEDS` of evaluate.py.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import os
import pathlib
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from _corpus import read
from jax.sharding import Mesh

from nope.data import Tokenizer, digest
from nope.data.chat import Chat
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

POINTS = 'points of 100'
# Perplexity: tokens scored in a window, at most, and at each length; those of LongPPL's texts.
MOST_STRIDE, BUDGET, LONGPPL_BUDGET = 128, 2**15, 2**18


class Row(NamedTuple):
    """A line of the table. samples: questions, windows or texts behind the value. tokens: those
    that were scored; None where answers were."""

    evaluation: str
    what: str
    length: int
    value: float
    unit: str
    samples: int
    tokens: int | None = None


@dataclasses.dataclass(frozen=True)
class Asked:
    """Model, mesh, tokenizer and options of a call, which its evaluations share. train_length: None
    where the model does not say it. chat: turns to ask in, or None."""

    options: argparse.Namespace
    model: ModelConfig
    train_length: int | None
    tokenizer: Tokenizer
    mesh: Mesh
    chat: Chat | None

    @property
    def lengths(self) -> tuple[int, ...]:
        return self.options.lengths


class Plan(Protocol):
    """An evaluation, checked before the weights are read. settings: what its records depend on
    besides the model. asks: whether it asks questions, in turns where the call says so."""

    settings: dict[str, Any]
    asks: bool

    def measure(
        self, generator: Generator, variables: Variables, log: SampleLog, bar: Progress
    ) -> Records: ...

    def rows(self, found: Records) -> list[Row]: ...


class Ruler:
    asks = True

    def __init__(self, asked: Asked, path: str) -> None:
        o = asked.options
        self._bos, self._chat = o.bos, asked.chat
        try:
            whole = ruler.Plan(
                asked.tokenizer,
                tuple(o.tasks.split(',')) if o.tasks else ruler.FREE,
                asked.lengths,
                samples=o.samples,
                corpora=ruler.Corpora(o.files),
                cache=o.out / 'prompts',
            )
        except FileNotFoundError as error:
            raise ValueError(f'{error}; name their folder: --files=FOLDER') from error
        self._plan, misfits = whole.fitting()
        for task, why in misfits.items():
            print(f'ruler leaves out {task}, at every length: {why}', file=sys.stderr)
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
        return ruler.run(
            generator, self._plan, log=log, bos=self._bos, chat=self._chat, progress=bar
        )

    def rows(self, found: Records) -> list[Row]:
        return _task_rows('ruler', found)


class Passkey:
    asks = True

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
            chat=asked.chat,
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
        keys = found['accuracy'].shape[1] * found.attributes['tests']
        return [
            Row('passkey', 'keys repeated', length, float(share), '%', keys)
            for length, share in zip(lengths, shares, strict=True)
        ]


class Longbench:
    asks = True

    def __init__(self, asked: Asked, path: str) -> None:
        o = asked.options
        self._asked, self._folder, self._window = asked, pathlib.Path(path), max(asked.lengths)
        self._names = longbench.found_in(self._folder)
        longbench.check(self._folder, self._names)
        turns = 0 if asked.chat is None else asked.chat.overhead(asked.tokenizer)
        self._max_length = longbench.prompt_budget(self._window - turns)
        names = [f'{name}.jsonl' for name in self._names]
        content = digest.of_json(folders.identity('longbench', self._folder, names))
        self.settings = {
            'window': self._window,
            'limit': o.limit,
            'beams': o.beams,
            'content': content,
        }

    def measure(
        self, generator: Generator, variables: Variables, log: SampleLog, bar: Progress
    ) -> Records:
        o = self._asked.options
        return longbench.run(
            generator,
            self._asked.tokenizer,
            longbench.read(self._folder, self._names, o.limit),
            max_length=self._max_length,
            beams=o.beams,
            log=log,
            bos=o.bos,
            chat=self._asked.chat,
            window=self._window,
            progress=bar,
        )

    def rows(self, found: Records) -> list[Row]:
        names = [*map(str, found.coordinates['dataset'])]
        samples = found['samples'].tolist()
        of = f'mean of {len(names)} of {len(longbench.DATASETS)} data sets'
        rows = zip(
            [*names, of],
            [*found['score'].tolist(), found.attributes['average']],
            [*samples, sum(samples)],
            strict=True,
        )
        return [Row('longbench', name, self._window, value, POINTS, n) for name, value, n in rows]


class Helmet:
    asks = True

    def __init__(self, asked: Asked, path: str) -> None:
        o = asked.options
        self._plan = helmet.Plan(
            asked.tokenizer,
            pathlib.Path(path),
            asked.lengths,
            bos=o.bos,
            limit=o.limit,
            chat=asked.chat,
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
        cut, samples = (found[name].sum(axis=1).tolist() for name in ('truncated', 'samples'))
        return _task_rows('helmet', found) + [
            Row('helmet', 'contexts cut', length, cut[k], f'of {samples[k]}', samples[k])
            for k, length in enumerate(lengths)
        ]


class Nolima:
    asks = True

    def __init__(self, asked: Asked, path: str) -> None:
        o = asked.options
        self._bos, self._chat = o.bos, asked.chat
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
        return nolima.run(
            generator, self._plan, log=log, bos=self._bos, chat=self._chat, progress=bar
        )

    def rows(self, found: Records) -> list[Row]:
        lengths = found.coordinates['length'].tolist()
        asked = found['depths'].shape[1] * len(found.coordinates['pair'])
        asked *= len(found.attributes['books'])
        rows = [
            Row('nolima', 'right answers', length, value, '%', asked)
            for length, value in zip(lengths, found['average'].tolist(), strict=True)
        ]
        base = found.attributes['base_score']
        if base is not None:
            effective = found.attributes['effective_length']
            rows += [Row('nolima', 'base score', min(lengths), base, '%', asked)]
            rows += [Row('nolima', 'effective length', max(lengths), effective, 'tokens', asked)]
        return rows


class _OfText:
    """An evaluation of a text file, or of a folder of them. whole: documents are read whole, with
    the prefix before them, and not in windows that begin with it."""

    asks = False
    whole = False

    def __init__(self, asked: Asked, path: str) -> None:
        self._asked = asked
        how = {'bos': asked.options.bos, 'once': self.whole}
        self._texts = read(pathlib.Path(path), asked.tokenizer, **how)

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
        self._stride = o.stride or min(max(max(asked.lengths) // 8, 1), MOST_STRIDE)
        if self._stride >= min(asked.lengths):
            raise ValueError(
                f'windows of {min(asked.lengths)} tokens have to be longer than the '
                f'{self._stride} that are scored in each; give a lower --stride'
            )
        self._budget = o.budget or BUDGET
        sliding.plans(self._texts.lengths, asked.lengths, stride=self._stride, budget=self._budget)
        self.settings = {
            'lengths': asked.lengths,
            'stride': self._stride,
            'budget': self._budget,
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
            budget=self._budget,
            mesh=self._asked.mesh,
            batch_tokens=o.batch_tokens,
            log=log,
            progress=bar,
        )

    def rows(self, found: Records) -> list[Row]:
        lengths = found.coordinates['length'].tolist()
        windows = found['windows'].tolist()
        what = f'last {self._stride:,} tokens of each window'
        return [
            Row('perplexity', what, length, value, 'perplexity', n, n * self._stride)
            for length, value, n in zip(lengths, found['perplexity'].tolist(), windows, strict=True)
        ]


class LongPPL(_OfText):
    whole = True

    def __init__(self, asked: Asked, path: str) -> None:
        super().__init__(asked, path)
        o = asked.options
        short = max(min(self._length, min(asked.lengths) // 2), 1)
        self._rule = longppl.Rule(short=short, stride=max(short // 4, 1))
        self._budget = o.budget or LONGPPL_BUDGET
        longppl.check(self._texts.lengths, asked.lengths, self._rule, budget=self._budget)
        self.settings = {
            'lengths': asked.lengths,
            'rule': dataclasses.asdict(self._rule),
            'budget': self._budget,
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
            budget=self._budget,
            log=log,
            progress=bar,
        )

    def rows(self, found: Records) -> list[Row]:
        """Rows of LongPPL by length; NaN where no token is a key token."""
        return [
            Row('longppl', what, length, float(found[value][k]), unit, texts, int(found[of][k]))
            for what, value, unit, of in (
                ('key tokens', 'longppl', 'perplexity', 'key_tokens'),
                ('number of key tokens', 'key_tokens', 'tokens', 'tokens'),
            )
            for k, (length, texts) in enumerate(
                zip(found.coordinates['length'].tolist(), found['documents'].tolist(), strict=True)
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
                mean, tokens = float(values[low:high].mean()), len(self._blocks) * (high - low)
                place = f'mean {what}, positions {low + 1:,} to {high:,}'
                made.append(Row('loss', place, high, mean, unit, len(self._blocks), tokens))
        return made


def _task_rows(name: str, found: Records) -> list[Row]:
    """A row of every task and of their mean at every length."""
    tasks = [*map(str, found.coordinates['task'])]
    scores = np.concatenate([found['score'], found['average'][:, None]], axis=1)
    samples = np.concatenate([found['samples'], found['samples'].sum(axis=1)[:, None]], axis=1)
    return [
        Row(name, task, length, float(scores[k, q]), POINTS, int(samples[k, q]))
        for q, task in enumerate([*tasks, f'mean of {len(tasks)} tasks'])
        for k, length in enumerate(found.coordinates['length'].tolist())
    ]


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
