"""Claims about perplexity in sliding windows of growing length, and the roles of its rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from experiments.figures.claims import intervals
from experiments.figures.claims.catalogue import (
    BETWEEN_NTK_AND_YARN,
    FAILS_PAST_SEARCHED,
    HEADSCALE_BEATS_UNIFORM,
    HEADSCALE_HURTS_LESS,
    LEVEL,
    NTK_BY_WINDOW,
    PARITY,
    UNIFORM_HURTS,
)
from experiments.figures.claims.decide import Measured, Rule
from experiments.figures.claims.headline import Numbers, apart, number
from experiments.figures.claims.intervals import Interval
from experiments.figures.claims.listed import Listed
from experiments.figures.claims.margins import every_above, every_below
from experiments.figures.read.tables.perplexity_rows import PerplexityRow
from experiments.figures.roles import Roles, Shape, Undecided

BASE, ROTARY, NTK, YARN = 'base', 'rotary', 'ntk', 'yarn'
UNIFORM, HEADSCALE = 'uniform', 'headscale'
ROLES: Mapping[str, Shape] = {
    BASE: Shape.ONE,
    ROTARY: Shape.ONE,
    NTK: Shape.ONE,
    YARN: Shape.ONE,
    UNIFORM: Shape.BY_MULTIPLE,  # of the length that the multiplier is for
    HEADSCALE: Shape.BY_MULTIPLE,  # of the length of its search
}


@dataclasses.dataclass(frozen=True)
class Shown:
    """Rows of a table: roles, of which one with choices is that with the best of each window,
    which is what the paper reports; one_factor, by label, the rows with one choice for all;
    corpora and windows (multiples of L, ascending) that were measured."""

    roles: Roles[PerplexityRow]
    one_factor: Mapping[str, PerplexityRow]
    corpora: Sequence[str]
    windows: Sequence[float]

    def less(self, row: PerplexityRow, other: PerplexityRow, window: float) -> dict[str, Interval]:
        """Loss of `row` less that of `other`, by corpus, nats."""
        return {
            c: Interval.of(apart(row.losses(c, window), other.losses(c, window)))
            for c in self.measured()
        }

    def apart(self, what: str, row: PerplexityRow, other: PerplexityRow, window: float) -> Numbers:
        """`less` in words."""
        found = self.less(row, other, window)
        return tuple(number(f'{what}, {c}', less, 'nats') for c, less in found.items())

    def measured(self) -> Sequence[str]:
        if not self.corpora:
            raise Undecided('no corpus was measured')
        return self.corpora

    def longest(self) -> tuple[float, PerplexityRow]:
        """HeadScale with the longest length of its search, in multiples of L."""
        return max(self.roles.by_multiple(HEADSCALE).items())

    def target(self, multiple: float) -> float | None:
        """The longest windows within the length of a search, and longer than half of it: the
        paper's multipliers of 18K are tested at 16K."""
        near = [window for window in self.windows if multiple / 2 < window <= multiple]
        return near[-1] if near else None


def _parity(shown: Shown) -> Measured:
    differences = shown.less(shown.roles[BASE], shown.roles[ROTARY], 1)
    limit = PARITY.thresholds['nats']
    holds = intervals.every(d.near(0, limit) for d in differences.values())
    numbers = shown.apart('NoPE - RoPE at L', shown.roles[BASE], shown.roles[ROTARY], 1)
    return {'nope_minus_rope_nats': intervals.stated(differences)}, holds, numbers


def _uniform_hurts(shown: Shown) -> Measured:
    base, uniform = shown.roles[BASE], shown.roles.by_multiple(UNIFORM)
    changes = {row.name: shown.less(row, base, 1) for row in uniform.values()}
    largest = changes[uniform[max(uniform)].name]
    limit = UNIFORM_HURTS.thresholds['nats']
    holds = intervals.every(change.above(limit) for change in largest.values())
    numbers = shown.apart('largest multiplier - none at L', uniform[max(uniform)], base, 1)
    stated = {name: intervals.stated(found) for name, found in changes.items()}
    return {'change_at_L_nats': stated}, holds, numbers


def _beats_uniform(shown: Shown) -> Measured:
    differences = {
        f'searched at {multiple:g} L, at {window:g} L, {c}': less
        for multiple, row, window, rival in _pairs(shown)
        for c, less in shown.less(row, rival, window).items()
    }
    return _all_below(differences, 'highest HeadScale - uniform', HEADSCALE_BEATS_UNIFORM)


def _hurts_less(shown: Shown) -> Measured:
    differences = {
        f'searched at {multiple:g} L, {c}': less
        for multiple, row, _, rival in _pairs(shown)
        for c, less in shown.less(row, rival, 1).items()
    }
    return _all_below(differences, 'highest HeadScale - uniform at L', HEADSCALE_HURTS_LESS)


def _pairs(shown: Shown) -> list[tuple[float, PerplexityRow, float, PerplexityRow]]:
    """Every search of HeadScale (multiple of L, row) with the uniform multiplier for the longest
    windows within its length (multiple of L, row). Undecided without one."""
    uniform = shown.roles.by_multiple(UNIFORM)
    found = [
        (multiple, row, window, uniform[window])
        for multiple, row in shown.roles.by_multiple(HEADSCALE).items()
        if (window := shown.target(multiple)) in uniform and window is not None
    ]
    if not found:
        raise Undecided('no uniform multiplier is for the window of a search of HeadScale')
    return found


def _all_below(differences: Mapping[str, Interval], what: str, claim: Listed) -> Measured:
    margin = claim.thresholds['nats']
    return every_below('headscale_minus_uniform_nats', what, differences, 0, margin)


def _fails_past_searched(shown: Shown) -> Measured:
    rises = {
        f'searched at {multiple:g} L, {c}': Interval.of(
            apart(row.losses(c, 2 * multiple), row.losses(c, multiple))
        )
        for multiple, row in shown.roles.by_multiple(HEADSCALE).items()
        if {multiple, 2 * multiple} <= set(shown.windows)
        for c in shown.measured()
    }
    if not rises:
        raise Undecided('no search of HeadScale has windows of its length and of twice that')
    limit = FAILS_PAST_SEARCHED.thresholds['nats']
    return every_above(
        'rise_from_tuned_to_twice_nats', 'smallest rise to twice the length', rises, limit
    )


def _between(shown: Shown) -> Measured:
    roles, (multiple, heads) = shown.roles, shown.longest()
    window = shown.target(multiple)
    if window is None:
        raise Undecided(f'no window is near {multiple:g} L, where {heads.name!r} was searched')
    ntk, yarn = (shown.less(heads, roles[role], window) for role in (NTK, YARN))
    measured = {
        'window_over_L': window,
        'headscale_minus_ntk_nats': intervals.stated(ntk),
        'headscale_minus_yarn_nats': intervals.stated(yarn),
        'headscale': heads.name,
        'with_one_factor_nats': {
            role: intervals.stated(shown.less(heads, shown.one_factor[roles[role].name], window))
            for role in (NTK, YARN)
            if roles[role].name in shown.one_factor
        },
    }
    margin = BETWEEN_NTK_AND_YARN.thresholds['nats']
    below = [difference.below(0, margin) for difference in ntk.values()]
    above = [difference.above(0, margin) for difference in yarn.values()]
    numbers = tuple(
        n
        for role, name in ((NTK, 'NTK'), (YARN, 'YaRN'))
        for n in shown.apart(f'HeadScale - {name} at {window:g} L', heads, roles[role], window)
    )
    return measured, intervals.every(below + above), numbers


def _ntk_by_window(shown: Shown) -> Measured:
    first, last = NTK_BY_WINDOW.thresholds['from'], NTK_BY_WINDOW.thresholds['up_to']
    (_, heads), ntk = shown.longest(), shown.roles[NTK]
    tested = [w for w in shown.windows if w >= first or w <= last]
    if not any(w >= first for w in tested) or not any(w <= last for w in tested):
        raise Undecided(f'windows up to {last:g} L and from {first:g} L on are compared')
    differences = {f'{w:g} L': shown.less(heads, ntk, w) for w in shown.windows}
    margin = NTK_BY_WINDOW.thresholds['nats']
    holds = intervals.every(
        less.below(0, margin) if w >= first else less.above(0, margin)
        for w in tested
        for less in differences[f'{w:g} L'].values()
    )
    stated = {window: intervals.stated(found) for window, found in differences.items()}
    measured = {'headscale_minus_ntk_nats': stated, 'headscale': heads.name}
    ends = (tested[0], tested[-1])
    named = ((f'HeadScale - NTK at {w:g} L', heads, ntk, w) for w in ends)
    return measured, holds, tuple(n for given in named for n in shown.apart(*given))


_WITHIN = f'a difference of at most {LEVEL["nats"]} nats decides nothing, and {intervals.RULE}'
RULES: tuple[Rule[Shown], ...] = (
    Rule(
        PARITY,
        'The losses of NoPE and RoPE in windows of L differ by at most '
        f'{PARITY.thresholds["nats"]} nats on every corpus; {intervals.RULE}.',
        _parity,
    ),
    Rule(
        UNIFORM_HURTS,
        'The uniform multiplier for the longest length raises the loss in windows of L by more '
        f'than {UNIFORM_HURTS.thresholds["nats"]} nats on every corpus; {intervals.RULE}.',
        _uniform_hurts,
    ),
    Rule(
        HEADSCALE_BEATS_UNIFORM,
        'In the longest windows within the length of its search HeadScale has a lower loss than '
        'the uniform multiplier for windows of that length, for every such pair on every corpus; '
        f'{_WITHIN}.',
        _beats_uniform,
    ),
    Rule(
        FAILS_PAST_SEARCHED,
        'The loss in windows of twice the length of the search exceeds that at the length of the '
        f'search by more than {FAILS_PAST_SEARCHED.thresholds["nats"]} nats, wherever both were '
        f'measured; {intervals.RULE}.',
        _fails_past_searched,
    ),
    Rule(
        BETWEEN_NTK_AND_YARN,
        'HeadScale, searched at its longest length, has in the longest windows within it a loss '
        'below that of NTK and above that of YaRN on every corpus; both with the best factor for '
        f'each window; {_WITHIN}.',
        _between,
    ),
    Rule(
        NTK_BY_WINDOW,
        'HeadScale, searched at its longest length, has a loss below that of NTK with the best '
        f'factor for each window from {NTK_BY_WINDOW.thresholds["from"]:g} L on, and above it up '
        f'to {NTK_BY_WINDOW.thresholds["up_to"]:g} L, on every corpus; {_WITHIN}.',
        _ntk_by_window,
    ),
    Rule(
        HEADSCALE_HURTS_LESS,
        'In windows of L HeadScale has a lower loss than the uniform multiplier for the longest '
        f'windows within the length of its search, for every such pair on every corpus; {_WITHIN}.',
        _hurts_less,
    ),
)
