"""Passkey retrieval: tokenised prompts, and the share of keys that a model repeats.

The protocol is that of arXiv 2404.12224; `nope.evals.passkey.keys` has its arithmetic.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from nope.data import Tokenizer, encode_with_bos
from nope.data.chat import Chat, prompt_ids
from nope.data.templates import Template
from nope.evals.forward import Progress
from nope.evals.generation import Generator
from nope.evals.passkey import cells, keys
from nope.evals.passkey.keys import PasskeyQuestion, PieceCounts
from nope.evals.samples import SampleLog
from nope.records import Records


class PasskeyPrompt(NamedTuple):
    """Token ids, int32: of a prompt, with BOS if it has one, and of its answer."""

    ids: np.ndarray
    answer: np.ndarray


@dataclasses.dataclass(frozen=True)
class PasskeyPlan:
    """Questions that fit, longest first, and their tokenisation."""

    template: Template
    tokenizer: Tokenizer
    max_length: int
    seed: int
    bos: bool | None
    tests: int
    questions: tuple[PasskeyQuestion, ...]
    chat: Chat | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """Attributes of its records besides those of any plan."""
        return {}

    def prompt(self, question: PasskeyQuestion) -> PasskeyPrompt:
        """The ids of one question. ValueError where the prompt exceeds its room, which takes a
        tokenizer that cuts a piece into more tokens inside a text than alone."""
        counts = piece_counts(self.template, self.tokenizer, question.key, self.bos, self.chat)
        before, after = keys.fillers(question.length, question.position, counts)
        text = self.template.prompt(question.key, before, after)
        ids = prompt_ids(self.tokenizer, text, self.bos, self.chat, self.template.opening)
        room = question.length - counts.answer
        if len(ids) > room:
            raise ValueError(
                f'the prompt {question.name} has {len(ids)} tokens, more than the {room} that '
                f'length {question.length} leaves beside the answer: this tokenizer needs more '
                'tokens for a piece of the prompt inside it than alone'
            )
        return PasskeyPrompt(ids, answer_ids(self.template, self.tokenizer, question.key))


def plan(
    template: Template,
    tokenizer: Tokenizer,
    max_length: int,
    seed: int = 42,
    *,
    bos: bool | None,
    tests: int = keys.TESTS,
    lengths: Sequence[int] = (),
    chat: Chat | None = None,
) -> PasskeyPlan:
    """The protocol's questions for one tokenizer: 16 lengths by 10 depths.

    max_length: in tokens, as in `keys.plan`. tests: so many of a cell's ten are asked, the first
    ones. lengths: chosen ones up to max_length, in tokens, in place of the 16. chat: asks in turns
    and counts them. Lengths without room for a prompt and its answer are left out; the others keep
    their positions and keys. ValueError if no length, or not every chosen one, has room; if bos is
    on and the tokenizer has no BOS; and if a prompt would exceed its length.
    """

    def fits(question: PasskeyQuestion) -> bool:
        return shortest(template, tokenizer, bos, question.key, chat) <= question.length

    every = cells.questions(max_length, seed, tests, lengths)
    asked = cells.keep_fitting(every, fits, max_length)
    if lengths and len(asked) < len(every):
        least = shortest(template, tokenizer, bos, chat=chat)
        raise ValueError(
            f'lengths are {tuple(lengths)}; a prompt without filler and its answer take {least} '
            'tokens'
        )
    made = PasskeyPlan(template, tokenizer, max_length, seed, bos, tests, asked, chat)
    for question in {question.length: question for question in asked}.values():
        made.prompt(question)  # one of each length, to fail early
    return made


def piece_counts(
    template: Template, tokenizer: Tokenizer, key: str, bos: bool | None, chat: Chat | None = None
) -> PieceCounts:
    """Tokens of each piece counted alone, as in the protocol: `task` and `info` with the prompt's
    BOS, the others without; `task` with the turns of a chat."""
    return PieceCounts(
        task=len(prompt_ids(tokenizer, template.task, bos, chat)),
        filler=len(tokenizer.encode(template.filler)),
        info=len(encode_with_bos(tokenizer, template.info.format(key=key), bos)),
        question=len(tokenizer.encode(template.question)),
        answer=len(answer_ids(template, tokenizer, key)),
    )


def shortest(
    template: Template,
    tokenizer: Tokenizer,
    bos: bool | None,
    key: str = '10000',
    chat: Chat | None = None,
) -> int:
    """Tokens of a prompt without filler and its answer, each piece counted alone."""
    counts = piece_counts(template, tokenizer, key, bos, chat)
    return sum(dataclasses.astuple(counts)) - counts.filler


def answer_ids(template: Template, tokenizer: Tokenizer, key: str, name: str = '') -> np.ndarray:
    """The ids that follow a prompt for `key` when its answer is written behind it, int32.

    name: of the key, where the template has names.

    That is what encoding prompt and answer together adds to the prompt alone. With Llama's
    tokenizer it is the key encoded alone, as in the protocol: its first token is the space in front
    of any text. Bytes and byte-level pieces have that space from the answer. ValueError where the
    end of the question and the answer share a token, so that no ids follow the prompt.
    """
    prompt = template.task + template.state(key, name) + template.ask(name)
    before = tokenizer.encode(prompt)
    whole = tokenizer.encode(prompt + template.answer(key))
    if not np.array_equal(whole[: len(before)], before):
        raise ValueError(
            f'the tokenizer ({type(tokenizer).__name__}, fingerprint {tokenizer.fingerprint}) '
            f'joins the end of the question {template.question!r} with the answer '
            f'{template.answer(key)!r}: the answer has no tokens of its own'
        )
    return whole[len(before) :]


def run(
    generator: Generator,
    plan: PasskeyPlan,
    log: SampleLog,
    *,
    window: int,
    progress: Progress = iter,
) -> Records:
    """The share of keys repeated, accuracy [length, depth], and real tokens of prompts [length].

    An answer is right when all its tokens are. Greedy decoding of as many tokens as the answer
    has gives the answer exactly when each of its tokens is the most likely one after the prompt
    and the answer's earlier tokens: as long as those hold, decoding has written them itself. So
    one pass over prompt and answer decides, and nothing is generated.

    Rows of the log, by 'length/depth/test': correct; matched, the answer's leading tokens that
    are right; tokens of the prompt; length, depth, test. Questions that it has are not asked
    again. window: tokens up to which the model's context reaches, for the records' attributes.
    """

    def answer(chunk: Sequence[PasskeyQuestion]) -> list[dict[str, Any]]:
        prompts = [plan.prompt(question) for question in chunk]
        asked = [p.ids for p in prompts], [p.answer for p in prompts]
        rows = []
        scores = generator.score(*asked, written=True)
        for question, prompt, score in zip(chunk, prompts, scores, strict=True):
            matched = int(np.logical_and.accumulate(score.greedy).sum())
            found = {'correct': matched == len(prompt.answer), 'matched': matched}
            rows.append({**question.place, **found, 'tokens': len(prompt.ids)})
        return rows

    cells.answer_missing(plan.questions, log, answer, progress)
    measures, coordinates = cells.tabulate(plan.questions, log)
    attributes = {
        'evaluation': 'passkey',
        'max_length': plan.max_length,
        'plan_seed': plan.seed,
        'template': plan.template.name,
        'tests': plan.tests,
        'bos': plan.bos,
        'window': window,
        **plan.facts,
    }
    return Records(attributes, measures, coordinates)
