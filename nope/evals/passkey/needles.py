"""Passkey prompts with several named keys, or with real text around them.

Multi-key needle in a haystack (arXiv 2404.06654): a prompt states several keys by their names and
asks for one. That one lies at the depth of its cell, the others anywhere. The haystack is repeats
of the template's filler, or text. Every piece of a prompt is tokenised alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nope.data import Tokenizer, encode_with_bos
from nope.data.templates import FILLER, KEYS, NAMED, NAMES, TEXT, Template
from nope.evals.passkey import cells, keys
from nope.evals.passkey.keys import PasskeyQuestion
from nope.evals.passkey.retrieval import PasskeyPlan, PasskeyPrompt, answer_ids


class Needle(NamedTuple):
    """A key and its name, '' where there is one key."""

    name: str
    key: str


@dataclasses.dataclass(frozen=True)
class NeedlesPlan(PasskeyPlan):
    """The plan of several keys, or of real text; made by `plan`."""

    needles: int = 1
    alike: bool = False
    texts: Mapping[int, np.ndarray] | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """Attributes of its records."""
        return {
            'needles': self.needles,
            'alike': self.alike,
            'haystack': FILLER if self.texts is None else TEXT,
        }

    def prompt(self, question: PasskeyQuestion) -> PasskeyPrompt:
        """The ids of one question, whose draws follow from the seed and its place alone."""
        draw, (task, *facts, ask, answer), room = self._alone(question)
        if room < 0:
            raise ValueError(
                f'length {question.length} is shorter than a prompt of these {self.needles} keys '
                f'without filler and its answer, {question.length - room} tokens'
            )
        unit, hay = self._haystack(question, room)
        units = len(hay) // unit
        places = [question.position * (units + 1) // question.length]
        places += draw.randint(0, units + 1, self.needles - 1).tolist()
        # Of two at one place either may come first.
        order = sorted(draw.permutation(self.needles).tolist(), key=lambda i: places[i])
        pieces, begin = [task], 0
        for i in order:
            pieces += [hay[begin : places[i] * unit], facts[i]]
            begin = places[i] * unit
        return PasskeyPrompt(np.concatenate([*pieces, hay[begin:], ask]).astype(np.int32), answer)

    def fits(self, question: PasskeyQuestion) -> bool:
        """Whether its keys, as this tokenizer counts them, leave room for the rest."""
        return self._alone(question)[2] >= 0

    def _alone(
        self, question: PasskeyQuestion
    ) -> tuple[np.random.RandomState, tuple[np.ndarray, ...], int]:
        """The draws after those of keys and names; ids of the task, of each key's statement, of the
        question and of the answer; and the tokens that these leave for the haystack."""
        depth = round(question.depth * keys.DEPTHS)
        draw = np.random.RandomState([self.seed, question.length, depth, question.test])
        stated = draw_needles(draw, question.key, self.needles, self.alike)
        asked = stated[0]
        ids = (
            encode_with_bos(self.tokenizer, self.template.task, self.bos),
            *(self._ids(self.template.state(n.key, n.name)) for n in stated),
            self._ids(self.template.ask(asked.name)),
            answer_ids(self.template, self.tokenizer, asked.key, asked.name),
        )
        return draw, ids, question.length - sum(map(len, ids))

    def _haystack(self, question: PasskeyQuestion, room: int) -> tuple[int, np.ndarray]:
        """Tokens of a piece that no key cuts, and at most `room` tokens of such pieces."""
        if self.texts is None:
            filler = self._ids(self.template.filler)
            return len(filler), np.tile(filler, room // len(filler))
        rows = self.texts[question.length]
        index = round(question.depth * keys.DEPTHS) * keys.TESTS + question.test
        return 1, rows[index % len(rows)][:room]

    def _ids(self, text: str) -> np.ndarray:
        return self.tokenizer.encode(text)


def plan(
    template: Template,
    tokenizer: Tokenizer,
    max_length: int,
    seed: int = 42,
    *,
    bos: bool | None,
    tests: int = keys.TESTS,
    lengths: Sequence[int] = (),
    needles: int = 1,
    alike: bool = False,
    texts: Mapping[int, np.ndarray] | None = None,
) -> NeedlesPlan:
    """The questions for one tokenizer, at 16 lengths by 10 depths or at chosen `lengths`.

    template: of one key; several take its form with names. max_length, lengths, seed, tests: as in
    `retrieval.plan`, with the same places and keys. needles: keys of a prompt, 1 to 26. alike:
    whether the other keys have four digits of the one asked for. texts: length -> rows [B, length
    or more] int32 in place of filler. ValueError as in `retrieval.plan`.
    """
    template = form(template, needles)
    every = cells.questions(max_length, seed, tests, lengths)
    given = template, tokenizer, max_length, seed, bos, tests, every
    found = NeedlesPlan(*given, needles=needles, alike=alike, texts=texts)
    asked = cells.keep_fitting(every, found.fits, max_length)
    if lengths and len(asked) < len(every):
        least = shortest(template, tokenizer, bos, needles)
        raise ValueError(
            f'lengths are {tuple(lengths)}; a prompt of {needles} keys without filler and its '
            f'answer take {least} tokens, or more where a key has more'
        )
    return dataclasses.replace(found, questions=asked)


def form(template: Template, needles: int) -> Template:
    """The template for so many keys: itself for one, that with names for several."""
    return template if needles == 1 else NAMED[template.name]


def shortest(template: Template, tokenizer: Tokenizer, bos: bool | None, needles: int) -> int:
    """Tokens of a prompt of `needles` keys without filler, and its answer."""
    key, name = str(KEYS[0]), NAMES[0]
    alone = [template.state(key, name)] * needles + [template.ask(name)]
    return (
        len(encode_with_bos(tokenizer, template.task, bos))
        + sum(len(tokenizer.encode(piece)) for piece in alone)
        + len(answer_ids(template, tokenizer, key, name))
    )


def draw_needles(draw: np.random.RandomState, key: str, needles: int, alike: bool) -> list[Needle]:
    """`needles` keys with names, that which is asked for first; no two share either.

    alike: whether the others differ from `key` in one digit.
    """
    if needles == 1:
        return [Needle('', key)]
    found = [key]
    while len(found) < needles:
        if alike:
            place = draw.randint(len(key))
            digit = draw.randint(1 if place == 0 else 0, 10)
            other = f'{key[:place]}{digit}{key[place + 1 :]}'
        else:
            other = str(draw.randint(KEYS.start, KEYS.stop))
        if other not in found:
            found.append(other)
    names = draw.permutation(list(NAMES)).tolist()
    return [Needle(name, each) for name, each in zip(names, found, strict=False)]
