"""Passkey retrieval by length and depth: a 5-digit key hidden in filler, exact match."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterator
from typing import Any, ClassVar, Self

from experiments.bench import Bench
from experiments.evaluations.base import TEXT_FIELDS, Asked, Rows, TextSpec, of_text, open_log
from experiments.programs import Program, Scoring
from nope.data import load_tokenizer
from nope.data.templates import TEMPLATES
from nope.evals import passkey
from nope.identity import added_later
from nope.records import Records


@dataclasses.dataclass(frozen=True, kw_only=True)
class PasskeySpec(TextSpec):
    """Passkey retrieval (`nope.evals.passkey.retrieval`, arXiv 2404.12224).

    template: name of the prompt's pieces. max_length: tokens of the longest prompt. window: tokens
    up to which the model's context reaches. plan_seed: of positions and keys. tests: prompts of
    each length and depth. lengths: in tokens, in place of the plan's 16 equal steps to max_length.
    """

    task: str = dataclasses.field(default='passkey', init=False)
    template: str
    max_length: int
    window: int
    plan_seed: int
    tests: int
    lengths: tuple[int, ...] = added_later(())
    kind = 'passkey'
    fields = ('times', 'lengths', 'window', 'passkey', *TEXT_FIELDS)
    identity_type: ClassVar[str] = 'NeedlesSpec'

    @classmethod
    def from_entry(cls, asked: Asked) -> Self:
        section = asked.section('passkey')
        common = of_text(asked, section)
        lengths = _lengths(asked)
        max_length = max(lengths) if lengths else asked.times('times', 2.0)
        asked.check_reach(common['position'], max_length)
        if not 1 <= section['tests'] <= passkey.TESTS:
            raise section.error('tests', f'accepted: 1 to {passkey.TESTS}')
        spec = cls(
            template=section.choice('template', TEMPLATES),
            max_length=max_length,
            window=asked.window(),
            plan_seed=section['seed'],
            tests=section['tests'],
            lengths=lengths,
            **common,
        )
        if lengths and min(lengths) < spec.shortest:
            rule = f'a prompt without filler and its answer take {spec.shortest} tokens'
            raise asked.entry.error('lengths', rule)
        return spec

    @property
    def extent(self) -> int:
        return self.max_length

    @property
    def shortest(self) -> int:
        """Tokens of a prompt without filler and its answer."""
        tokenizer = load_tokenizer(self.run.data.tokenizer)
        return passkey.shortest(TEMPLATES[self.template], tokenizer, self.bos)

    def check(self, bench: Bench) -> None:
        self._plan()

    def measure(self, bench: Bench, folder: pathlib.Path) -> tuple[Records, dict[str, Any]]:
        variables, more = self.measured(bench)
        found = passkey.run(
            self.generator(bench, variables),
            self._plan(),
            open_log(folder),
            window=self.window,
            progress=bench.bar('passkey'),
        )
        return found, more

    def programs(self, rows: Rows) -> Iterator[Program]:
        for length in self.lengths or (self.extent,):
            yield Scoring(self.model, length, rows(length, Scoring.rules))

    def measured_on(self, found: Records) -> tuple[str, str]:
        facts = found.attributes
        length = f'{facts["max_length"]:,} {facts["token"]}s'
        what = f'pass keys in prompts of up to {length}'
        return what, f'{facts["tests"]:,} for each length and depth'

    def _plan(self) -> Any:
        return passkey.plan(
            TEMPLATES[self.template],
            load_tokenizer(self.run.data.tokenizer),
            self.max_length,
            self.plan_seed,
            bos=self.bos,
            tests=self.tests,
            lengths=self.lengths,
        )


def _lengths(asked: Asked) -> tuple[int, ...]:
    """Chosen lengths in tokens; none where the entry has no `lengths`. ValueError where it has
    `times` as well."""
    if 'lengths' not in asked.entry:
        return ()
    if 'times' in asked.entry:
        other = asked.entry.path('times')
        raise asked.entry.error('lengths', f'{other} stands for 16 lengths of its own: give one')
    return asked.lengths('lengths')
