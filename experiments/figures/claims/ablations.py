"""Claims about the parts of HeadScale, decided by a table of what it is without them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from experiments.figures.claims.catalogue import CLAIMS
from experiments.figures.claims.decide import Every, Rule
from experiments.figures.claims.headline import apart
from experiments.figures.claims.passkey import ABLATED, FULL, NO_BOUND, NO_INIT, WITHOUT
from experiments.figures.claims.verdict import ABOVE, BELOW, Bound
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
class ShownAblations:
    """corpora: as the options have them."""

    roles: Roles[AblationRow]
    corpora: Sequence[Options]


LEAST = 100 * CLAIMS['passkey_reach'].thresholds['accuracy']  # percent of keys


def _parts_matter(shown: ShownAblations) -> dict[str, np.ndarray]:
    full = shown.roles[FULL]
    repeated = full.score(PASSKEY).mean()
    if repeated < LEAST:
        raise Undecided(f'{full.label!r} repeats {repeated:.0f} % of the keys, not {LEAST:g} %')
    return {
        f'full - {WITHOUT[role]}': apart(full.score(PASSKEY), shown.roles[role].score(PASSKEY))
        for role in (NO_INIT, NO_BOUND)
    }


def _book(shown: ShownAblations) -> dict[str, np.ndarray]:
    """Takes the corpus in the place of PG19."""
    full, free = shown.roles[FULL], shown.roles[NO_BOUND]
    book = next((c['key'] for c in shown.corpora if c.get('paper') == 'pg19'), None)
    if book is None:
        raise Undecided("no corpus stands for the paper's 'pg19'")
    return {f'without bound - full, {book}': apart(free.loss(book), full.loss(book))}


def _scores(shown: ShownAblations) -> dict[str, np.ndarray]:
    full, free = shown.roles[FULL], shown.roles[NO_BOUND]
    return {
        name: apart(free.score(name), full.score(name))
        for name in (PASSKEY, LONGBENCH)
        if name == PASSKEY or (name in full.scores and name in free.scores)
    }


RULES: tuple[Rule[ShownAblations], ...] = (
    Rule(
        'parts_matter',
        f'Passkey accuracy inside the window of the full method, which is at least {LEAST:g} %, '
        'less that without either part',
        Every(_parts_matter, Bound(ABOVE, 'points'), '', 'points', each=True),
        (FULL, NO_INIT, NO_BOUND),
    ),
    Rule(
        'bound_for_retrieval',
        'Without the constraint less with it: loss on the corpus in the place of PG19, passkey '
        'accuracy and, where both have it, the LongBench mean',
        (
            Every(_book, Bound(BELOW, 0, 'nats'), '', name='loss', each=True),
            Every(_scores, Bound(BELOW, 0, 'points'), '', 'points', name='scores', each=True),
        ),
        (FULL, NO_BOUND),
    ),
)
