"""Questions about documents: those that hold the answer lie among others of the data set."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator

from nope.evals.answers import Sample
from nope.evals.ruler import fitting
from nope.evals.ruler.fitting import Drawn, PromptSource, Request

DOCUMENT = 'Document {number}:\n{document}'
TASK = (
    'Answer the question based on the given documents. '
    'Only give me the answer and do not output any other words.'
)
QUESTION = (
    f'{TASK}\n\nThe following are given documents.\n\n{{context}}\n\n{TASK}\n\n'
    'Question: {query} Answer:'
)


@dataclasses.dataclass(frozen=True)
class Questions:
    """One of the two tasks. file: a key of `corpora.FILES`."""

    file: str
    budget = 32
    metric = 'part'
    opening = ' Answer:'
    needs_words = False

    @property
    def files(self) -> tuple[str, ...]:
        return (self.file,)

    def samples(self, request: Request) -> Iterator[Sample]:
        return fitting.samples(_AmongOthers(self.file, request), request, self.budget)


class _AmongOthers(PromptSource):
    """Sizes are documents. Sample i asks the i-th question."""

    step = 10
    least = 1

    def __init__(self, file: str, request: Request) -> None:
        self._data = request.corpora.questions(file)
        self._file = file
        self._seed = request.seed
        self._stream = random.Random(request.seed)

    def draw(self, index: int, size: int) -> Drawn:
        if index >= len(self._data.asked):
            raise ValueError(f'samples: {self._file} has {len(self._data.asked)} questions')
        question = self._data.asked[index]
        documents = self._documents(question.own, question.near, size)
        random.Random(self._seed).shuffle(documents)
        context = '\n\n'.join(
            DOCUMENT.format(number=number, document=document)
            for number, document in enumerate(documents, 1)
        )
        return Drawn(QUESTION.format(context=context, query=question.text), question.answers)

    def _documents(self, own: tuple[int, ...], near: tuple[int, ...], size: int) -> list[str]:
        """`size` documents: a question's own, others near them, and then any others."""
        every = self._data.documents
        if size >= len(every):
            return (every * -(-size // len(every)))[:size]
        more = max(size - len(own), 0)
        if more > len(near):
            taken = {*own, *near}
            others = [i for i in range(len(every)) if i not in taken]
            chosen = [*own, *near, *self._stream.sample(others, more - len(near))]
        else:
            chosen = [*own, *self._stream.sample(near, more)]
        return [every[i] for i in chosen]
