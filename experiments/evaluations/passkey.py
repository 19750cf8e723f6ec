"""Passkey retrieval by length and depth: 5-digit keys hidden in filler or text, exact match."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from experiments.bench import Bench
from experiments.evaluations.base import Rows, TableRow
from experiments.evaluations.entry import EvalEntry
from experiments.evaluations.text_base import ASKING_FIELDS, TextSpec, after_bos, of_text
from experiments.programs import Program, Scoring
from experiments.runs import text_of
from nope.data.templates import FILLER, HAYSTACKS, NAMES, TEMPLATES, TEXT
from nope.evals import passkey
from nope.evals.passkey import cells, keys, needles
from nope.records import Records
from nope.runtime.seeds import RULE, is_seed
from nope.variables import Variables

NEEDLES = {'needles': 1, 'alike': False, 'haystack': FILLER}
TEXT_SPLIT = 'validation'


@dataclasses.dataclass(frozen=True, kw_only=True)
class PasskeySpec(TextSpec):
    """Passkey retrieval (`nope.evals.passkey.retrieval`, arXiv 2404.12224), and of several keys or
    in real text (`nope.evals.passkey.needles`).

    template: name of the prompt's pieces.
    max_length: tokens of the longest prompt. window: tokens that the model's context reaches.
    plan_seed: of positions and keys. tests: prompts of each length and depth.

    lengths: in tokens, in place of the plan's 16 equal steps to max_length.
    needles: keys of a prompt. Several have names.
    alike: whether the others have four digits of the one that is asked for.
    haystack: 'filler', or 'text' of the run's own data.
    """

    task: str = dataclasses.field(default='passkey', init=False)
    template: str
    max_length: int
    window: int
    plan_seed: int
    tests: int
    lengths: tuple[int, ...] = ()
    needles: int = 1
    alike: bool = False
    haystack: str = FILLER
    kind = 'passkey'
    fields = ('times', 'lengths', *NEEDLES, 'window', 'passkey', *ASKING_FIELDS)
    command = 'passkey'
    defaults: ClassVar[Mapping[str, Any] | None] = {
        'template': 'paper',
        'seed': 42,
        'tests': 10,
        'bos': None,
    }
    title = 'passkey'

    @classmethod
    def from_entry(cls, asked: EvalEntry, **more: Any) -> Self:
        """more: fields of a subclass."""
        section = cls.own_section(asked)
        common = of_text(asked, section)
        lengths = _lengths(asked)
        max_length = max(lengths) if lengths else asked.times('times', 2.0)
        asked.check_reach(common['position'], max_length)
        if not 1 <= section['tests'] <= passkey.TESTS:
            raise section.error('tests', f'accepted: 1 to {passkey.TESTS}')
        if not is_seed(section['seed']):
            raise section.error('seed', RULE)
        spec = cls(
            template=section.choice('template', TEMPLATES),
            max_length=max_length,
            window=asked.window() or max_length,
            plan_seed=section['seed'],
            tests=section['tests'],
            lengths=lengths,
            **_needles(asked),
            **common,
            **more,
        )
        field = 'tokens' if 'tokens' in asked.entry else 'lengths'
        if lengths and min(lengths) < spec.shortest:
            rule = f'a prompt without filler and its answer take {spec.shortest} tokens'
            raise asked.entry.error(field, rule)
        if spec.turns and not spec.is_protocol:
            raise asked.entry.error('chat', 'accepted with one key in filler')
        return spec

    @property
    def extent(self) -> int:
        return self.max_length

    @property
    def read_split(self) -> str | None:
        return TEXT_SPLIT if self.haystack == TEXT else None

    @property
    def reads(self) -> Mapping[int, int]:
        steps = range(1, keys.LENGTHS + 1)
        lengths = self.lengths or [self.max_length // keys.LENGTHS * step for step in steps]
        return dict.fromkeys(lengths, keys.DEPTHS * self.tests)

    @property
    def is_protocol(self) -> bool:
        """True for one key in filler, which is the paper's protocol."""
        return all(getattr(self, field) == default for field, default in NEEDLES.items())

    @property
    def shortest(self) -> int:
        """Tokens of a prompt without filler and its answer."""
        template = TEMPLATES[self.template]
        if self.is_protocol:
            return passkey.shortest(template, self.tokenizer, self.bos, chat=self.chat)
        template = needles.form(template, self.needles)
        return needles.shortest(template, self.tokenizer, self.bos, self.needles)

    def check(self, bench: Bench) -> None:
        self._plan(bench)

    def found(self, bench: Bench, variables: Variables, **how: Any) -> Records:
        generator, plan = self.generator(bench, variables), self._plan(bench)
        return passkey.run(generator, plan, window=self.window, **how)

    def rows(self, found: Records) -> list[TableRow]:
        accuracy, lengths = found['accuracy'], found.coordinates['length'].tolist()
        keys = accuracy.shape[1] * found.attributes['tests']
        return [
            TableRow(self.kind, 'keys repeated', length, float(share), '%', keys)
            for length, share in zip(lengths, 100 * accuracy.mean(axis=1), strict=True)
        ]

    def programs(self, rows: Rows) -> Iterator[Program]:
        for length in self.lengths or (self.extent,):
            yield Scoring(self.model, length, rows(length, Scoring.rules))

    def measured_on(self, found: Records) -> tuple[str, str]:
        facts = found.attributes
        length = f'{facts["max_length"]:,} {facts["token"]}s'
        named = '' if self.needles == 1 else f'{self.needles} named '
        alike = ' with four digits in common' if self.alike else ''
        text = f' of {TEXT_SPLIT} text' if self.haystack == TEXT else ''
        what = f'{named}pass keys{alike} in prompts{text} of up to {length}'
        return what, f'{facts["tests"]:,} for each length and depth{after_bos(found, "prompt")}'

    def _plan(self, bench: Bench) -> passkey.PasskeyPlan:
        given = TEMPLATES[self.template], self.tokenizer, self.max_length, self.plan_seed
        common: dict[str, Any] = {'bos': self.bos, 'tests': self.tests, 'lengths': self.lengths}
        if self.is_protocol:
            return passkey.plan(*given, **common, chat=self.chat)
        return needles.plan(
            *given, **common, needles=self.needles, alike=self.alike, texts=self._texts(bench)
        )

    def _texts(self, bench: Bench) -> dict[int, np.ndarray] | None:
        """Rows of text for every length; None where prompts have filler."""
        if self.haystack == FILLER:
            return None
        lengths = self.lengths or {q.length for q in cells.questions(self.max_length, 0, 1)}
        data = dataclasses.replace(text_of(self.run), bos=False)  # prompts have their own
        # One window for every prompt where there are so many.
        how: dict[str, Any] = {
            'split': TEXT_SPLIT,
            'count': keys.DEPTHS * keys.TESTS,
            'seed': self.plan_seed,
        }
        return {
            length: bench.blocks(data, block=length, length=length, **how).tokens
            for length in lengths
        }


def _lengths(asked: EvalEntry) -> tuple[int, ...]:
    """Chosen lengths in tokens; none where the entry has no `lengths`. ValueError where it has
    `times` as well."""
    if 'tokens' in asked.entry:
        return asked.lengths()
    if 'lengths' not in asked.entry:
        return ()
    if 'times' in asked.entry:
        other = asked.entry.path('times')
        raise asked.entry.error('lengths', f'{other} stands for 16 lengths of its own: give one')
    return asked.lengths('lengths')


def _needles(asked: EvalEntry) -> dict[str, Any]:
    """The entry's fields of NEEDLES, or their defaults. ValueError for what does not fit."""
    entry = asked.entry
    found = {field: entry.get(field, default) for field, default in NEEDLES.items()}
    count = found['needles']
    if type(count) is not int or not 1 <= count <= len(NAMES):
        raise entry.error('needles', f'accepted: a whole number from 1 to {len(NAMES)}')
    if found['haystack'] not in HAYSTACKS:
        raise entry.error('haystack', f'accepted: {", ".join(HAYSTACKS)}')
    if not isinstance(found['alike'], bool) or (found['alike'] and count == 1):
        raise entry.error('alike', 'accepted: True or False, True with needles above 1')
    return found
