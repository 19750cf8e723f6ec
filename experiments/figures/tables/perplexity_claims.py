"""What the paper's Table 2 claims, tested on losses in sliding windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.figures.base import Claim, FigureInput
from experiments.figures.claims import HARM_NATS, PARITY_NATS
from experiments.figures.length_claims import RISE_NATS
from experiments.figures.tables.perplexity_rows import ONE_FACTOR, PerplexityRow
from experiments.figures.tables.roles import ClaimTest, Roles, Undecided

BASE, ROTARY, NTK, YARN = 'base', 'rotary', 'ntk', 'yarn'
UNIFORM, HEADSCALE = 'uniform', 'headscale'
SINGLE = (BASE, ROTARY, NTK, YARN)
BY_MULTIPLE = (UNIFORM, HEADSCALE)

# HeadScale is claimed to beat NTK from here on, and not to beat it up to there; multiples of L.
BEATS_FROM, LOSES_UP_TO = 4, 2

Measured = tuple[Mapping[str, Any], bool]
PerplexityRoles = Roles[PerplexityRow]


def from_rows(
    given: FigureInput,
    rows: Sequence[PerplexityRow],
    corpora: Sequence[str],
    windows: Sequence[float],
) -> list[Claim]:
    """Every claim, those without their rows undecided. corpora, windows: those measured. Of a row
    with choices the best of each window counts, which is what the paper reports."""
    roles = Roles(
        given.name,
        given.options.get('roles', {}),
        {row.name: row for row in rows if row.variant != ONE_FACTOR},
    )
    one_factor = {row.name: row for row in rows if row.variant == ONE_FACTOR}
    return [test.claim(roles) for test in _Claims(one_factor, corpora, windows).tests()]


class _Claims:
    def __init__(
        self,
        one_factor: Mapping[str, PerplexityRow],
        corpora: Sequence[str],
        windows: Sequence[float],
    ) -> None:
        self._one_factor, self._corpora = one_factor, corpora
        self._windows = sorted(windows)

    def tests(self) -> list[ClaimTest[PerplexityRow]]:
        return [
            ClaimTest(
                1,
                'In-domain parity of NoPE and RoPE: at L PG19 14.6 against 14.5, 0.007 nats, '
                'proof-pile 3.5 against 3.5.',
                'The losses of NoPE and RoPE in windows of L differ by at most '
                f'{PARITY_NATS} nats on every corpus.',
                self._parity,
            ),
            ClaimTest(
                6,
                'A large uniform scale hurts short positions: PG19 at L from 14.6 to 15.0, 19.0 '
                'and 30.4 for 1.2, 1.5 and 1.8, that is 0.03, 0.26 and 0.73 nats.',
                'The uniform scale for the longest length raises the loss in windows of L by more '
                f'than {HARM_NATS} nats on every corpus.',
                self._harm,
            ),
            ClaimTest(
                7,
                'HeadScale beats the uniform scale at its target length and hurts short positions '
                'less: PG19 at 2 L, 4 L and 8 L 15.3, 21.1 and 30.4 against 16.0, 45.3 and 198.8; '
                'at L 14.8, 15.7 and 18.3 against 15.0, 19.0 and 30.4.',
                'HeadScale has the lower loss in windows of L and in the longest windows within '
                'the length of its search, than the uniform scale for windows of that length, for '
                'every such pair on every corpus.',
                self._beats_uniform,
            ),
            ClaimTest(
                10,
                'HeadScale does not extrapolate past its tuned length in perplexity: scales '
                'searched at 4 L go from 21.1 at 4 L to 721.7 at 8 L (PG19), 3.5 nats.',
                'The loss in windows of twice the length of the search exceeds that at the length '
                f'of the search by more than {RISE_NATS} nats, wherever both were measured.',
                self._past_tuned,
            ),
            ClaimTest(
                11,
                'HeadScale is better than RoPE-NTK without tuning at 8 L (PG19 30.4 against 80.4, '
                'proof-pile 4.1 against 13.3), weaker than YaRN without tuning (17.1 and 3.6).',
                'HeadScale, searched at its longest length, has in the longest windows within it a '
                'loss below that of NTK and above that of YaRN on every corpus; both with the best '
                'factor for each window.',
                self._between,
            ),
            ClaimTest(
                None,
                'HeadScale is better than NTK (section 4.2): scales searched at 9 L are at 4 L and '
                '8 L (PG19 18.8 and 30.4 against 22.8 and 80.4), but not at L and 2 L (18.3 and '
                '19.0 against 14.5 and 14.9).',
                'HeadScale, searched at its longest length, has a loss below that of NTK with the '
                f'best factor for each window from {BEATS_FROM} L on, and above it up to '
                f'{LOSES_UP_TO} L, on every corpus.',
                self._by_window,
            ),
        ]

    def _parity(self, roles: PerplexityRoles) -> Measured:
        differences = self._less(roles[BASE], roles[ROTARY], 1)
        holds = all(abs(d) <= PARITY_NATS for d in differences.values())
        return {'nope_minus_rope_nats': differences}, holds

    def _harm(self, roles: PerplexityRoles) -> Measured:
        base, uniform = roles[BASE], roles.by_multiple(UNIFORM)
        changes = {row.name: self._less(row, base, 1) for row in uniform.values()}
        largest = uniform[max(uniform)].name
        holds = all(change > HARM_NATS for change in changes[largest].values())
        return {'change_at_L_nats': changes}, holds

    def _beats_uniform(self, roles: PerplexityRoles) -> Measured:
        uniform = roles.by_multiple(UNIFORM)
        measured: dict[str, Any] = {}
        for multiple, row in roles.by_multiple(HEADSCALE).items():
            window = self._target(multiple)
            if window in uniform:
                rival = uniform[window]
                measured[row.name] = {
                    'uniform': rival.name,
                    'at_L': self._less(row, rival, 1),
                    f'at_{window:g}_L': self._less(row, rival, window),
                }
        if not measured:
            raise Undecided('no uniform scale is for the window of a search of HeadScale')
        places = [p for pair in measured.values() for p in pair.values() if not isinstance(p, str)]
        holds = all(difference < 0 for place in places for difference in place.values())
        return {'headscale_minus_uniform_nats': measured}, holds

    def _past_tuned(self, roles: PerplexityRoles) -> Measured:
        rises = {
            row.name: {
                corpus: row.loss(corpus, 2 * multiple) - row.loss(corpus, multiple)
                for corpus in self._measured()
            }
            for multiple, row in roles.by_multiple(HEADSCALE).items()
            if {multiple, 2 * multiple} <= set(self._windows)
        }
        if not rises:
            raise Undecided('no search of HeadScale has windows of its length and of twice that')
        holds = all(rise > RISE_NATS for found in rises.values() for rise in found.values())
        return {'rise_from_tuned_to_twice_nats': rises}, holds

    def _between(self, roles: PerplexityRoles) -> Measured:
        multiple, heads = self._longest(roles)
        window = self._target(multiple)
        if window is None:
            raise Undecided(f'no window is near {multiple:g} L, where {heads.name!r} was searched')
        ntk, yarn = (self._less(heads, roles[role], window) for role in (NTK, YARN))
        measured = {
            'window_over_L': window,
            'headscale_minus_ntk_nats': ntk,
            'headscale_minus_yarn_nats': yarn,
            'headscale': heads.name,
            'with_one_factor_nats': {
                role: self._less(heads, self._one_factor[roles[role].name], window)
                for role in (NTK, YARN)
                if roles[role].name in self._one_factor
            },
        }
        below, above = all(d < 0 for d in ntk.values()), all(d > 0 for d in yarn.values())
        return measured, below and above

    def _by_window(self, roles: PerplexityRoles) -> Measured:
        (_, heads), ntk = self._longest(roles), roles[NTK]
        tested = [w for w in self._windows if w >= BEATS_FROM or w <= LOSES_UP_TO]
        if not any(w >= BEATS_FROM for w in tested) or not any(w <= LOSES_UP_TO for w in tested):
            raise Undecided(
                f'windows up to {LOSES_UP_TO} L and from {BEATS_FROM} L on are compared'
            )
        differences = {f'{w:g} L': self._less(heads, ntk, w) for w in self._windows}
        holds = all(
            value < 0 if w >= BEATS_FROM else value > 0
            for w in tested
            for value in differences[f'{w:g} L'].values()
        )
        return {'headscale_minus_ntk_nats': differences, 'headscale': heads.name}, holds

    def _longest(self, roles: PerplexityRoles) -> tuple[float, PerplexityRow]:
        """HeadScale with the longest length of its search, in multiples of L."""
        return max(roles.by_multiple(HEADSCALE).items())

    def _target(self, multiple: float) -> float | None:
        """The longest windows within the length of a search, and longer than half of it: the
        paper's scales of 18K are tested at 16K."""
        near = [window for window in self._windows if multiple / 2 < window <= multiple]
        return near[-1] if near else None

    def _less(self, row: PerplexityRow, other: PerplexityRow, window: float) -> dict[str, float]:
        """Loss of `row` less that of `other`, by corpus, nats."""
        return {c: row.loss(c, window) - other.loss(c, window) for c in self._measured()}

    def _measured(self) -> Sequence[str]:
        if not self._corpora:
            raise Undecided('no corpus was measured')
        return self._corpora
