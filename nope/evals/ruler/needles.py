"""Needles in a haystack: values stated for keys between sentences, and asked for at the end."""

from __future__ import annotations

import dataclasses
import random
import uuid
from collections.abc import Iterator

from nope.evals.answers import Sample
from nope.evals.ruler import fitting
from nope.evals.ruler.corpora import ESSAYS
from nope.evals.ruler.fitting import Drawn, PromptSource, Request
from nope.evals.ruler.sentences import split
from nope.evals.ruler.vocabulary import Keys

NEEDLE = 'One of the special magic {kind} for {key} is: {value}.'
NOISE = 'The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again.'
QUESTION = (
    'Some special magic {kind} are hidden within the following text. Make sure to memorize it. '
    'I will quiz you about the {kind} afterwards.\n'
    '{context}\n'
    'What are all the special magic {kind} for {query} mentioned in the provided text? '
    'The special magic {kind} for {query} mentioned in the provided text are'
)
SINGULAR = (
    'A special magic {kind} is hidden within the following text. Make sure to memorize it. '
    'I will quiz you about the {kind} afterwards.\n'
    '{context}\n'
    'What is the special magic {kind} for {query} mentioned in the provided text? '
    'The special magic {kind} for {query} mentioned in the provided text is'
)

# Percentages of the sentences: 40, evenly spaced and rounded to even.
DEPTHS = [round(100 * i / 39) for i in range(40)]


@dataclasses.dataclass(frozen=True)
class Needles:
    """One of the eight tasks.

    haystack: repeats of NOISE, essays of the user, or needles of other keys. key, value: kinds of
    both. keys: so many have values in the text besides a haystack's. values: so many has each key.
    queries: so many keys are asked for.
    """

    haystack: str
    key: str = 'words'
    value: str = 'numbers'
    keys: int = 1
    values: int = 1
    queries: int = 1
    budget = 128
    metric = 'all'
    opening = ' The special magic '

    @property
    def needs_words(self) -> bool:
        return 'words' in (self.key, self.value)

    @property
    def files(self) -> tuple[str, ...]:
        return (ESSAYS,) if self.haystack == 'essay' else ()

    def samples(self, request: Request) -> Iterator[Sample]:
        return fitting.samples(_Haystack(self, request), request, self.budget)


class _Haystack(PromptSource):
    """Sizes are words of essays, and lines of the other haystacks."""

    def __init__(self, task: Needles, request: Request) -> None:
        self._task = task
        self._seed = request.seed
        self._stream = random.Random(request.seed)
        self._keys: Keys | list[str] = request.vocabulary().keys if task.needs_words else []
        self._essays = request.corpora.essays if task.haystack == 'essay' else []
        short = request.length < fitting.SHORT
        self.step = 500 if task.haystack == 'essay' else 5 if short else 25
        self.least = 1 if task.haystack == 'essay' else max(task.keys, task.queries) * task.values

    def draw(self, index: int, size: int) -> Drawn:
        task, needles = self._task, []
        keys: list[str] = []
        values: list[list[str]] = []
        for _ in range(max(task.keys, task.queries)):
            keys.append(self._made(task.key))
            values.append([])
            for _ in range(task.values):
                values[-1].append(self._made(task.value))
                needles.append(self._needle(keys[-1], values[-1][-1]))
        random.Random(self._seed).shuffle(needles)
        context = self._in_essays if task.haystack == 'essay' else self._in_lines
        text = context(needles, size)
        asked = self._stream.sample(range(len(keys)), task.queries)
        return Drawn(
            self._question(text, [keys[i] for i in asked]),
            tuple(value for i in asked for value in values[i]),
        )

    def _question(self, context: str, keys: list[str]) -> str:
        task, query = self._task, keys[-1]
        if len(keys) > 1:
            query = f'{", ".join(keys[:-1])}, and {query}'
        one = task.queries * task.values == 1
        kind = task.value.removesuffix('s') if one else task.value
        template = SINGULAR if one else QUESTION
        return template.format(kind=kind, context=context, query=query)

    def _in_essays(self, needles: list[str], size: int) -> str:
        """Needles between sentences, in the order of their depths."""
        repeats = -(-size // len(self._essays))
        sentences = split(' '.join((self._essays * repeats)[:size]).strip())
        depths = self._stream.sample(DEPTHS, len(needles))
        places = sorted(int(len(sentences) * (depth / 100)) for depth in depths)
        parts, begin = [], 0
        for place, needle in zip(places, needles, strict=True):
            parts += [' '.join(sentences[begin:place]), needle]
            begin = place
        return ' '.join([*parts, ' '.join(sentences[begin:])])

    def _in_lines(self, needles: list[str], size: int) -> str:
        lines = [NOISE] * size
        if self._task.haystack == 'needle':
            kinds = self._task.key, self._task.value
            lines = [self._needle(*map(self._made, kinds)) for _ in range(size)]
        places = sorted(self._stream.sample(range(size), len(needles)), reverse=True)
        for place, needle in zip(places, needles, strict=True):
            lines.insert(place, needle)
        return '\n'.join(lines)

    def _needle(self, key: str, value: str) -> str:
        return NEEDLE.format(kind=self._task.value, key=key, value=value)

    def _made(self, kind: str) -> str:
        if kind == 'words':
            return self._stream.choice(self._keys)
        if kind == 'numbers':
            return str(self._stream.randint(1_000_000, 9_999_999))
        return str(uuid.UUID(int=self._stream.getrandbits(128), version=4))
