"""Task of length generalization: lengths of training and test, bins, examples."""

from __future__ import annotations

import abc
import dataclasses
import hashlib
import re
from typing import ClassVar, NamedTuple

import numpy as np

from nope.data.tasks import answers
from nope.data.tasks.scratchpad import NONE, Checked, Format, SolutionStep, check, write
from nope.runtime.errors import FieldError

TRAIN, TEST = SPLITS = ('train', 'test')

NEXT = ' [NEXT] '  # between both halves of a target that does its task twice

# What examples are drawn by: the length, or the digits of both operands.
Bin = tuple[int, ...]


class Example(NamedTuple):
    """One example. length: as on figures' axes, the larger number of its bin. answer: the final
    answer in the target's words; the whole target where the task is a kind of copying."""

    source: str
    target: str
    length: int
    answer: str


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Numbers of examples. Every bin has as many: floor((train + validation) / bins) for training
    and validation, floor(test / bins) for the test, so that the last two may come out smaller."""

    train: int = 100_000
    validation: int = 15_000
    test: int = 10_000

    def __post_init__(self) -> None:
        for name, least in (('train', 1), ('validation', 0), ('test', 1)):
            if getattr(self, name) < least:
                raise FieldError(name, getattr(self, name), f'at least {least}')


@dataclasses.dataclass(frozen=True)
class Task(abc.ABC):
    """A task: a pure function from a bin and a random generator to examples.

    longest: L, the greatest length of training; tests have L + 1 to 2 L. shortest: the least.
    reach: another greatest length of the tests than 2 L. Each length has as many examples as
    otherwise, up to 2 L the same ones.
    """

    longest: int
    shortest: int
    reach: int | None = None

    separator: ClassVar[str] = ''  # between source and target
    form: ClassVar[answers.Form] = answers.WHOLE
    paper_sizes: ClassVar[Sizes] = Sizes()
    exhaustive: ClassVar[bool] = False  # a bin has the same examples whatever its number
    sampled_test: ClassVar[bool] = False  # a test bin is a sample of one as large as in training
    # Whether examples of a length have as many tokens, and more than those of a smaller one.
    tokens_by_length: ClassVar[bool] = False
    least: ClassVar[int] = 1  # the shortest length there can be

    def __post_init__(self) -> None:
        for name, value in (('shortest', self.shortest), ('longest', self.longest)):
            if type(value) is not int:
                raise ValueError(f'{self.name}: {name}={value!r}; accepted: a whole number')
        if not self.least <= self.shortest <= self.longest:
            raise ValueError(
                f'{self.name}: shortest={self.shortest} and longest={self.longest}; accepted: '
                f'{self.least} <= shortest <= longest'
            )
        if self.reach is not None and type(self).longest_test is not Task.longest_test:
            raise FieldError('reach', self.reach, f'the tests of {self.name} end where they do')
        if self.reach is not None and self.reach <= self.longest:
            raise FieldError('reach', self.reach, f'accepted: more than longest={self.longest}')

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """Name in the registry, which seeds the examples too."""

    @property
    @abc.abstractmethod
    def alphabet(self) -> tuple[str, ...]:
        """Texts that have every word of the task's examples, with a blank in front of it or not as
        examples have it. The beginning of a text counts as a blank."""

    @property
    def by_symbol(self) -> bool:
        """Whether a bin's number of examples says which symbols it has: the first ones."""
        return False

    @property
    def style(self) -> Format:
        """Format of the scratchpad in front of the targets; without parts where there is none."""
        return NONE

    @abc.abstractmethod
    def _draw(self, bin: Bin, rng: np.random.Generator, count: int) -> list[Example]:
        """`count` examples of a bin, fewer where the task says so."""

    def lengths(self, split: str) -> range:
        """Lengths of a split: 'train', of which validation is a part, or 'test'."""
        if split not in SPLITS:
            raise ValueError(f'split {split!r}; accepted: {", ".join(SPLITS)}')
        if split == TRAIN:
            return range(self.shortest, self.longest + 1)
        return range(self.longest + 1, self.longest_test + 1)

    @property
    def longest_test(self) -> int:
        """The greatest length of the test."""
        return 2 * self.longest if self.reach is None else self.reach

    def bins(self, split: str) -> tuple[Bin, ...]:
        """Bins of a split, in order."""
        return tuple((length,) for length in self.lengths(split))

    def per_bin(self, split: str, sizes: Sizes) -> int:
        """Examples of each bin of a split, validation among training."""
        total = sizes.train + sizes.validation if split == TRAIN else sizes.test
        usual = self if self.reach is None else dataclasses.replace(self, reach=None)
        return total // len(usual.bins(split))

    def examples(self, bin: Bin, rng: np.random.Generator, count: int) -> list[Example]:
        """`count` examples of one bin, a function of the arguments alone.

        They are rounded down to whole chains of LEGO and to all pairs of symbols of replacement;
        exhaustive tasks give all that there are.
        """
        return self._draw(bin, rng, count)

    @property
    def stream(self) -> int:
        """Stream of the task in random generators: the first 64 bits of its name's SHA-256."""
        return int.from_bytes(hashlib.sha256(self.name.encode()).digest()[:8], 'big')

    def prompt(self, example: Example) -> str:
        """Prompt of an example: source and separator."""
        return example.source + self.separator

    def check_target(self, example: Example) -> None:
        """ValueError for an example whose target does not end in its answer, as it is graded."""
        stated, answer = self.form.parse(example.target), self.form.canonical(example.answer)
        if stated is None or stated != answer:
            raise ValueError(
                f'{self.name}: the target {example.target!r:.300} has no answer of the form '
                f'{self.form.name} that is {example.answer!r:.100}'
            )


@dataclasses.dataclass(frozen=True)
class SteppedTask(Task):
    """A task whose targets may have a scratchpad, which changes nothing else of the examples."""

    scratchpad: Format = NONE

    @property
    def style(self) -> Format:
        return self.scratchpad

    @abc.abstractmethod
    def steps(self, source: str) -> list[SolutionStep]:
        """The steps from a source to its answer. ValueError for what is no source of the task."""

    def check(self, source: str, text: str) -> Checked:
        """Each step of a predicted target, against those of its source."""
        return check(text, self.steps(source), self.scratchpad)

    def check_target(self, example: Example) -> None:
        """As of every task, and where the scratchpad of the target is not right."""
        super().check_target(example)
        problems = self.check(example.source, example.target).problems if self.scratchpad else ()
        if problems:
            raise ValueError(
                f'{self.name}: the scratchpad of the target {example.target!r:.300}: {problems[0]}'
            )

    def examples(self, bin: Bin, rng: np.random.Generator, count: int) -> list[Example]:
        drawn = super().examples(bin, rng, count)
        if not self.scratchpad:
            return drawn
        return [
            example._replace(
                target=write(self.steps(example.source), self.scratchpad, example.target)
            )
            for example in drawn
        ]


def matched(name: str, pattern: re.Pattern[str], source: str) -> re.Match[str]:
    """Match of a whole source. ValueError for a text that is not a source of the task `name`."""
    found = pattern.fullmatch(source)
    if found is None:
        raise no_source(name, source)
    return found


def no_source(name: str, source: str) -> ValueError:
    """Error for a text that is not a source of the task of that name."""
    return ValueError(f'{name}: {source!r} is no source of this task')
