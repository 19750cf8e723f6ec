"""Cases of evals.py: evaluations of one random model, and the same requests to a peer.

Inputs are random except the passkey's, whose prompts are the protocol's, cut into words.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import pathlib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from jax.sharding import Mesh

from nope import interop
from nope.data import DataConfig
from nope.data.documents import open_documents
from nope.data.sources import Text
from nope.data.templates import KEYS, PAPER
from nope.evals import passkey, sliding
from nope.evals.generation import Generator, Options
from nope.evals.samples import SampleLog
from nope.model import ModelConfig
from nope.variables import Variables
from tools.bench.model import bytes_per_step

PERPLEXITY_PRECISION = 1e-4  # relative
WHOLE, FIRST = 'whole', 'first'
Seconds = Mapping[str, float]


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Sizes of the measured evaluations.

    lengths: of passkey prompts, nominal. prompt, new_tokens: of generation, the latter after the
        first one. rows: of its larger batch.
    """

    window: int = 1024
    stride: int = 256
    windows: int = 24
    lengths: tuple[int, ...] = (256, 512, 768, 1024)
    tests: int = 2
    prompt: int = 1024
    new_tokens: int = 32
    rows: int = 8
    beams: int = 5


QUICK = Sizes(windows=4, lengths=(512, 1024), tests=1, new_tokens=8)


@dataclasses.dataclass(frozen=True)
class Comparison:
    """One evaluation.

    ours: functions by part: `WHOLE`, and `FIRST` where the first token has a time of its own.
    peers: requests to `peer.py`, by name and part.
    check: raises `Different` where our result of a part and a peer's differ.
    figures: JSON fields from the seconds of the parts.
    bytes_per_step: bytes read for a generated token, in all rows together.
    """

    ours: Mapping[str, Callable[[], Any]]
    peers: Mapping[str, Mapping[str, Mapping[str, Any]]]
    check: Callable[[str, Any, Any], None]
    figures: Callable[[Seconds], dict[str, float]]
    facts: Mapping[str, Any]
    bytes_per_step: float | None = None


class Different(Exception):
    """The two sides do not agree."""


class Subject:
    """The model under measurement, in `folder` too, from which peers load it."""

    def __init__(
        self,
        config: ModelConfig,
        variables: Variables,
        mesh: Mesh,
        folder: pathlib.Path,
        batch_tokens: int,
    ) -> None:
        self.config, self.variables, self.mesh = config, variables, mesh
        self.batch_tokens = batch_tokens
        self.generator = Generator(config, variables, mesh, batch_tokens=batch_tokens)
        self.folder = folder
        self._numbers = itertools.count()

    def export(self, longest: int) -> None:
        """Writes the model for `ask`."""
        described = interop.Described(self.config, longest)
        interop.save(self.folder / 'model', self.variables, described)

    def ask(self, rows: Iterable[Any], kind: str, **more: Any) -> dict[str, Any]:
        """Request to a peer about token rows."""
        inputs = self.folder / f'inputs-{next(self._numbers)}.json'
        inputs.write_text(json.dumps({'rows': [np.asarray(row).tolist() for row in rows]}))
        return {'kind': kind, 'model': str(self.folder / 'model'), 'inputs': str(inputs)} | more

    def new_log(self) -> SampleLog:
        return SampleLog(self.folder / f'log-{next(self._numbers)}' / 'samples.jsonl')

    def prompts(self, rows: int, length: int) -> list[np.ndarray]:
        draw = np.random.default_rng(0)
        return [*draw.integers(self.config.vocab_size, size=(rows, length), dtype=np.int32)]


def cases(sizes: Sizes) -> dict[str, Callable[[Subject], Comparison]]:
    """Constructors of the cases from a subject, by name; they compute nothing yet."""
    made = functools.partial(generation, sizes=sizes)
    return {
        'perplexity': functools.partial(perplexity, sizes=sizes),
        'passkey': functools.partial(passkey_grid, sizes=sizes),
        'greedy_1': functools.partial(made, rows=1, beams=1),
        f'greedy_{sizes.rows}': functools.partial(made, rows=sizes.rows, beams=1),
        f'beams_{sizes.beams}': functools.partial(made, rows=1, beams=sizes.beams),
    }


def perplexity(subject: Subject, sizes: Sizes) -> Comparison:
    """Sliding windows. Tokens are those that are read, not the fewer that are scored."""
    budget = sizes.stride * sizes.windows
    rng = np.random.default_rng(1)
    text = rng.integers(32, 127, sizes.window + budget).astype(np.uint8).tobytes()
    for split in ('train', 'test'):
        (subject.folder / 'text' / split).mkdir(parents=True)
        (subject.folder / 'text' / split / 'one.txt').write_bytes(text)
    source = DataConfig((Text(str(subject.folder / 'text')),))
    documents = open_documents(source, split='test', cache=subject.folder, bos=True)
    plan = sliding.plan(documents.lengths, sizes.window, stride=sizes.stride, budget=budget)

    def run() -> float:
        records = sliding.run(
            subject.config,
            subject.variables,
            documents,
            (sizes.window,),
            stride=sizes.stride,
            budget=budget,
            mesh=subject.mesh,
            batch_tokens=subject.batch_tokens,
            log=subject.new_log(),
        )
        return float(records.measures['loss'].values[0])

    def check(part: str, ours: float, theirs: float) -> None:
        if not abs(np.expm1(ours - theirs)) <= PERPLEXITY_PRECISION:
            raise Different(f'perplexities are {np.exp(ours)} and {np.exp(theirs)}')

    rows = documents.windows(plan.documents, plan.ends, plan.window)
    return Comparison(
        {WHOLE: run},
        {'windows': {WHOLE: subject.ask(rows, 'perplexity', stride=sizes.stride)}},
        check,
        _rate(len(plan) * plan.window),
        {'window': plan.window, 'stride': sizes.stride, 'windows': len(plan)},
    )


def passkey_grid(subject: Subject, sizes: Sizes) -> Comparison:
    """Lengths by depths. Tokens are nominal ones.

    A peer generates as many tokens as an answer has, for a prompt at a time ('prompts') or for
    all tests of a cell ('cells'). Ours must find as many leading tokens of the answer right as the
    peer writes, and what the peer writes, given as the answer, right throughout.
    """
    plan = passkey.plan(PAPER, Words(), max(sizes.lengths), bos=True, tests=sizes.tests)
    asked = tuple(q for q in plan.questions if q.length in sizes.lengths)
    plan = dataclasses.replace(plan, questions=asked)
    prompts, answers = zip(*(plan.prompt(question) for question in asked), strict=True)

    def run() -> list[int]:
        log = subject.new_log()
        passkey.run(subject.generator, plan, log, window=plan.max_length)
        return [log[question.name]['matched'] for question in asked]

    def check(part: str, ours: list[int], theirs: list[list[int]]) -> None:
        matched = [
            int(np.logical_and.accumulate(answer == written).sum())
            for answer, written in zip(answers, theirs, strict=True)
        ]
        if matched != ours:
            raise Different(f'answers begin right for {ours} and {matched} tokens')
        scores = subject.generator.score(prompts, [np.array(row, np.int32) for row in theirs])
        if not all(score.greedy.all() for score in scores):
            raise Different('a token that a peer writes is not the most likely one')

    def ask(batch: int) -> dict[str, Any]:
        return subject.ask(prompts, 'generate', batch=batch, new_tokens=len(answers[0]), beams=1)

    return Comparison(
        {WHOLE: run},
        {'prompts': {WHOLE: ask(1)}, 'cells': {WHOLE: ask(sizes.tests)}},
        check,
        _rate(sum(question.length for question in asked)),
        {'prompts': len(asked), 'longest': max(sizes.lengths)},
    )


def generation(subject: Subject, sizes: Sizes, *, rows: int, beams: int) -> Comparison:
    """Continuations, greedy or by beams, to the first token and to one after `new_tokens` more."""
    prompts = subject.prompts(rows, sizes.prompt)
    counts = {FIRST: 1, WHOLE: 1 + sizes.new_tokens}

    def made(new_tokens: int) -> list[list[int]]:
        options = Options(new_tokens, beams=beams)
        return [ids.tolist() for ids in subject.generator.generate(prompts, options)]

    def check(part: str, ours: list[list[int]], theirs: list[list[int]]) -> None:
        for row, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            if a != b:
                at = int(np.argmin(np.equal(a, b))) if len(a) == len(b) else 'the end'
                raise Different(f'continuations of row {row} differ at {at}')

    def figures(seconds: Seconds) -> dict[str, float]:
        after = seconds[WHOLE] - seconds[FIRST]
        return {
            'seconds': seconds[WHOLE],
            'first_seconds': seconds[FIRST],
            'ms_per_token': 1e3 * after / sizes.new_tokens,
            'tokens_per_second': rows * counts[WHOLE] / seconds[WHOLE],
        }

    def ask(new_tokens: int) -> dict[str, Any]:
        return subject.ask(prompts, 'generate', batch=rows, new_tokens=new_tokens, beams=beams)

    return Comparison(
        {part: functools.partial(made, count) for part, count in counts.items()},
        {'generate': {part: ask(count) for part, count in counts.items()}},
        check,
        figures,
        {'prompt': sizes.prompt, 'new_tokens': sizes.new_tokens, 'rows': rows, 'beams': beams},
        bytes_per_step(subject.config, rows * beams, sizes.prompt + sizes.new_tokens // 2),
    )


def _rate(tokens: int) -> Callable[[Seconds], dict[str, float]]:
    def figures(seconds: Seconds) -> dict[str, float]:
        return {'seconds': seconds[WHOLE], 'tokens_per_second': tokens / seconds[WHOLE]}

    return figures


class Words:
    """Tokenizer of words, digits and punctuation. A passkey prompt's pieces have 31, 24, 28, 11
    and 6 tokens; with Llama's tokenizer they have 33, 25, 29, 12 and 6."""

    eos_id, bos_id = 0, 1
    prefix = ()
    stop_ids = (0,)
    fingerprint = 'words'

    def __init__(self) -> None:
        pieces = PAPER.prompt(str(KEYS[0]), 1, 0) + PAPER.answer('0123456789')
        self._ids = {word: i for i, word in enumerate(sorted({*self._cut(pieces)}), 2)}
        self._words = {i: word for word, i in self._ids.items()}

    @property
    def vocab_size(self) -> int:
        return 2 + len(self._ids)

    def encode(self, text: str | bytes) -> np.ndarray:
        text = text.decode() if isinstance(text, bytes) else text
        return np.array([self._ids[word] for word in self._cut(text)], np.int32)

    def decode(self, ids: Any) -> str:
        return ''.join(self._words.get(int(i), '') for i in ids)

    @staticmethod
    def _cut(text: str) -> list[str]:
        return re.findall(r' ?[A-Za-z]+|.|\n', text)
