"""Scratchpads: written step by step, parsed strictly, checked step by step (arXiv 2305.19466).

A target with a scratchpad is `Thinking step by step: `, the steps joined by ` # `, ` . Thus,  ` and
the target without one. A full step is `in I comp C out O [ V ] re R ` with input, computation,
output, intermediate variables and remaining input; a format switches each off. The double blanks
are the released code's: a part that is empty, an end of a step and a mark of its own blank meet.

Tokenizers join blanks, so parsing takes any run of them for one and is strict about all else.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

BEGIN, SEPARATOR, END = 'Thinking step by step: ', ' # ', '. Thus, '


@dataclasses.dataclass(frozen=True)
class SolutionStep:
    """One step. variables: None where the task has none (sorting, LEGO)."""

    input: str
    computation: str
    output: str
    variables: str | None
    remaining: str


# The parts of a step in their order: name, opening mark, closing mark.
_PARTS = (
    ('input', 'in', ''),
    ('computation', 'comp', ''),
    ('output', 'out', ''),
    ('variables', '[', ']'),
    ('remaining', 're', ''),
)

# Words and characters of all scratchpads, in the forms they have in targets.
ALPHABET = 'Thinking step by step: in comp out [ ] re # . Thus,'


@dataclasses.dataclass(frozen=True)
class Format:
    """The parts that the steps of a scratchpad have. Without any there is no scratchpad.

    `variables` says nothing of tasks that have none: there NO_VARIABLES equals FULL.
    """

    input: bool = True
    computation: bool = True
    output: bool = True
    variables: bool = True
    remaining: bool = True

    def __bool__(self) -> bool:
        return any(dataclasses.astuple(self))

    @property
    def name(self) -> str:
        """Its name in FORMATS, else its parts: 'input+output'."""
        known = {style: name for name, style in FORMATS.items()}
        return known.get(self) or '+'.join(k for k, on in dataclasses.asdict(self).items() if on)


# The eight that the paper compares.
NONE = Format(False, False, False, False, False)
FULL = Format()
NO_INPUT = Format(input=False)
NO_COMPUTATION = Format(computation=False)
NO_OUTPUT = Format(output=False)
NO_VARIABLES = Format(variables=False)
NO_REMAINING = Format(remaining=False)
MINIMAL = Format(input=False, variables=False, remaining=False)

FORMATS = {
    'none': NONE,
    'full': FULL,
    'no_input': NO_INPUT,
    'no_computation': NO_COMPUTATION,
    'no_output': NO_OUTPUT,
    'no_variables': NO_VARIABLES,
    'no_remaining': NO_REMAINING,
    'minimal': MINIMAL,
}


def write(steps: Sequence[SolutionStep], style: Format, target: str) -> str:
    """The target with its scratchpad in front, or alone where `style` has no part."""
    if not style:
        return target
    written = []
    for step in steps:
        text = ''
        for name, mark, close in _PARTS:
            value = getattr(step, name)
            if getattr(style, name) and value is not None:
                text += f'{mark} {value} {close} ' if close else f'{mark} {value} '
        written.append(text)
    return f'{BEGIN} {SEPARATOR.join(written)} {END} {target}'


@dataclasses.dataclass(frozen=True)
class Parsed:
    """A scratchpad as read: of each step the parts that it has, by name, with single blanks.
    problem: why it does not parse, or empty; then there are no steps."""

    steps: tuple[dict[str, str], ...] = ()
    problem: str = ''


def parse(text: str, style: Format, variables: bool) -> Parsed:
    """The scratchpad of a predicted target. variables: whether the task's steps have any."""
    body = ' '.join(text.split())
    if not body.startswith(BEGIN.strip()):
        return Parsed(problem=f'does not begin with {BEGIN.strip()!r}')
    body, end, _ = body.removeprefix(BEGIN.strip()).partition(f' {END.strip()}')
    if not end:
        return Parsed(problem=f'has no {END.strip()!r}')
    parts = [part for part in _PARTS if getattr(style, part[0])]
    if not variables:
        parts = [part for part in parts if part[0] != 'variables']
    steps = []
    for number, step in enumerate(body.split(SEPARATOR.strip()), 1):
        read = _read(step.split(), parts)
        if isinstance(read, str):
            return Parsed(problem=f'step {number}: {read}')
        steps.append(read)
    return Parsed(steps=tuple(steps))


def _read(words: list[str], parts: Sequence[tuple[str, str, str]]) -> dict[str, str] | str:
    """The parts of a step by name, or what is wrong with it."""
    read, at = {}, 0
    for index, (name, mark, close) in enumerate(parts):
        if words[at : at + 1] != [mark]:
            return f'{mark!r} expected before its {name}, not {" ".join(words[at : at + 1])!r}'
        following = close or (parts[index + 1][1] if index + 1 < len(parts) else '')
        begin = at + 1
        if following and following not in words[begin:]:
            return f'no {following!r} behind its {name}'
        end = words.index(following, begin) if following else len(words)
        read[name] = ' '.join(words[begin:end])
        at = end + 1 if close else end
    if at < len(words):
        return f'{" ".join(words[at:])!r} behind its last part'
    return read


@dataclasses.dataclass(frozen=True)
class Checked:
    """Verdict on a predicted scratchpad. right: for every expected step, whether all of its parts
    are right. problems: in words, the parse's first. parsed: whether it parses."""

    right: tuple[bool, ...]
    problems: tuple[str, ...]
    parsed: bool


def check(text: str, steps: Sequence[SolutionStep], style: Format) -> Checked:
    """Each step of a predicted target against the right `steps` of its source.

    As in the released code no step is right where the number of steps is wrong or one does not
    parse.
    """
    parsed = parse(text, style, variables=any(step.variables is not None for step in steps))
    if parsed.problem or len(parsed.steps) != len(steps):
        problem = parsed.problem or f'{len(parsed.steps)} steps instead of {len(steps)}'
        return Checked((False,) * len(steps), (problem,), not parsed.problem)
    right, problems = [], []
    for number, (read, step) in enumerate(zip(parsed.steps, steps, strict=True), 1):
        expected = {name: ' '.join(getattr(step, name).split()) for name in read}
        wrong = [
            f'step {number}: {name} is {read[name]!r} instead of {expected[name]!r}'
            for name in read
            if read[name] != expected[name]
        ]
        right.append(not wrong)
        problems += wrong
    return Checked(tuple(right), tuple(problems), parsed=True)
