"""Templates of retrieval prompts: text that hides a key in filler and asks for it again."""

from __future__ import annotations

import dataclasses
import string

KEYS = range(10_000, 100_000)


@dataclasses.dataclass(frozen=True)
class Template:
    """The pieces of a prompt, ASCII, in the order in which they stand.

    info: states the key, as `{key}`; of one of several keys its name too, as `{name}`.
    question: ends with the words before the key in `info`, without a space. It asks for one of
        several by `{name}`.
    answer_prefix: what stands between the question and the key in an answer. opening: the end of
        the question, with which the answer begins in a chat.
    """

    name: str
    task: str
    filler: str
    info: str
    question: str
    answer_prefix: str = ' '
    opening: str = ''

    def prompt(self, key: str, before: int, after: int) -> str:
        """Prompt with `key` behind `before` and in front of `after` repeats of the filler."""
        return (
            self.task
            + before * self.filler
            + self.info.format(key=key)
            + after * self.filler
            + self.question
        )

    def state(self, key: str, name: str = '') -> str:
        """The sentence that states a key, by its name where the template has names."""
        return self.info.format(key=key, name=name)

    def ask(self, name: str) -> str:
        """The question for the key of a name, or for the only one, of no name."""
        return self.question.format(name=name)

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
    opening=' The pass key is',
)

# The same shape for byte-level models of short training lengths.
BRIEF = Template(
    name='brief',
    task='Find the key.\n',
    filler=' The sky is blue.',
    info='\nKey: {key}. {key}.\n',
    question='\nKey:',
    opening='\nKey:',
)

# The same with several keys, each with a name, of which one is asked for (multi-key needle in a
# haystack, arXiv 2404.06654). A name is as long as any other. In the brief form it stands where the
# word before a single key does, so that small models find both in the same way.
PAPER_NAMED = dataclasses.replace(
    PAPER,
    name='paper_named',
    info='\nThe pass key of {name} is {key}. Remember it. {key} is the pass key of {name}.\n',
    question='\nWhat is the pass key of {name}? The pass key of {name} is',
    opening='',
)
BRIEF_NAMED = dataclasses.replace(
    BRIEF, name='brief_named', info='\n{name}: {key}.', question='\n{name}:', opening=''
)
NAMES = string.ascii_uppercase

# What keys are hidden in: repeats of the template's filler, or running text.
HAYSTACKS = FILLER, TEXT = ('filler', 'text')

TEMPLATES = {template.name: template for template in (PAPER, BRIEF)}

# A template for one key -> its form for several.
NAMED = {PAPER.name: PAPER_NAMED, BRIEF.name: BRIEF_NAMED}


def shortest_named(needles: int) -> int:
    """Characters of a brief prompt with `needles` named keys and no filler, and its answer."""
    key, name = str(KEYS[0]), NAMES[0]
    pieces = (BRIEF_NAMED.task, BRIEF_NAMED.ask(name), BRIEF_NAMED.answer(key))
    return sum(map(len, pieces)) + needles * len(BRIEF_NAMED.state(key, name))
