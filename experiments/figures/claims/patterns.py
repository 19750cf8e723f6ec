"""Claims about attention patterns of encodings, decided by their distances from NoPE's."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from experiments.figures.claims import headline
from experiments.figures.claims.decide import Measured, Rule
from experiments.figures.claims.intervals import OVER_SEEDS, Interval, stated
from experiments.figures.claims.margins import all_decide
from experiments.figures.claims.second_paper import (
    ATTENDS_LIKE_T5,
    ATTENDS_UNLIKE_ROTARY,
    T5_AS_ANOTHER_SEED,
)
from experiments.figures.read.pattern_distances import Distances
from experiments.figures.roles import Undecided

NEAR, FAR = ('T5', 'ALiBi'), ('Rotary', 'APE')
PAIRED = 3  # seeds from which pairs of a seed and the next one are different pairs


@dataclasses.dataclass(frozen=True)
class Shown:
    """Attention distances of every encoding from NoPE that a figure shows, by what is read."""

    distances: Mapping[str, Sequence[Distances]]

    def by_seed(self, paper: str) -> np.ndarray:
        """[S] means over inputs, lengths and layers. Undecided where there is no such encoding."""
        found = [d.mean for some in self.distances.values() for d in some if d.paper == paper]
        if not found:
            raise Undecided(f'no curve is of the encoding {paper!r}')
        return np.mean(found, axis=0)

    def ratio(self, paper: str, over: str) -> Interval:
        """Distance of one encoding over that of another, of every seed. Undecided where there is no
        such encoding, or no distance to divide by."""
        above, below = self.by_seed(paper), self.by_seed(over)
        if not np.all(below > 0):
            raise Undecided(f'{over} is at a distance of 0')
        return Interval.over_seeds(above / below)

    def has(self, paper: str) -> bool:
        return any(d.paper == paper for some in self.distances.values() for d in some)


def _nearest(shown: Shown) -> Measured:
    others = [name for name in ('ALiBi', *FAR) if shown.has(name)]
    shown.by_seed('T5')
    if len(others) < 2:
        raise Undecided('fewer than two of ALiBi, Rotary and APE were measured')
    return _all_above(shown, [(name, 'T5') for name in others], ATTENDS_LIKE_T5.thresholds['ratio'])


def _farthest(shown: Shown) -> Measured:
    pairs = [(far, near) for far in FAR for near in NEAR]
    return _all_above(shown, pairs, ATTENDS_UNLIKE_ROTARY.thresholds['ratio'])


def _as_another_seed(shown: Shown) -> Measured:
    ratio = shown.ratio('T5', 'NoPE')
    if len(ratio.by_seed) < PAIRED:
        raise Undecided(f'fewer than {PAIRED} seeds: two have one distance between them')
    decided = ratio.below(T5_AS_ANOTHER_SEED.thresholds['ratio'])
    name = "T5 / another seed's NoPE"
    return stated({name: ratio}), decided, (headline.number(f'distance, {name}', ratio),)


def _all_above(shown: Shown, pairs: Sequence[tuple[str, str]], margin: float) -> Measured:
    """Whether the first distance of each pair is above the second."""
    ratios = {f'{far} / {near}': shown.ratio(far, near) for far, near in pairs}
    decided, numbers = all_decide(
        'least ratio of distances', ratios, '', lambda ratio: ratio.above(1, margin), highest=False
    )
    return stated(ratios), decided, numbers


_DISTANCES = (
    'Distances from NoPE, of each layer the least over pairs of heads, averaged over layers, '
    'lengths and what the figure reads: '
)
_LIMIT = (
    f'; a ratio within {ATTENDS_LIKE_T5.thresholds["ratio"]} of 1 decides nothing, and '
    f'{OVER_SEEDS}.'
)

RULES: tuple[Rule[Shown], ...] = (
    Rule(
        ATTENDS_LIKE_T5,
        f"{_DISTANCES}T5's is below that of each of ALiBi, Rotary and APE that is shown, two at "
        f'least{_LIMIT}',
        _nearest,
    ),
    Rule(
        ATTENDS_UNLIKE_ROTARY,
        f'{_DISTANCES}those of Rotary and APE are above those of T5 and ALiBi{_LIMIT}',
        _farthest,
    ),
    Rule(
        T5_AS_ANOTHER_SEED,
        f"{_DISTANCES}T5's is less than {T5_AS_ANOTHER_SEED.thresholds['ratio']} times that of "
        f'NoPE trained with the next of at least {PAIRED} seeds; pairs share models, which the '
        f'interval does not count, and {OVER_SEEDS}.',
        _as_another_seed,
    ),
)
