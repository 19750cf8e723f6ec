"""PCFG SET, productivity split: the public files, and a generator of our own.

`Pcfg` has the paper's examples, from the files `train.src`, `train.tgt`, `test.src` and `test.tgt`
of `pcfgset/productivity` in the public data set of arXiv 1908.08351. The authors fitted the
probabilities of their grammar to the tree depths and lengths of English sentences and did not
publish them, so only the files give the examples.

`PcfgOwn` needs no files: the same language, another distribution, and not the paper's split.
Numbers on it compare with each other only.
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib
from typing import ClassVar

import numpy as np

from nope.data.tasks import pcfg_grammar
from nope.data.tasks.base import SPLITS, TEST, TRAIN, Bin, Example, Sizes, Task

_TEXTS = (
    'Solve:[SEP]',
    ' '.join((pcfg_grammar.COMMA, *sorted(pcfg_grammar.FUNCTIONS))),
    ' '.join(pcfg_grammar.ALPHABET),
)


_FUNCTIONS = (*pcfg_grammar.UNARY, *pcfg_grammar.BINARY)


@dataclasses.dataclass(frozen=True)
class Pcfg(Task):
    """The public productivity split. path: the folder with its four files, one example a line.

    A length is the number of functions: up to `longest` in the training files, more in the test's.
    The bins are those that the files have. Every target is computed from its source again.
    FileNotFoundError for a missing file. ValueError, with file and line, for a source without
    target, one outside of the grammar or the split, and a wrong target.
    """

    longest: int = 8
    shortest: int = 1
    path: str = ''

    separator: ClassVar[str] = '[SEP] '
    paper_sizes: ClassVar[Sizes] = Sizes(train=72_909, validation=8_101, test=11_333)
    exhaustive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.longest >= pcfg_grammar.MOST_FUNCTIONS:
            raise ValueError(
                f'{self.name}: longest={self.longest}; accepted: less than '
                f'{pcfg_grammar.MOST_FUNCTIONS}'
            )

    @property
    def name(self) -> str:
        return 'pcfg'

    @property
    def longest_test(self) -> int:
        """The most functions that a source may have; the public files have up to 35."""
        return pcfg_grammar.MOST_FUNCTIONS

    @property
    def alphabet(self) -> tuple[str, ...]:
        return _TEXTS

    def bins(self, split: str) -> tuple[Bin, ...]:
        lengths = self.lengths(split)
        present = self._files()[split]
        for length, examples in present.items():
            if length not in lengths:
                raise ValueError(
                    f'{self.name}: {split} has {len(examples)} sources of {length} functions; '
                    f'longest={self.longest} needs {lengths[0]} to {lengths[-1]}'
                )
        return tuple((length,) for length in sorted(present))

    def _draw(self, bin: Bin, rng: np.random.Generator, count: int) -> list[Example]:
        split = TRAIN if bin[0] <= self.longest else TEST
        return list(self._files()[split][bin[0]])

    def _files(self) -> dict[str, dict[int, list[Example]]]:
        if not self.path:
            raise ValueError(
                f'{self.name}: path is empty; it must be the folder with train.src, train.tgt, '
                'test.src and test.tgt of the PCFG SET productivity split'
            )
        folder = pathlib.Path(self.path)
        files = [folder / f'{split}.{end}' for split in SPLITS for end in ('src', 'tgt')]
        for file in files:
            if not file.is_file():
                raise FileNotFoundError(f'{self.name}: path={self.path!r}: no file {file.name}')
        state = tuple((file.stat().st_size, file.stat().st_mtime_ns) for file in files)
        return _read(folder, state)


@dataclasses.dataclass(frozen=True)
class PcfgOwn(Task):
    """PCFG SET from a generator of our own: every number of functions as often as any other.

    Each of the ten functions is as likely; a binary function's arguments share the other functions
    uniformly; strings have 2 to 5 words, uniform in the 520. Sources whose string is longer than
    `most_words` are drawn anew.
    """

    longest: int = 8
    shortest: int = 1
    most_words: int = 250

    separator: ClassVar[str] = '[SEP] '

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.longest_test > pcfg_grammar.MOST_FUNCTIONS:
            raise ValueError(
                f'{self.name}: longest={self.longest}; at most {pcfg_grammar.MOST_FUNCTIONS // 2}'
            )
        if self.most_words < 16:
            raise ValueError(f'{self.name}: most_words={self.most_words}; at least 16')

    @property
    def name(self) -> str:
        return 'pcfg_own'

    @property
    def alphabet(self) -> tuple[str, ...]:
        return _TEXTS

    def _draw(self, bin: Bin, rng: np.random.Generator, count: int) -> list[Example]:
        drawn: list[Example] = []
        while len(drawn) < count:
            source = ' '.join(self._expression(bin[0], rng))
            target = pcfg_grammar.interpret(source)
            if len(target.split()) <= self.most_words:
                drawn.append(Example(f'Solve: {source}', target, bin[0], target))
        return drawn

    def _expression(self, count: int, rng: np.random.Generator) -> list[str]:
        """Words of a random expression of so many functions."""
        if count == 0:
            picks = rng.integers(len(pcfg_grammar.ALPHABET), size=rng.integers(2, 6))
            return [pcfg_grammar.ALPHABET[i] for i in picks]
        name = _FUNCTIONS[rng.integers(len(_FUNCTIONS))]
        if name in pcfg_grammar.UNARY:
            return [name, *self._expression(count - 1, rng)]
        first = int(rng.integers(count))
        return [
            name,
            *self._expression(first, rng),
            pcfg_grammar.COMMA,
            *self._expression(count - 1 - first, rng),
        ]


@functools.lru_cache(maxsize=1)
def _read(
    folder: pathlib.Path, state: tuple[tuple[int, int], ...]
) -> dict[str, dict[int, list[Example]]]:
    """Split -> functions -> examples, of the files in a state of sizes and times."""
    return {split: _read_split(folder, split) for split in SPLITS}


def _read_split(folder: pathlib.Path, split: str) -> dict[int, list[Example]]:
    sources, targets = (_lines(folder / f'{split}.{end}') for end in ('src', 'tgt'))
    if len(sources) != len(targets):
        raise ValueError(
            f'{folder / split}.tgt has {len(targets)} lines, and {split}.src has {len(sources)}'
        )
    found: dict[int, list[Example]] = {}
    for number, (source, target) in enumerate(zip(sources, targets, strict=True), 1):
        try:
            right = pcfg_grammar.interpret(source)
        except ValueError as error:
            raise ValueError(f'{folder / split}.src, line {number}: {error}') from error
        if target != right:
            raise ValueError(
                f'{folder / split}.tgt, line {number}: {_short(target)!r}; its source describes '
                f'{_short(right)!r}'
            )
        length = pcfg_grammar.functions(source)
        found.setdefault(length, []).append(Example(f'Solve: {source}', target, length, target))
    return found


def _lines(file: pathlib.Path) -> list[str]:
    try:
        text = file.read_text(encoding='ascii')
    except UnicodeDecodeError as error:
        raise ValueError(f'{file}: not ASCII text ({error})') from error
    lines = [line.strip() for line in text.splitlines()]
    if not lines:
        raise ValueError(f'{file} is empty')
    return lines


def _short(text: str, most: int = 80) -> str:
    return text if len(text) <= most else text[: most - 3] + '...'
