"""Claims about the ways to choose lambda, decided by losses against the length of the sequence."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from experiments.figures.claims.catalogue import CLAIMS
from experiments.figures.claims.decide import Every, Measured, Rule
from experiments.figures.claims.headline import number
from experiments.figures.claims.verdict import ABOVE, BELOW, NEAR, Bound
from experiments.figures.read.length_group import Group, check_windows
from experiments.figures.roles import Roles, Shape, Undecided, told_apart

BASE, UNIFORM, HEADSCALE, LOG_LENGTH = 'base', 'uniform', 'headscale', 'log_length'
TUNED = 'tuned'
ROLES: Mapping[str, Shape] = {
    BASE: Shape.ONE,
    UNIFORM: Shape.ONE,  # the best multiplier for each length
    HEADSCALE: Shape.BY_MULTIPLE,
    LOG_LENGTH: Shape.ONE,
    TUNED: Shape.BY_MULTIPLE,  # all weights of the base model, on the tokens of the search
}
# Measures of a group, and lengths that are no fixed multiple of L: that of a search, those beyond
# L, and all.
WINDOW, TAIL = 'loss_window', 'loss_tail'
SEARCHED, BEYOND, ALL = 'searched', 'beyond', 'all'
MEASURES = {WINDOW: 'Mean loss over the window', TAIL: 'Loss of the last L/2 positions'}
PLACES = {
    SEARCHED: 'in windows of the length of the search',
    BEYOND: 'at every n > L measured',
    ALL: 'at every n measured',
}
NAMES = {
    BASE: 'no multiplier',
    UNIFORM: 'the best uniform multiplier for the length',
    HEADSCALE: 'HeadScale',
    'log_square': '1 + a x + b x^2',
    'fixed_log_length': '1 + 0.397 ln(n/L)',
}
LONGER = CLAIMS['longer_search_serves_end'].thresholds['factor']

Groups = Roles[Group]
Losses = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Less:
    """Loss of one curve less that of another, [S] nats by length or search; a value to be found.

    first, second: roles; that of searches stands for each of them. at: a multiple of L, SEARCHED,
    BEYOND or ALL. measure: of the whole window or of its tail.
    """

    first: str
    second: str
    at: float | str
    measure: str = WINDOW

    @property
    def roles(self) -> tuple[str, str]:
        return self.first, self.second

    @property
    def said(self) -> str:
        """'Loss of the last L/2 positions with HeadScale less that with ...'."""
        one, other = (NAMES.get(role, role) for role in self.roles)
        at = PLACES[self.at] if isinstance(self.at, str) else f'in windows of {self.at:g} L'
        every = ', for every search' if HEADSCALE in self.roles else ''
        there = ' measured there' if every and self.at == SEARCHED else ''
        return f'{MEASURES[self.measure]} with {one} less that with {other}, {at}{every}{there}'

    def __call__(self, roles: Groups) -> Losses:
        found = {}
        for label, m, one, other in self._cases(roles):
            check_windows((one, other))
            lower, upper = (getattr(g, self.measure)[:, g.at(m)] for g in (one, other))
            found[label] = lower - upper
        return found

    def _cases(self, roles: Groups) -> Iterator[tuple[str, float, Group, Group]]:
        """Label, length, and both curves. Undecided where a fixed length was not measured."""
        for name, multiple, one, other in self._pairs(roles):
            measured = [float(m) for m in one.multiples]
            if self.at == SEARCHED:
                label = name if self.first == HEADSCALE else f'at {multiple:g} L'
                if one.at(multiple) is not None:
                    yield label, multiple, one, other
            elif isinstance(self.at, str):
                for m in (m for m in measured if self.at == ALL or m > 1):
                    yield ', '.join(filter(None, (name, f'at {m:g} L'))), m, one, other
            elif one.at(self.at) is None:
                raise Undecided(f'{one.label!r} was not measured at {self.at:g} L')
            else:
                yield name, self.at, one, other

    def _pairs(self, roles: Groups) -> Iterator[tuple[str, float, Group, Group]]:
        """Name and length of the search, '' and 0 without one, and both curves."""
        if HEADSCALE not in (self.first, self.second):
            yield '', 0.0, roles[self.first], roles[self.second]
            return
        other = roles[self.second if self.first == HEADSCALE else self.first]
        for name, multiple, g in searches(roles):
            yield (name, multiple, *((g, other) if self.first == HEADSCALE else (other, g)))


def searches(roles: Groups) -> list[tuple[str, float, Group]]:
    """Label, multiple of L and curve of each search."""
    found = roles.by_multiple(HEADSCALE)
    labels = told_apart({g.name: g.label for g in found.values()})
    return [(labels[g.name], multiple, g) for multiple, g in found.items()]


def rise(group: Group, start: float, measure: str = TAIL) -> np.ndarray | None:
    """[S] rise of the loss from a length to twice that, nats; None if one was not measured."""
    first, twice = group.at(start), group.at(2 * start)
    if first is None or twice is None:
        return None
    loss: np.ndarray = getattr(group, measure)
    return loss[:, twice] - loss[:, first]


def _past_searched(roles: Groups) -> Losses:
    cases = ((name, rise(g, multiple)) for name, multiple, g in searches(roles))
    return {name: found for name, found in cases if found is not None}


def _longer_search(roles: Groups) -> Losses:
    check_windows([*roles.players.values()])
    found = {}
    for (_, multiple, own), (_, longer, other) in itertools.pairwise(searches(roles)):
        index = own.at(multiple)
        if longer / multiple <= LONGER and index is not None:
            label = f'{longer:g} L - {multiple:g} L'
            found[label] = other.loss_tail[:, index] - own.loss_tail[:, index]
    return found


def _near_searches(roles: Mapping[str, Any]) -> bool:
    found = sorted(map(float, roles.get(HEADSCALE) or ()))
    return any(longer / own <= LONGER for own, longer in itertools.pairwise(found))


def _one_set(roles: Groups) -> Losses:
    """The best other curve is that with the lowest mean over seeds at each length. Only beside
    searches for one length each is log-length held against them."""
    log = roles[LOG_LENGTH]
    roles.by_multiple(HEADSCALE)
    others = [g.loss_window for g in roles.players.values() if g is not log]
    if not others:
        raise Undecided('no other curve is drawn')
    check_windows([*roles.players.values()])
    best = np.argmin(np.mean(others, axis=1), axis=0)
    return {
        f'{m:g} L': log.loss_window[:, i] - others[best[i]][:, i]
        for i, m in enumerate(log.multiples)
    }


def _lowest(roles: Groups) -> Measured:
    """The lowest curve at each length, for both measures: a reading, nothing to decide."""
    groups = list(roles.players.values())
    if len(groups) < 2:
        raise Undecided('no other curve is drawn')
    check_windows(groups)
    names = list(told_apart({g.name: g.label for g in groups}).values())
    measured: dict[str, Any] = {}
    for measure in (WINDOW, TAIL):
        losses = np.stack([getattr(g, measure).mean(axis=0) for g in groups])
        order = np.argsort(losses, axis=0, kind='stable')
        low = np.take_along_axis(losses, order, axis=0)
        measured[measure] = {
            f'{m:g} L': {
                'best': names[order[0, i]],
                'ahead_of_next_nats': low[1, i] - low[0, i],
                'loss_nats': {name: losses[j, i] for j, name in enumerate(names)},
            }
            for i, m in enumerate(groups[0].multiples)
        }
    far = int(np.argmax(groups[0].multiples))
    best = min(groups, key=lambda g: float(g.loss_window[:, far].mean()))
    place = f'lowest over windows of {groups[0].multiples[far]:g} L: {best.label}'
    return measured, None, (number(place, best.loss_window[:, far], 'nats'),)


def _less_tuned(roles: Groups) -> Losses:
    tuned = roles.by_multiple(TUNED)
    check_windows([*roles.players.values()])
    return {
        name: one.loss_window[:, i] - tuned[multiple].loss_window[:, i]
        for name, multiple, one in searches(roles)
        if multiple in tuned and (i := one.at(multiple)) is not None
    }


def less(claim: str, value: Less, bound: Bound, what: str) -> Rule[Groups]:
    """The rule that one loss less another lies on a side of a limit."""
    return Rule(claim, value.said, Every(value, bound, what))


RULES: tuple[Rule[Groups], ...] = (
    less(
        'headscale_hurts',
        Less(HEADSCALE, BASE, 1),
        Bound(ABOVE, 0, 'nats'),
        'smallest HeadScale - base at L',
    ),
    less(
        'headscale_beats_uniform',
        Less(HEADSCALE, UNIFORM, SEARCHED),
        Bound(BELOW, 0, 'nats'),
        'highest HeadScale - uniform',
    ),
    Rule(
        'fails_past_searched',
        'Loss of the last L/2 positions at twice the length of the search less that at the length '
        'of the search, for every search measured there',
        Every(_past_searched, Bound(ABOVE, 'nats'), 'smallest rise to twice the length'),
        (HEADSCALE,),
    ),
    Rule(
        'log_length_serves_every_length',
        'Mean loss over the window with log-length less that of the best other curve by means over '
        'seeds, at every n',
        Every(_one_set, Bound(BELOW, 'nats'), 'highest log-length - best other'),
        (LOG_LENGTH, HEADSCALE),
    ),
    Rule(
        'lowest',
        'The lowest mean loss at each length n, over the window and over its last L/2 positions '
        '(means over seeds; at a tie the first curve is named).',
        _lowest,
        (HEADSCALE,),
    ),
    Rule(
        'longer_search_serves_end',
        'Loss of the last L/2 positions of windows as long as those of a search, with the next '
        f'longer search by a factor of at most {LONGER:g} (the paper: 1.125) less that with the '
        'search itself',
        Every(_longer_search, Bound(BELOW, 0, 'nats'), 'at the end, searched at'),
        _near_searches,
    ),
)

# Decided where some curve has the role of a fine-tuned model.
TUNING_RULES: tuple[Rule[Groups], ...] = (
    Rule(
        'headscale_as_full_tuning',
        f'{MEASURES[WINDOW]} with HeadScale less that after fine-tuning all weights on as many '
        f'sequences of that length, {PLACES[SEARCHED]}, for every search '
        'measured there',
        Every(_less_tuned, Bound(NEAR, 'nats'), 'HeadScale - fine-tuned'),
        (HEADSCALE, TUNED),
    ),
)
