"""Claims about the parts of HeadScale, decided by a table of what it is without them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from experiments.figures.claims import intervals
from experiments.figures.claims.catalogue import BOUND_FOR_RETRIEVAL, PARTS_MATTER, PASSKEY_REACH
from experiments.figures.claims.decide import Measured, Rule
from experiments.figures.claims.headline import apart, number
from experiments.figures.claims.intervals import Interval
from experiments.figures.claims.passkey import ABLATED, FULL, NO_BOUND, NO_INIT, WITHOUT
from experiments.figures.read.tables.options import Options
from experiments.figures.read.tables.perplexity_rows import Perplexity
from experiments.figures.roles import Roles, Shape, Undecided

ROLES: Mapping[str, Shape] = ABLATED
PASSKEY, LONGBENCH = 'passkey', 'longbench'


@dataclasses.dataclass(frozen=True)
class AblationRow:
    """option: what the config says of it. perplexity: by corpus. scores: passkey and longbench,
    percent [R], one a record. by_seed: the same, [S] means over the searches of a model. lacking:
    why one of them is not there. names: of the records."""

    option: Options
    perplexity: Mapping[str, Perplexity]
    scores: Mapping[str, np.ndarray]
    by_seed: Mapping[str, np.ndarray]
    lacking: Mapping[str, str]
    names: tuple[str, ...]

    @property
    def label(self) -> str:
        return self.option['label']

    def score(self, name: str) -> np.ndarray:
        """Percent [S]; Undecided where it was not measured."""
        if name not in self.scores:
            raise Undecided(f'{self.label!r} has no {name}: {self.lacking[name]}')
        return self.by_seed[name]

    def loss(self, corpus: str) -> np.ndarray:
        """Nats [S]; Undecided where it was not measured."""
        if corpus not in self.perplexity:
            raise Undecided(f'{self.label!r} has no perplexity on {corpus!r}')
        return self.perplexity[corpus].loss_by_seed


@dataclasses.dataclass(frozen=True)
class Shown:
    """corpora: those measured, as the options have them."""

    roles: Roles[AblationRow]
    corpora: Sequence[Options]


def _parts_matter(shown: Shown) -> Measured:
    full, ablated = shown.roles[FULL], {role: shown.roles[role] for role in (NO_INIT, NO_BOUND)}
    repeated, least = full.score(PASSKEY).mean(), 100 * PASSKEY_REACH.thresholds['accuracy']
    if repeated < least:
        raise Undecided(f'{full.label!r} repeats {repeated:.0f} % of the keys, not {least:g} %')
    others = ablated.values()
    drops = {
        role: Interval.of(apart(full.score(PASSKEY), row.score(PASSKEY)))
        for role, row in ablated.items()
    }
    by_seed = {row.label: row.score(PASSKEY).tolist() for row in (full, *others)}
    measured = {'passkey_drop_points': intervals.stated(drops), 'passkey_by_seed': by_seed}
    limit = PARTS_MATTER.thresholds['points']
    holds = intervals.every(drop.above(limit) for drop in drops.values())
    numbers = [number(f'full - {WITHOUT[role]}', drop, 'points') for role, drop in drops.items()]
    return measured, holds, tuple(numbers)


def _bound_for_retrieval(shown: Shown) -> Measured:
    """The constraint costs perplexity on PG19, and is for retrieval and LongBench."""
    full, free = shown.roles[FULL], shown.roles[NO_BOUND]
    book = next((c['key'] for c in shown.corpora if c.get('paper') == 'pg19'), None)
    if book is None:
        raise Undecided("no corpus stands for the paper's 'pg19'")
    losses = {
        c['key']: Interval.of(apart(free.loss(c['key']), full.loss(c['key'])))
        for c in shown.corpora
    }
    points = {
        name: Interval.of(apart(free.score(name), full.score(name)))
        for name in (PASSKEY, LONGBENCH)
        if name == PASSKEY or (name in full.scores and name in free.scores)
    }
    measured = {
        'without_minus_full_nats': intervals.stated(losses),
        'without_minus_full_points': intervals.stated(points),
    }
    limits = BOUND_FOR_RETRIEVAL.thresholds
    verdicts = [losses[book].below(0, limits['nats'])]
    verdicts += [difference.below(0, limits['points']) for difference in points.values()]
    numbers = [number(f'without bound - full, {book}', losses[book], 'nats')]
    numbers += [number(name, difference, 'points') for name, difference in points.items()]
    return measured, intervals.every(verdicts), tuple(numbers)


RULES: tuple[Rule[Shown], ...] = (
    Rule(
        PARTS_MATTER,
        'Without either, the passkey accuracy inside the window, of the full method at least '
        f'{100 * PASSKEY_REACH.thresholds["accuracy"]:g} %, is lower by more than '
        f'{PARTS_MATTER.thresholds["points"]:g} points; {intervals.RULE}.',
        _parts_matter,
    ),
    Rule(
        BOUND_FOR_RETRIEVAL,
        'Without the constraint the loss on the corpus in the place of PG19 is lower, and so are '
        'the passkey accuracy and, where both have it, the LongBench mean; differences of at most '
        f'{BOUND_FOR_RETRIEVAL.thresholds["nats"]} nats and '
        f'{BOUND_FOR_RETRIEVAL.thresholds["points"]} points decide nothing, and {intervals.RULE}.',
        _bound_for_retrieval,
    ),
)
