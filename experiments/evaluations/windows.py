"""Windows cut from a model's own data, for the evaluations that read them."""

from __future__ import annotations

import abc
import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.bench import Bench
from experiments.config import Section
from experiments.evaluations.base import EvalSpec, most_rows
from experiments.evaluations.entry import EvalEntry
from experiments.evaluations.texts import WHOLE, TextFiles, corpus_of
from experiments.runs import Source, text_of
from nope import sharding
from nope.data.evaluation import CUTS, ENDS, EvalBlocks
from nope.data.splits import SPLITS
from nope.records import FLOOR, Records, unigram_entropy
from nope.runtime.errors import FieldError

FIRST = 'first'  # the cut of windows of files


@dataclasses.dataclass(frozen=True)
class Windows:
    """Evaluation windows: the last `length` tokens of blocks of `block` tokens.

    cut: from within documents, packed, or at the ends of documents. Documents of
    the last kind have `shortest` tokens or more, and fewer than `longest`.

    texts: files whose first blocks are read, in place of the data of the run.
    """

    length: int
    block: int
    count: int
    split: str
    seed: int
    cut: str = 'documents'
    shortest: int | None = None
    longest: int | None = None
    texts: TextFiles | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.length <= self.block:
            raise FieldError('length', self.length, f'accepted: 1 to the block, {self.block}')
        if self.count < 1:
            raise FieldError('count', self.count, 'it must be at least 1')
        if self.shortest is not None and self.shortest < 1:
            raise FieldError('shortest', self.shortest, 'it must be at least 1, or None')
        if self.longest is not None and self.longest <= max(self.shortest or 0, self.block + 1):
            rule = f'it must be above shortest and above the window with one more, {self.block + 1}'
            raise FieldError('longest', self.longest, f'{rule}, or None')


def windows(length: int, section: Section, block: int | None = None) -> Windows:
    """As a section says, with `windows`, `split`, `seed` and `cut`, and for 'ends' `shortest` and
    `longest`."""
    cut = section.choice('cut', CUTS)
    ends = ('shortest', 'longest') if cut == ENDS else ()
    with section.naming(count='windows'):
        return Windows(
            length=length,
            block=block or length,
            count=section['windows'],
            split=section.choice('split', SPLITS[1:]),
            seed=section.at_least('seed', 0),
            cut=cut,
            **{name: section.optional(name) for name in ends},
        )


def windows_of_files(length: int, asked: EvalEntry, section: Section) -> Windows:
    """The first windows of the corpus that an entry names. ValueError for one that has splits."""
    corpus, split = corpus_of(asked)
    if not isinstance(corpus, TextFiles):
        raise asked.entry.error('corpus', f'accepted: text:PATH with the split {WHOLE!r}')
    count = section.at_least('windows', 1)
    return Windows(length, length, count, split, seed=0, cut=FIRST, texts=corpus)


def blocks(bench: Bench, run: Source, asked: Windows) -> EvalBlocks:
    """The windows, tokens [windows, length + 1] int32."""
    if asked.texts is not None:
        texts = asked.texts.documents(run.data.tokenizer, text_of(run).bos)
        return texts.blocks(asked.length, asked.count)
    return bench.blocks(
        text_of(run),
        split=asked.split,
        block=asked.block,
        length=asked.length,
        count=asked.count,
        seed=asked.seed,
        cut=asked.cut,
        shortest=asked.shortest,
        longest=asked.longest,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class WindowSpec(EvalSpec):
    """An evaluation of windows cut from the model's own data."""

    windows: Windows

    @abc.abstractmethod
    def found(self, bench: Bench, read: EvalBlocks, **how: Any) -> tuple[Records, dict[str, Any]]:
        """As `measure`, of windows that were read. how: mesh, rows of a batch and progress."""

    def measure(self, bench: Bench, folder: pathlib.Path) -> tuple[Records, dict[str, Any]]:
        read = blocks(bench, self.run, self.windows)
        rows = most_rows(bench.batch_tokens, bench.mesh)(self.windows.length, sharding.RULES)
        how = {'mesh': bench.mesh, 'batch_size': rows, 'progress': bench.bar(self.title)}
        found, more = self.found(bench, read, **how)
        floor = unigram_entropy(self.inside(read.tokens[:, 1:]))
        return found, {'documents': read.documents, FLOOR: floor} | more

    def inside(self, targets: np.ndarray) -> np.ndarray:
        """Those that the loss inside L is of, of targets [windows, length]."""
        return targets[:, : self.run.train_length]

    @property
    def extent(self) -> int:
        return self.windows.length

    @property
    def reads(self) -> Mapping[int, int]:
        return {self.windows.length: self.windows.count}

    @property
    def known(self) -> dict[str, Any]:
        shape = {'n_layers': self.model.attention_layers, 'n_heads': self.model.heads}
        asked = self.windows
        cut: dict[str, Any] = {} if asked.cut == 'documents' else {'cut': asked.cut}
        cut |= {k: v for k in ('shortest', 'longest') if (v := getattr(asked, k)) is not None}
        cut |= {} if asked.texts is None else {'data': asked.texts.name}
        cut |= {'bos': True} if text_of(self.run).bos else {}
        length = {'length': self.extent, 'windows': self.windows.count}
        return super().known | length | shape | cut

    @property
    def read_split(self) -> str:
        return self.windows.split

    def check(self, bench: Bench) -> None:
        blocks(bench, self.run, self.windows)

    def measured_on(self, found: Records) -> tuple[str, str]:
        facts = found.attributes
        length = f'{self.reach}{facts["length"]:,} {facts["token"]}s'
        counted = '1 window' if facts['windows'] == 1 else f'{facts["windows"]:,} windows'
        what = f'{counted} of {length} of {facts["data"]}'
        return what, f'{facts["split"]} split{manner(facts)}'

    @property
    def reach(self) -> str:
        """'up to ' where there are shorter windows too."""
        return ''


def manner(facts: Mapping[str, Any]) -> str:
    """Caption text of how evaluation windows were cut and begin, behind the name of the split."""
    begun = ', each beginning with BOS' if facts.get('bos') else ''
    between = [
        f'{words} {facts[name]:,} {facts["token"]}s'
        for name, words in (('shortest', 'at least'), ('longest', 'fewer than'))
        if facts.get(name)
    ]
    ends = f', each the end of a document{" of " * bool(between)}{" and ".join(between)}'
    cuts = {'packed': ', packed across documents', FIRST: ', the first of its documents'}
    return {**cuts, ENDS: ends}.get(facts.get('cut', ''), '') + begun
