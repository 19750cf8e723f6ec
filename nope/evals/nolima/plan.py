"""Files of NoLiMa, and its prompts at lengths of a tokenizer."""

from __future__ import annotations

import dataclasses
import functools
import pathlib

import numpy as np

from nope.data.tokenizers import Tokenizer
from nope.evals.answers import Part, Sample
from nope.evals.nolima import needles
from nope.evals.nolima.needles import CHARACTER, Pair
from nope.runtime.files import read_utf8

NEEDLES, BOOKS = 'needlesets/needle_set.json', 'haystack/rand_shuffle'
DEPTHS = np.linspace(0, 100, 26) / 100
SEED = 42
BUDGET = 192  # tokens of an answer
SYSTEM = 'You are a helpful assistant'  # of a chat


class Haystack:
    """A book in the tokens of a tokenizer: windows of it with a needle. name: for messages."""

    def __init__(self, text: str, tokenizer: Tokenizer, name: str) -> None:
        self._text, self._tokenizer, self._name = text, tokenizer, name

    def place(self, needle: str, length: int, depth: float) -> str:
        """`length` tokens of the book, with the needle on a line of its own at a depth, 0 .. 1.

        The needle follows the first line end that lies `length * depth` tokens or more from the
        beginning of the book; so many tokens stand before it. ValueError for a book that is too
        short.
        """
        deep = np.nonzero(self._places / (length + 1) - depth >= 0)[0]
        place = int(self._places[deep[0]]) if len(deep) else 0
        begin = place - int(np.round(length * depth))
        if not len(deep) or begin + length > len(self._ids):
            raise ValueError(
                f'{self._name} has {len(self._ids)} tokens, the last line end at '
                f'{self._places[-1]}; it is too short for a length of {length}'
            )
        before = self._tokenizer.decode(self._ids[begin : place + 1])
        behind = self._tokenizer.decode(self._ids[place + 1 : begin + length])
        return f'{before[: max(before.rfind(chr(10)), 0)]} {needle}\n{behind}'

    @functools.cached_property
    def _ids(self) -> np.ndarray:
        return self._tokenizer.encode(self._text)

    @functools.cached_property
    def _places(self) -> np.ndarray:
        """The beginning, and the tokens that have a line end, int64, ascending."""
        ends = [i for i in np.unique(self._ids) if '\n' in self._tokenizer.decode(np.array([i]))]
        return np.concatenate([[0], np.nonzero(np.isin(self._ids, ends))[0]])


@dataclasses.dataclass(frozen=True)
class NolimaPlan:
    """Every pair of needle and question at every depth in every book, at `lengths`: tokens of the
    book, which prompt and answer come on top of.

    folder: with needlesets/needle_set.json and haystack/rand_shuffle/*.txt. limit: pairs, for
    trials; None for all.
    """

    tokenizer: Tokenizer
    folder: pathlib.Path
    lengths: tuple[int, ...]
    limit: int | None = None

    def __post_init__(self) -> None:
        """FileNotFoundError and ValueError, naming file and layout, for what no prompts can be made
        of."""
        if not self.books:
            raise FileNotFoundError(
                f'{self.folder / BOOKS} has no books; it must hold text files, as '
                'rand_book_1.txt to rand_book_5.txt are published'
            )
        _ = self.pairs

    @functools.cached_property
    def pairs(self) -> list[Pair]:
        return needles.read(self.folder / NEEDLES)[: self.limit]

    @functools.cached_property
    def books(self) -> list[pathlib.Path]:
        """Sorted by name; the published code takes them as the file system lists them."""
        return sorted((self.folder / BOOKS).glob('*.txt'))

    @property
    def names(self) -> list[str]:
        """Of the files that are read, below the folder."""
        return [NEEDLES, *(f'{BOOKS}/{book.name}' for book in self.books)]

    def check(self) -> None:
        """ValueError for books that are too short for the longest length."""
        for book in range(len(self.books)):
            for depth in DEPTHS:
                self._haystacks[book].place('', max(self.lengths), float(depth))

    def part(self, length: int, book: int) -> Part:
        """All pairs in one book, every depth of a pair in turn."""
        made = []
        for pair in self.pairs:
            draw = np.random.RandomState(SEED + pair.number + book)
            for depth in DEPTHS:
                needle, question, answers = pair.needle, pair.question, pair.answers
                if pair.characters:
                    drawn = str(draw.choice(pair.characters))
                    needle, question = (x.replace(CHARACTER, drawn) for x in (needle, question))
                    answers = (drawn,)
                haystack = self._haystacks[book].place(needle, length, float(depth))
                text = pair.template.format(haystack=haystack, question=question)
                made.append(Sample(text, answers, len(self.tokenizer.encode(text))))
        return Part(self.task(book), length, BUDGET, made, contains, system=SYSTEM)

    def task(self, book: int) -> str:
        """Name of a book's part."""
        return self.books[book].stem

    @functools.cached_property
    def _haystacks(self) -> list[Haystack]:
        # Line ends as the published code reads them.
        texts = [read_utf8(book).decode().replace('\r\n', '\n') for book in self.books]
        named = zip(texts, self.books, strict=True)
        return [Haystack(text, self.tokenizer, str(book)) for text, book in named]


def contains(prediction: str, sample: Sample) -> float:
    """1.0 where one of the answers is in the prediction, as it is spelled."""
    return float(any(answer in prediction for answer in sample.answers))
