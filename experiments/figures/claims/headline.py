"""Numbers that a verdict rests on, in plain words with units, and the line they make."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures.claims.intervals import Interval
from experiments.figures.roles import Undecided

# Digits behind the point, by unit; of other units as many as of ratios.
_DIGITS = {'nats': 3, 'bits': 2, 'L': 2, 'windows': 2, 'points': 1, '%': 1}
_RATIO = 2
# Between which a unit's values lie, so that an interval of their mean ends there.
_ENDS = {'%': (0.0, 100.0)}

Values = float | None | np.ndarray | Interval


@dataclasses.dataclass(frozen=True)
class Number:
    """One measured number. what: in plain words, so that the value and the unit may follow.

    `by_seed` has one value a seed, or a single one, with None for 'not within what was measured'.
    A single one may have the 95 % interval of resamples of its documents or prompts. A number that
    decides alone is held against `limits`. Its values lie between `ends`, and so does the interval
    of their mean. The note is words behind it, which tell no number from another.
    """

    what: str
    unit: str
    by_seed: tuple[float | None, ...]
    limits: tuple[float, ...] = ()
    ends: tuple[float, float] | None = None
    note: str = ''
    resampled: tuple[float, float] | None = None

    @property
    def interval(self) -> Interval | None:
        """Mean and 95 % interval over seeds, of shares within 0 to 100 %, or of one seed by
        resamples; None where a seed has no value."""
        values = [value for value in self.by_seed if value is not None]
        if len(values) != len(self.by_seed):
            return None
        ends = self.ends or _ENDS.get(self.unit, (-np.inf, np.inf))
        found = Interval.of(np.array(values), what=self.what)
        if self.resampled is not None:
            low, high = self.resampled
            found = dataclasses.replace(found, low=low, high=high)
        return found.within(*ends)

    @property
    def bracketed(self) -> bool:
        """Whether there is an interval to be shown."""
        return self.interval is not None and (len(self.by_seed) > 1 or self.resampled is not None)

    @property
    def open(self) -> bool:
        """Whether its interval contains a limit."""
        found = self.interval
        return found is not None and any(found.contains(limit) for limit in self.limits)

    def said(self) -> str:
        """'NoPE - RoPE 0.180 nats', and its interval where there is one."""
        return f'{self._said()} ({self.note})' if self.note else self._said()

    def _said(self) -> str:
        found = self.interval
        if found is None and not any(value is not None for value in self.by_seed):
            return f'{self.what}: none measured'
        over = '' if self.resampled is None else ' by resamples'
        ends = ''
        if found is not None and self.bracketed:
            ends = f' [{self.digits(found.low)}, {self.digits(found.high)}{over}]'
        return f'{self.what} {self.value()}{ends}'

    def value(self) -> str:
        """The mean with its unit; where a seed has no value those of all."""
        found, unit = self.interval, f' {self.unit}' if self.unit else ''
        if found is not None:
            return f'{self.digits(found.mean)}{unit}'
        each = ('none' if value is None else self.digits(value) for value in self.by_seed)
        return f'{", ".join(each)}{unit}'

    def stated(self) -> dict[str, Any]:
        """As it stands in summary.json: mean and interval are None where there is none, ends stand
        there where they are its own, None for none on that side."""
        found = self.interval
        return {
            'what': self.what,
            'unit': self.unit,
            'mean': found.mean if found else None,
            'interval': [found.low, found.high] if found and self.bracketed else None,
            **({'interval_of': 'resamples'} if self.resampled is not None else {}),
            'by_seed': list(self.by_seed),
            **({'ends': [x if math.isfinite(x) else None for x in self.ends]} if self.ends else {}),
            **({'note': self.note} if self.note else {}),
        }

    @classmethod
    def from_stated(cls, stated: Mapping[str, Any]) -> Number:
        """The number that `stated` gave, without its limits."""
        by_seed, note = tuple(stated['by_seed']), stated.get('note', '')
        resampled = tuple(stated['interval']) if stated.get('interval_of') else None
        found = cls(stated['what'], stated['unit'], by_seed, note=note, resampled=resampled)
        if 'ends' not in stated:
            return found
        low, high = stated['ends']
        ends = -math.inf if low is None else low, math.inf if high is None else high
        return dataclasses.replace(found, ends=ends)

    def digits(self, value: float) -> str:
        """A value as people read it."""
        text = f'{value:.{_DIGITS.get(self.unit, _RATIO)}f}'
        return text.removeprefix('-') if float(text) == 0 else text


Numbers = tuple[Number, ...]


def number(
    what: str,
    values: Values,
    unit: str = '',
    limits: tuple[float, ...] = (),
    ends: tuple[float, float] | None = None,
) -> Number:
    """values: of one seed, of all [S], or their interval."""
    if isinstance(values, Interval):
        by_seed: tuple[float | None, ...] = values.by_seed
    elif isinstance(values, np.ndarray):
        by_seed = tuple(values.astype(np.float64).tolist())
    else:
        by_seed = (None if values is None else float(values),)
    return Number(what, unit, by_seed, limits, ends)


def apart(first_S: np.ndarray, second_S: np.ndarray) -> np.ndarray:
    """first less second, by seed; a single one stands beside every seed of the other. Undecided for
    other numbers of seeds."""
    if first_S.shape != second_S.shape and 1 not in (len(first_S), len(second_S)):
        raise Undecided(f'{len(first_S)} seeds stand beside {len(second_S)}')
    return np.asarray(first_S - second_S, np.float64)


def merged(numbers_S: Sequence[Numbers]) -> Numbers:
    """Numbers that were measured for each of S seeds apart, those in the same words as one, with a
    note that all of them have."""
    found: dict[tuple[str, str], list[Number]] = {}
    for numbers in numbers_S:
        for n in numbers:
            found.setdefault((n.what, n.unit), []).append(n)
    return tuple(
        dataclasses.replace(
            some[0],
            by_seed=tuple(v for n in some for v in n.by_seed),
            note=some[0].note if len({n.note for n in some}) == 1 else '',
        )
        for some in found.values()
    )


def line(numbers: Numbers) -> str:
    """The headline; '' of no numbers."""
    return '; '.join(n.said() for n in numbers)
