"""PCFG SET, productivity split.

`Pcfg` has the paper's examples, from the files `train.src`, `train.tgt`, `test.src` and `test.tgt`
of `pcfgset/productivity` in the public data set of arXiv 1908.08351. The authors fitted the
probabilities of their grammar to the tree depths and lengths of English sentences and did not
publish them, so only the files give the examples.
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
