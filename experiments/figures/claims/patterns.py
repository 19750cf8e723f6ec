"""Claims about attention patterns of encodings, decided by their distances from NoPE's."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from experiments.figures.claims import headline
from experiments.figures.claims.decide import Measured, Rule
from experiments.figures.claims.intervals import RULE, Interval, every, stated
from experiments.figures.claims.second_paper import (
    ATTENDS_LIKE_T5,
    ATTENDS_UNLIKE_ROTARY,
    T5_AS_ANOTHER_SEED,
)
from experiments.figures.pattern_distances import Distances
from experiments.figures.roles import Undecided

NEAR, FAR = ('T5', 'ALiBi'), ('Rotary', 'APE')


@dataclasses.dataclass(frozen=True)
class Shown:
    """What a figure shows: what is read -> distances of every encoding from NoPE."""

    distances: Mapping[str, Sequence[Distances]]

    def by_seed(self, paper: str) -> np.ndarray:
        """[S] means over inputs, lengths and layers. Undecided where there is no such encoding."""
        found = [d.mean for some in self.distances.values() for d in some if d.paper == paper]
        if not found:
            raise Undecided(f'no curve is of the encoding {paper!r}')
        return np.mean(found, axis=0)

    def has(self, paper: str) -> bool:
        return any(d.paper == paper for some in self.distances.values() for d in some)


def _nearest(shown: Shown) -> Measured:
    nearest = shown.by_seed('T5')
    others = [name for name in ('ALiBi', *FAR) if shown.has(name)]
    if len(others) < 2:
        raise Undecided('fewer than two of ALiBi, Rotary and APE were measured')
    margins = {f'{x} - T5': Interval.of(shown.by_seed(x) - nearest) for x in others}
    return _all_above(margins, ATTENDS_LIKE_T5.thresholds['distance'])


def _farthest(shown: Shown) -> Measured:
    margins = {
        f'{far} - {near}': Interval.of(shown.by_seed(far) - shown.by_seed(near))
        for far in FAR
        for near in NEAR
    }
    return _all_above(margins, ATTENDS_UNLIKE_ROTARY.thresholds['distance'])


def _as_another_seed(shown: Shown) -> Measured:
    more = Interval.of(shown.by_seed('T5') - shown.by_seed('NoPE'))
    decided = more.below(T5_AS_ANOTHER_SEED.thresholds['distance'])
    name = "T5 - another seed's NoPE"
    return stated({name: more}), decided, (headline.number(name, more, 'nats'),)


def _all_above(margins: Mapping[str, Interval], margin: float) -> Measured:
    decided = every(interval.above(0, margin) for interval in margins.values())
    numbers = headline.decisive('least margin of distance', margins, 'nats', highest=False)
    return stated(margins), decided, numbers


_DISTANCES = (
    'Distances from NoPE, of each layer the least over pairs of heads, averaged over layers, '
    'lengths and what the figure reads: '
)
_LIMIT = (
    f'; a difference of at most {ATTENDS_LIKE_T5.thresholds["distance"]} nats decides nothing, and '
    f'{RULE}.'
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
        f"{_DISTANCES}T5's is less than {T5_AS_ANOTHER_SEED.thresholds['distance']} nats above "
        f'that of NoPE trained with another seed; {RULE}.',
        _as_another_seed,
    ),
)
