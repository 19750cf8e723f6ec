"""Shares of the answers that a prediction contains, case ignored."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

_CONTROL = re.compile(r'[\x00-\x1f]')

Metric = Callable[[str, Sequence[str]], float]


def cleaned(prediction: str) -> str:
    """A prediction as it is scored: control characters are line ends, and none are at its ends."""
    return _CONTROL.sub('\n', prediction.strip()).strip()


def match_all(prediction: str, answers: Sequence[str]) -> float:
    """Share of the answers in the prediction, 0 .. 1 (`string_match_all`)."""
    return sum(_has(prediction, answers)) / len(answers)


def match_part(prediction: str, answers: Sequence[str]) -> float:
    """1.0 where one of the answers is in the prediction, else 0.0 (`string_match_part`)."""
    return float(any(_has(prediction, answers)))


def mean(scores: Sequence[float]) -> float:
    """Score of a task, 0 .. 100 with two decimals."""
    return round(100 * sum(scores) / len(scores), 2)


def _has(prediction: str, answers: Sequence[str]) -> list[bool]:
    return [answer.lower() in prediction.lower() for answer in answers]


METRICS: Mapping[str, Metric] = {'all': match_all, 'part': match_part}
