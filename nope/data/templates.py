"""Templates of retrieval prompts: text that hides a key in filler and asks for it again."""

from __future__ import annotations

import dataclasses

KEYS = range(10_000, 100_000)


@dataclasses.dataclass(frozen=True)
class Template:
    """The pieces of a prompt, ASCII, in the order in which they stand.

    info: names the key, as `{key}`, twice.
    question: ends with the words that precede the key in `info`, and without a space.
    answer_prefix: what stands between the question and the key in an answer.
    """

    name: str
    task: str
    filler: str
    info: str
    question: str
    answer_prefix: str = ' '

    def prompt(self, key: str, before: int, after: int) -> str:
        """The text that hides `key` behind `before` and in front of `after` repeats of the
        filler; the answer is what follows."""
        return (
            self.task
            + before * self.filler
            + self.info.format(key=key)
            + after * self.filler
            + self.question
        )

    def answer(self, key: str) -> str:
        """The right continuation of a prompt for `key`."""
        return self.answer_prefix + key

    @property
    def shortest(self) -> int:
        """Characters of a prompt without filler and its answer."""
        key = str(KEYS[0])
        return len(self.prompt(key, 0, 0) + self.answer(key))


# arXiv 2404.12224.
PAPER = Template(
    name='paper',
    task=(
        'There is an important info hidden inside a lot of irrelevant text. Find it and memorize '
        'them. I will quiz you about the important information there.\n'
    ),
    filler=(
        ' The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again.'
    ),
    info='\nThe pass key is {key}. Remember it. {key} is the pass key.\n',
    question='\nWhat is the pass key? The pass key is',
)

# The same shape for byte-level models of short training lengths.
BRIEF = Template(
    name='brief',
    task='Find the key.\n',
    filler=' The sky is blue.',
    info='\nKey: {key}. {key}.\n',
    question='\nKey:',
)

TEMPLATES = {template.name: template for template in (PAPER, BRIEF)}
