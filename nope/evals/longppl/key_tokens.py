"""Key tokens of a text: those that a model predicts well with all of it, and badly with a part."""

from __future__ import annotations

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class Rule:
    """What makes a token a key token (arXiv 2410.23771, equation 7).

    Its loss after a short context is more than `gain` nats above its loss after all tokens before
    it, and the latter is below `ceiling` nats. Short contexts begin every `stride` tokens and have
    `short` tokens or, for tokens later in the stride, up to stride - 1 more.

    ValueError for values that are not positive.
    """

    short: int = 4096
    stride: int = 1024
    gain: float = 2.0
    ceiling: float = 2.0

    def __post_init__(self) -> None:
        for name, value in dataclasses.asdict(self).items():
            if not value > 0:
                raise ValueError(f'{name} is {value}; it must be above 0')


def short_windows(tokens: int, rule: Rule) -> np.ndarray:
    """Windows of a text of `tokens` tokens, int64 [windows, 3]: begin, first scored, end.

    A window holds tokens begin .. end - 1; those from begin + short on are scored, `stride` of
    them or, in the last window, what is left. So each token from `short` on is scored once; a text
    of `short` tokens or fewer has no window.
    """
    begins = np.arange(0, max(tokens - rule.short, 0), rule.stride)
    firsts = begins + rule.short
    return np.stack([begins, firsts, np.minimum(firsts + rule.stride, tokens)], axis=1)


def select(full_T: np.ndarray, short_T: np.ndarray, rule: Rule) -> np.ndarray:
    """Mask of the key tokens, bool [T]. full_T, short_T: losses after the full and the short
    context, nats. NaN, for none, is never key."""
    return (short_T - full_T > rule.gain) & (full_T < rule.ceiling)


def merged(spans: np.ndarray) -> np.ndarray:
    """Intervals of characters, int64 [intervals, 2]: spans [n, 2] in the order of the text, those
    that touch or overlap made one."""
    found: list[list[int]] = []
    for begin, end in spans.tolist():
        if found and begin <= found[-1][1]:
            found[-1][1] = max(found[-1][1], end)
        else:
            found.append([begin, end])
    return np.asarray(found, np.int64).reshape(-1, 2)


def carried_over(spans: np.ndarray, intervals: np.ndarray) -> np.ndarray:
    """Mask of the tokens whose characters lie in one of the intervals, all of them, bool [n].

    spans: int64 [n, 2], of another tokenizer's tokens. intervals: as `merged` has them. A token
    without characters is never key.
    """
    begins, ends = spans[:, 0], spans[:, 1]
    if not len(intervals):
        return np.zeros(len(spans), bool)
    at = np.searchsorted(intervals[:, 0], begins, side='right') - 1
    inside = (at >= 0) & (ends <= intervals[np.maximum(at, 0), 1])
    return inside & (begins < ends)
