"""Claims about perplexity in sliding windows of growing length, and the roles of its rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from experiments.figures.claims.catalogue import CLAIMS
from experiments.figures.claims.decide import Every, Measured, Rule
from experiments.figures.claims.headline import apart, number
from experiments.figures.claims.intervals import Interval, stated
from experiments.figures.claims.verdict import ABOVE, BELOW, NEAR, RULE, Bound, every
from experiments.figures.read.tables.perplexity_rows import PerplexityRow
from experiments.figures.roles import Roles, Shape, Undecided

BASE, ROPE, NTK, YARN = 'base', 'rope', 'ntk', 'yarn'
UNIFORM, HEADSCALE = 'uniform', 'headscale'
ROLES: Mapping[str, Shape] = {
    BASE: Shape.ONE,
    ROPE: Shape.ONE,
    NTK: Shape.ONE,
    YARN: Shape.ONE,
    UNIFORM: Shape.BY_MULTIPLE,  # of the length that the multiplier is for
    HEADSCALE: Shape.BY_MULTIPLE,  # of the length of its search
}


@dataclasses.dataclass(frozen=True)
class ShownPerplexity:
    """Rows of a table. A row with choices plays its role with the best of each window, as in the
    paper. Corpora and windows (multiples of L, ascending) are those that were measured."""

    roles: Roles[PerplexityRow]
    corpora: Sequence[str]
    windows: Sequence[float]

    def less(
        self, row: PerplexityRow, other: PerplexityRow, window: float, name: str = ''
    ) -> Losses:
        """Loss of `row` less that of `other`, by corpus, [S] nats. name: before the corpus."""
        if not self.corpora:
            raise Undecided('no corpus was measured')
        return {
            ', '.join(filter(None, (name, c))): apart(
                row.losses(c, window), other.losses(c, window)
            )
            for c in self.corpora
        }

    def longest(self) -> tuple[float, PerplexityRow]:
        """HeadScale with the longest length of its search, in multiples of L."""
        return max(self.roles.by_multiple(HEADSCALE).items())

    def target(self, multiple: float) -> float | None:
        """The longest windows within the length of a search, and longer than half of it: the
        paper's multipliers of 18K are tested at 16K."""
        near = [window for window in self.windows if multiple / 2 < window <= multiple]
        return near[-1] if near else None


Losses = dict[str, np.ndarray]


def _parity(shown: ShownPerplexity) -> Losses:
    return shown.less(shown.roles[BASE], shown.roles[ROPE], 1)


def _uniform_hurts(shown: ShownPerplexity) -> Losses:
    base, uniform = shown.roles[BASE], shown.roles.by_multiple(UNIFORM)
    return shown.less(uniform[max(uniform)], base, 1)


def _less_uniform(inside: bool) -> Callable[[ShownPerplexity], Losses]:
    """Every search of HeadScale less the uniform multiplier for the longest windows within its
    length: in windows of L, or in those."""

    def find(shown: ShownPerplexity) -> Losses:
        found: Losses = {}
        uniform = shown.roles.by_multiple(UNIFORM)
        for multiple, row in shown.roles.by_multiple(HEADSCALE).items():
            window = shown.target(multiple)
            if window is not None and window in uniform:
                name = f'searched at {multiple:g} L{"" if inside else f", at {window:g} L"}'
                found |= shown.less(row, uniform[window], 1 if inside else window, name)
        return found

    return find


def _past_searched(shown: ShownPerplexity) -> Losses:
    return {
        f'searched at {multiple:g} L, {c}': apart(
            row.losses(c, 2 * multiple), row.losses(c, multiple)
        )
        for multiple, row in shown.roles.by_multiple(HEADSCALE).items()
        if {multiple, 2 * multiple} <= set(shown.windows)
        for c in shown.corpora
    }


def _ahead(role: str, side: str, name: str) -> Every[ShownPerplexity]:
    """HeadScale, searched at its longest length, less a method in the longest windows within it."""

    def find(shown: ShownPerplexity) -> Losses:
        multiple, heads = shown.longest()
        window = shown.target(multiple)
        if window is None:
            raise Undecided(f'no window is near {multiple:g} L, where {heads.name!r} was searched')
        return shown.less(heads, shown.roles[role], window, f'{name} at {window:g} L')

    return Every(find, Bound(side, 0, 'nats'), '', name=name, each=True)


def _ntk_by_window(shown: ShownPerplexity) -> Measured:
    limits = CLAIMS['ntk_by_window'].thresholds
    (_, heads), ntk = shown.longest(), shown.roles[NTK]
    near, far = (
        [w for w in shown.windows if w <= limits['up_to']],
        [w for w in shown.windows if w >= limits['from']],
    )
    if not near or not far:
        said = (limits['up_to'], limits['from'])
        raise Undecided('windows up to {:g} L and from {:g} L on are compared'.format(*said))
    found = {
        w: {c: Interval.of(less, what=c) for c, less in shown.less(heads, ntk, w).items()}
        for w in shown.windows
    }
    sides = {w: Bound(BELOW if w in far else ABOVE, 0, limits['nats']) for w in (*near, *far)}
    holds = every(sides[w].holds(less) for w in sides for less in found[w].values())
    numbers = tuple(
        number(f'HeadScale - NTK at {w:g} L, {c}', less, 'nats')
        for w in (far[-1], near[0])
        for c, less in found[w].items()
    )
    measured = {f'{w:g} L': stated(less) for w, less in found.items()}
    return {'headscale_minus_ntk_nats': measured, 'headscale': heads.name}, holds, numbers


_PAIR = 'HeadScale less the uniform multiplier for the longest windows within the length of its '
LIMITS = CLAIMS['ntk_by_window'].thresholds
RULES: tuple[Rule[ShownPerplexity], ...] = (
    Rule(
        'parity',
        'Loss of NoPE less that of RoPE in windows of L, on every corpus',
        Every(_parity, Bound(NEAR, 'nats'), 'NoPE - RoPE at L', each=True),
        (BASE, ROPE),
    ),
    Rule(
        'uniform_hurts',
        'Loss in windows of L with the uniform multiplier for the longest length less that without '
        'one, on every corpus',
        Every(_uniform_hurts, Bound(ABOVE, 'nats'), 'largest multiplier - none at L', each=True),
        (BASE, UNIFORM),
    ),
    Rule(
        'headscale_beats_uniform',
        f'{_PAIR}search, loss in these windows, for every such pair on every corpus',
        Every(_less_uniform(inside=False), Bound(BELOW, 0, 'nats'), 'highest HeadScale - uniform'),
        (HEADSCALE, UNIFORM),
    ),
    Rule(
        'headscale_hurts',
        'Loss in windows of L with HeadScale, searched at its longest length, less that without, '
        'on every corpus',
        Every(
            lambda shown: shown.less(shown.longest()[1], shown.roles[BASE], 1),
            Bound(ABOVE, 0, 'nats'),
            'smallest HeadScale - base at L',
        ),
        (HEADSCALE, BASE),
    ),
    Rule(
        'fails_past_searched',
        'Loss in windows of twice the length of the search less that at the length of the search, '
        'wherever both were measured',
        Every(_past_searched, Bound(ABOVE, 'nats'), 'smallest rise to twice the length'),
        (HEADSCALE,),
    ),
    Rule(
        'between_ntk_and_yarn',
        'Loss of HeadScale, searched at its longest length, less that of NTK and of YaRN, each '
        'with its best factor, in the longest windows within that length, on every corpus',
        (_ahead(NTK, BELOW, 'HeadScale - NTK'), _ahead(YARN, ABOVE, 'HeadScale - YaRN')),
        (HEADSCALE, NTK, YARN),
    ),
    Rule(
        'ntk_by_window',
        'HeadScale, searched at its longest length, has a loss below that of NTK with the best '
        f'factor for each window from {LIMITS["from"]:g} L on, and above it up to '
        f'{LIMITS["up_to"]:g} L, on every corpus; a difference of at most {LIMITS["nats"]} nats '
        f'decides nothing, and {RULE}.',
        _ntk_by_window,
        (HEADSCALE, NTK),
    ),
    Rule(
        'headscale_hurts_less',
        f'{_PAIR}search, loss in windows of L, for every such pair on every corpus',
        Every(
            _less_uniform(inside=True), Bound(BELOW, 0, 'nats'), 'highest HeadScale - uniform at L'
        ),
        (HEADSCALE, UNIFORM),
    ),
)
