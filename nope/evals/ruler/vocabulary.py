"""English words of the tasks, from the package `wonderwords`, and the keys made of them."""

from __future__ import annotations

import bisect
import dataclasses
import functools
import importlib.metadata
import importlib.resources
import itertools
from collections.abc import Sequence

from nope.data import digest

PACKAGE = 'wonderwords'


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """Nouns, adjectives and verbs. name: of where they come from, with its version."""

    nouns: tuple[str, ...]
    adjectives: tuple[str, ...]
    verbs: tuple[str, ...]
    name: str

    def __post_init__(self) -> None:
        for field in ('nouns', 'adjectives', 'verbs'):
            if not getattr(self, field):
                raise ValueError(f'{field} of the vocabulary {self.name} is empty')

    @functools.cached_property
    def words(self) -> list[str]:
        """All of them, each once, sorted."""
        return sorted({*self.nouns, *self.adjectives, *self.verbs})

    @functools.cached_property
    def keys(self) -> Keys:
        """Every 'adjective-noun'."""
        return Keys(self.adjectives, self.nouns)

    @functools.cached_property
    def fingerprint(self) -> str:
        return digest.of_json([self.nouns, self.adjectives, self.verbs])


@functools.cache
def load() -> Vocabulary:
    """The words of the installed `wonderwords`."""
    assets = importlib.resources.files(f'{PACKAGE}.assets')

    def read(name: str) -> tuple[str, ...]:
        text = assets.joinpath(f'{name}list.txt').read_text('utf-8')
        return tuple(line.rstrip() for line in text.splitlines())

    name = f'{PACKAGE} {importlib.metadata.version(PACKAGE)}'
    return Vocabulary(read('noun'), read('adjective'), read('verb'), name)


class Keys:
    """All distinct 'adjective-noun', sorted, made when asked for: there are six million. They are
    for `random.choice`.

    Keys of one adjective lie next to each other. If 'adjective-' begins another one
    ('good-natured'), both adjectives share a block.
    """

    def __init__(self, adjectives: Sequence[str], nouns: Sequence[str]) -> None:
        self._nouns = sorted(set(nouns))
        self._blocks: list[list[str]] = []
        for begin in sorted({f'{adjective}-' for adjective in adjectives}):
            if self._blocks and begin.startswith(self._blocks[-1][0]):
                self._blocks[-1].append(begin)
            else:
                self._blocks.append([begin])
        sizes = (
            len(self._nouns) if len(block) == 1 else len(self._mixed(number))
            for number, block in enumerate(self._blocks)
        )
        self._ends = list(itertools.accumulate(sizes))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, index: int) -> str:
        """Key `index`, 0 or more."""
        number = bisect.bisect_right(self._ends, index)
        within = index - (self._ends[number - 1] if number else 0)
        block = self._blocks[number]
        return block[0] + self._nouns[within] if len(block) == 1 else self._mixed(number)[within]

    def _mixed(self, number: int) -> list[str]:
        return sorted({f'{begin}{noun}' for begin in self._blocks[number] for noun in self._nouns})
