"""Claims about attention patterns of encodings, decided by their distances from NoPE's."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from experiments.figures.claims.decide import Every, Rule
from experiments.figures.claims.verdict import ABOVE, BELOW, Bound
from experiments.figures.read.pattern_distances import Distances
from experiments.figures.roles import Undecided

NEAR, FAR = ('T5', 'ALiBi'), ('RoPE', 'APE')
PAIRED = 3  # seeds from which pairs of a seed and the next one are different pairs


@dataclasses.dataclass(frozen=True)
class ShownPatterns:
    """Attention distances of every encoding from NoPE that a figure shows, by what is read."""

    distances: Mapping[str, Sequence[Distances]]

    def by_seed(self, paper: str) -> np.ndarray:
        """[S] means over inputs, lengths and layers. Undecided where there is no such encoding."""
        found = [d.mean for some in self.distances.values() for d in some if d.paper == paper]
        if not found:
            raise Undecided(f'no curve is of the encoding {paper!r}')
        return np.mean(found, axis=0)

    def ratio(self, paper: str, over: str) -> np.ndarray:
        """Distance of one encoding over that of another, of every seed. Undecided where there is no
        such encoding, or no distance to divide by."""
        above, below = self.by_seed(paper), self.by_seed(over)
        if not np.all(below > 0):
            raise Undecided(f'{over} is at a distance of 0')
        return above / below

    def has(self, paper: str) -> bool:
        return any(d.paper == paper for some in self.distances.values() for d in some)


def _nearest(shown: ShownPatterns) -> list[tuple[str, str]]:
    others = [name for name in ('ALiBi', *FAR) if shown.has(name)]
    shown.by_seed('T5')
    if len(others) < 2:
        raise Undecided('fewer than two of ALiBi, RoPE and APE were measured')
    return [(name, 'T5') for name in others]


def _farthest(shown: ShownPatterns) -> list[tuple[str, str]]:
    del shown
    return [(far, near) for far in FAR for near in NEAR]


def _as_another_seed(shown: ShownPatterns) -> dict[str, np.ndarray]:
    ratio = shown.ratio('T5', 'NoPE')
    if len(ratio) < PAIRED:
        raise Undecided(f'fewer than {PAIRED} seeds: two have one distance between them')
    return {"T5 / another seed's NoPE": ratio}


def _ratios(pairs: Callable[[ShownPatterns], list[tuple[str, str]]]) -> Every[ShownPatterns]:
    """Distances of the first encodings over those of the second."""
    return Every(
        lambda shown: {f'{far} / {near}': shown.ratio(far, near) for far, near in pairs(shown)},
        Bound(ABOVE, 1, 'ratio'),
        'least ratio of distances',
        '',
        several=True,
    )


_DISTANCES = (
    'Distances from NoPE, of each layer the least over pairs of heads, averaged over layers, '
    'lengths and what the figure reads: '
)

RULES: tuple[Rule[ShownPatterns], ...] = (
    Rule(
        'nope_attends_like_t5',
        f"{_DISTANCES}that of each of ALiBi, RoPE and APE that is shown, two at least, over T5's",
        _ratios(_nearest),
        ('T5', 'ALiBi', *FAR),
    ),
    Rule(
        'nope_attends_unlike_rope',
        f'{_DISTANCES}those of RoPE and APE over those of T5 and ALiBi',
        _ratios(_farthest),
        (*NEAR, *FAR),
    ),
    Rule(
        't5_is_as_near_as_another_seed',
        f"{_DISTANCES}T5's over that of NoPE trained with the next of at least {PAIRED} seeds; "
        'pairs share models, which the interval does not count',
        Every(_as_another_seed, Bound(BELOW, 'ratio'), 'distance', '', several=True),
        ('T5', 'NoPE'),
    ),
)
