"""Claims about perplexity in sliding windows of growing length, and the roles of its rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.figures.claims import intervals
from experiments.figures.claims.catalogue import (
    BETWEEN_NTK_AND_YARN,
    FAILS_PAST_SEARCHED,
    HEADSCALE_BEATS_UNIFORM,
    LEVEL,
    NTK_BY_WINDOW,
    PARITY,
    UNIFORM_HURTS,
)
from experiments.figures.claims.decide import Measured, Rule
from experiments.figures.claims.headline import Numbers, Values, apart, decisive, number
from experiments.figures.roles import Roles, Shape, Undecided
from experiments.figures.tables.perplexity_rows import PerplexityRow

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

    def less(self, row: PerplexityRow, other: PerplexityRow, window: float) -> dict[str, float]:
        """Loss of `row` less that of `other`, by corpus, nats."""
        return {c: row.loss(c, window) - other.loss(c, window) for c in self.measured()}

    def apart(self, what: str, row: PerplexityRow, other: PerplexityRow, window: float) -> Numbers:
        """`less` in words, of every seed."""
        return tuple(
            number(f'{what}, {c}', apart(row.losses(c, window), other.losses(c, window)), 'nats')
            for c in self.measured()
        )

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
    holds = all(abs(d) <= PARITY.thresholds['nats'] for d in differences.values())
    numbers = shown.apart('NoPE - RoPE at L', shown.roles[BASE], shown.roles[ROTARY], 1)
    return {'nope_minus_rope_nats': differences}, holds, numbers


def _uniform_hurts(shown: Shown) -> Measured:
    base, uniform = shown.roles[BASE], shown.roles.by_multiple(UNIFORM)
    changes = {row.name: shown.less(row, base, 1) for row in uniform.values()}
    largest = changes[uniform[max(uniform)].name]
    holds = all(change > UNIFORM_HURTS.thresholds['nats'] for change in largest.values())
    numbers = shown.apart('largest multiplier - none at L', uniform[max(uniform)], base, 1)
    return {'change_at_L_nats': changes}, holds, numbers


def _beats_uniform(shown: Shown) -> Measured:
    uniform = shown.roles.by_multiple(UNIFORM)
    measured: dict[str, Any] = {}
    found: dict[str, Values] = {}
    for multiple, row in shown.roles.by_multiple(HEADSCALE).items():
        window = shown.target(multiple)
        if window in uniform:
            rival = uniform[window]
            measured[row.name] = {
                'uniform': rival.name,
                'at_L': shown.less(row, rival, 1),
                f'at_{window:g}_L': shown.less(row, rival, window),
            }
            found |= {
                f'searched at {multiple:g} L, at {place:g} L, {c}': apart(
                    row.losses(c, place), rival.losses(c, place)
                )
                for place in (1.0, window)
                for c in shown.measured()
            }
    if not measured:
        raise Undecided('no uniform multiplier is for the window of a search of HeadScale')
    places = [p for pair in measured.values() for p in pair.values() if not isinstance(p, str)]
    margin = HEADSCALE_BEATS_UNIFORM.thresholds['nats']
    holds = intervals.every(
        intervals.below(difference, 0, margin) for place in places for difference in place.values()
    )
    numbers = decisive('highest HeadScale - uniform', found, 'nats', highest=True)
    return {'headscale_minus_uniform_nats': measured}, holds, numbers


def _fails_past_searched(shown: Shown) -> Measured:
    rises = {
        row.name: {
            corpus: row.loss(corpus, 2 * multiple) - row.loss(corpus, multiple)
            for corpus in shown.measured()
        }
        for multiple, row in shown.roles.by_multiple(HEADSCALE).items()
        if {multiple, 2 * multiple} <= set(shown.windows)
    }
    if not rises:
        raise Undecided('no search of HeadScale has windows of its length and of twice that')
    limit = FAILS_PAST_SEARCHED.thresholds['nats']
    holds = all(rise > limit for found in rises.values() for rise in found.values())
    each = {
        f'searched at {multiple:g} L, {c}': apart(
            row.losses(c, 2 * multiple), row.losses(c, multiple)
        )
        for multiple, row in shown.roles.by_multiple(HEADSCALE).items()
        if row.name in rises
        for c in shown.measured()
    }
    numbers = decisive('smallest rise to twice the length', each, 'nats', highest=False)
    return {'rise_from_tuned_to_twice_nats': rises}, holds, numbers


def _between(shown: Shown) -> Measured:
    roles, (multiple, heads) = shown.roles, shown.longest()
    window = shown.target(multiple)
    if window is None:
        raise Undecided(f'no window is near {multiple:g} L, where {heads.name!r} was searched')
    ntk, yarn = (shown.less(heads, roles[role], window) for role in (NTK, YARN))
    measured = {
        'window_over_L': window,
        'headscale_minus_ntk_nats': ntk,
        'headscale_minus_yarn_nats': yarn,
        'headscale': heads.name,
        'with_one_factor_nats': {
            role: shown.less(heads, shown.one_factor[roles[role].name], window)
            for role in (NTK, YARN)
            if roles[role].name in shown.one_factor
        },
    }
    margin = BETWEEN_NTK_AND_YARN.thresholds['nats']
    below = [intervals.below(difference, 0, margin) for difference in ntk.values()]
    above = [intervals.above(difference, 0, margin) for difference in yarn.values()]
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
        (intervals.below if w >= first else intervals.above)(value, 0, margin)
        for w in tested
        for value in differences[f'{w:g} L'].values()
    )
    measured = {'headscale_minus_ntk_nats': differences, 'headscale': heads.name}
    ends = (tested[0], tested[-1])
    named = ((f'HeadScale - NTK at {w:g} L', heads, ntk, w) for w in ends)
    return measured, holds, tuple(n for given in named for n in shown.apart(*given))


_WITHIN = f'a difference of at most {LEVEL["nats"]} nats decides nothing'
RULES: tuple[Rule[Shown], ...] = (
    Rule(
        PARITY,
        'The losses of NoPE and RoPE in windows of L differ by at most '
        f'{PARITY.thresholds["nats"]} nats on every corpus.',
        _parity,
    ),
    Rule(
        UNIFORM_HURTS,
        'The uniform multiplier for the longest length raises the loss in windows of L by more '
        f'than {UNIFORM_HURTS.thresholds["nats"]} nats on every corpus.',
        _uniform_hurts,
    ),
    Rule(
        HEADSCALE_BEATS_UNIFORM,
        'HeadScale has the lower loss in windows of L and in the longest windows within the length '
        'of its search, than the uniform multiplier for windows of that length, for every such '
        f'pair on every corpus; {_WITHIN}.',
        _beats_uniform,
    ),
    Rule(
        FAILS_PAST_SEARCHED,
        'The loss in windows of twice the length of the search exceeds that at the length of the '
        f'search by more than {FAILS_PAST_SEARCHED.thresholds["nats"]} nats, wherever both were '
        'measured.',
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
)
