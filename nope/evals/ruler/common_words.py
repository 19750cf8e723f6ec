"""Common words: ten of the words in a numbered list are there more often than the others.

The prompt begins with an example of its own.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from nope.evals.answers import Sample
from nope.evals.ruler import fitting
from nope.evals.ruler.corpora import WORDS
from nope.evals.ruler.fitting import Drawn, PromptSource, Request

QUESTION = (
    'Below is a numbered list of words. In these words, some appear more often than others. '
    'Memorize the ones that appear most often.\n'
    '{context}\n'
    'Question: What are the 10 most common words in the above list? '
    'Answer: The top 10 words that appear most often in the list are:'
)
ESTIMATED = 4096  # words of the first trial


class CommonWords:
    """The task. Common words are there 30 times, others 3 times; below 4,096 tokens 6 and once."""

    common = 10
    repeats, short_repeats = (30, 3), (6, 1)
    # Words of the example, and how often common and other ones are there.
    example, short_example = (40, 10, 3), (20, 3, 1)
    budget = 120
    metric = 'all'
    opening = ' Answer:'
    needs_words = True
    files = ()

    def samples(self, request: Request) -> Iterator[Sample]:
        return fitting.samples(_WordLists(self, request), request, self.budget)


class _WordLists(PromptSource):
    """Sizes are different words. More than the vocabulary has come from the user's list."""

    step = 10

    def __init__(self, task: CommonWords, request: Request) -> None:
        self._task = task
        self._seed = request.seed
        self._short = request.length < fitting.SHORT
        self._stream = random.Random(request.seed)
        self._words = [*request.vocabulary().words]
        random.Random(request.seed).shuffle(self._words)
        self._more = request.corpora.words if request.corpora.has(WORDS) else []
        self.least = task.common

    def largest(self, length: int, count: Callable[[str], int]) -> int:
        most = max(len(self._words), len(self._more))
        size = min(ESTIMATED, most)
        return min(int(length // self.per_unit(size, count)) * 2, most)

    def check_found(self, size: int, length: int) -> None:
        if not self._more and size == len(self._words):
            raise ValueError(
                f'length is {length} tokens; the {size:,} words that there are make shorter '
                f'prompts; put {WORDS} of RULER into the corpus folder'
            )

    def draw(self, index: int, size: int) -> Drawn:
        task = self._task
        words, *repeats = task.short_example if self._short else task.example
        example = self._list(words, *repeats)
        asked = self._list(size, *(task.short_repeats if self._short else task.repeats))
        text = f'{example.text} {_numbered(example.answers)}\n{asked.text}'
        return Drawn(text, asked.answers)

    def _list(self, size: int, common: int, others: int) -> Drawn:
        drawn = self._stream.sample(self._words if size <= len(self._words) else self._more, size)
        often, rest = drawn[: self._task.common], drawn[self._task.common :]
        listed = often * common + rest * others
        random.Random(self._seed).shuffle(listed)
        return Drawn(QUESTION.format(context=_numbered(listed)), tuple(often))


def _numbered(words: list[str] | tuple[str, ...]) -> str:
    return ' '.join(f'{number}. {word}' for number, word in enumerate(words, 1))
