"""Prompts of a length: how many sentences, words or documents fit, and samples of that size.

The search and the draws follow NVIDIA/RULER's step by step, so that one seed gives its prompts. A
draw that does not fit takes as much from the random stream as one that fits.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

from nope.evals.answers import Sample
from nope.evals.ruler.corpora import Corpora
from nope.evals.ruler.vocabulary import Vocabulary

# Draws at the smallest size before a length counts as too short. RULER draws for ever.
MOST_DRAWS = 50

SHORT = 4096  # lengths below have smaller steps and fewer repeats


class Drawn(NamedTuple):
    """Text of a prompt, up to where the answer begins, and what the answer is to contain."""

    text: str
    answers: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Request:
    """Length, tokenizer, seed and corpora that prompts are made for.

    count: tokens of a text, without BOS. length: tokens of a prompt and its answer. vocabulary:
    makes the words where a task needs them.
    """

    count: Callable[[str], int]
    length: int
    seed: int
    vocabulary: Callable[[], Vocabulary]
    corpora: Corpora


class PromptSource:
    """Draws prompts of one task, from one random stream.

    step: the smallest size tried, and the amount by which too large a size falls. least: the
    smallest size of a prompt. example: tokens that `trial` leaves out.
    """

    step: int
    least: int
    example: int = 0

    def draw(self, index: int, size: int) -> Drawn:
        """The prompt of sample `index`."""
        raise NotImplementedError

    def trial(self, size: int) -> str:
        """A prompt of the search."""
        return self.draw(0, size).text

    def largest(self, length: int, count: Callable[[str], int]) -> int:
        """The largest size tried, from the tokens of a trial."""
        return int(length / self.per_unit(self.step, count) * 3)

    def check_found(self, size: int, length: int) -> None:
        """ValueError where the size that the search found makes shorter prompts than `length`."""

    def per_unit(self, size: int, count: Callable[[str], int]) -> float:
        """Tokens of a trial, for each of the `size` units it has."""
        return count(self.trial(size)) / size


def samples(source: PromptSource, request: Request, budget: int) -> Iterator[Sample]:
    """Samples 0, 1, ... that fit with `budget` tokens of an answer. ValueError, naming the length,
    where none does."""
    room = request.length - budget
    largest = fitting_size(source, request, room)
    for index in itertools.count():
        size, draws, fewest = largest, 0, None
        while size >= source.least and draws < MOST_DRAWS:
            drawn = source.draw(index, size)
            tokens = request.count(drawn.text)
            if tokens <= room:
                yield Sample(drawn.text, drawn.answers, tokens)
                break
            fewest = min(tokens, fewest or tokens)
            if size > source.step:
                size -= source.step
            else:
                draws += 1
        else:
            raise ValueError(
                f'length is {request.length} tokens; the shortest prompt that was drawn has '
                f'{fewest}, and its answer takes {budget}'
            )


def fitting_size(source: PromptSource, request: Request, room: int) -> int:
    """The largest size found by bisection whose trial takes `room` tokens at most; the smallest
    one tried where none does."""
    low, found = source.step, source.step
    high = max(source.largest(request.length, request.count), 2 * source.step)
    while low <= high:
        middle = (low + high) // 2
        if request.count(source.trial(middle)) + source.example <= room:
            found, low = middle, middle + 1
        else:
            high = middle - 1
    source.check_found(found, request.length)
    return found
