"""What the paper's Table 4 claims of the parts of HeadScale."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures.base import Claim
from experiments.figures.tables.options import Options
from experiments.figures.tables.perplexity_rows import Value
from experiments.figures.tables.roles import ClaimTest, Roles, Undecided

HEADSCALE, NO_CONSTRAINT, NO_START = 'headscale', 'without_constraint', 'without_initialization'
ROLES = (HEADSCALE, NO_CONSTRAINT, NO_START)
PASSKEY, LONGBENCH = 'passkey', 'longbench'

# The paper's gaps are 28 and 55 points.
MATTERS_POINTS = 10.0

Measured = tuple[Mapping[str, Any], bool]


@dataclasses.dataclass(frozen=True)
class AblationRow:
    """option: what the config says of it. perplexity: by corpus. scores: passkey and longbench,
    percent [S]. lacking: why one of them is not there. names: of the records."""

    option: Options
    perplexity: Mapping[str, Value]
    scores: Mapping[str, np.ndarray]
    lacking: Mapping[str, str]
    names: tuple[str, ...]

    @property
    def label(self) -> str:
        return self.option['label']

    def score(self, name: str) -> float:
        """Mean over seeds; Undecided where it was not measured."""
        if name not in self.scores:
            raise Undecided(f'{self.label!r} has no {name}: {self.lacking[name]}')
        return float(self.scores[name].mean())

    def loss(self, corpus: str) -> float:
        """Mean over seeds, nats; Undecided where it was not measured."""
        if corpus not in self.perplexity:
            raise Undecided(f'{self.label!r} has no perplexity on {corpus!r}')
        return self.perplexity[corpus].mean_loss


def from_rows(roles: Roles[AblationRow], corpora: Sequence[Options]) -> list[Claim]:
    """Both claims, undecided without their rows. corpora: those measured, as the options have
    them."""
    return [_parts_matter().claim(roles), _trade(corpora).claim(roles)]


def _parts_matter() -> ClaimTest[AblationRow]:
    return ClaimTest(
        8,
        'The start from the best uniform scale matters (passkey 81 % to 26 % without it), and so '
        'does the constraint (81 % to 53 %).',
        'Without either, the passkey accuracy inside the window is lower by more than '
        f'{MATTERS_POINTS:g} points (means over seeds).',
        _drops,
    )


def _drops(roles: Roles[AblationRow]) -> Measured:
    full = roles[HEADSCALE]
    drops = {
        roles[role].label: full.score(PASSKEY) - roles[role].score(PASSKEY)
        for role in (NO_START, NO_CONSTRAINT)
    }
    by_seed = {
        row.label: row.scores[PASSKEY].tolist()
        for row in (full, roles[NO_START], roles[NO_CONSTRAINT])
    }
    measured = {'passkey_drop_points': drops, 'passkey_by_seed': by_seed}
    return measured, all(drop > MATTERS_POINTS for drop in drops.values())


def _trade(corpora: Sequence[Options]) -> ClaimTest[AblationRow]:
    """The constraint costs perplexity on PG19, and is for retrieval and LongBench."""

    def measure(roles: Roles[AblationRow]) -> Measured:
        full, free = roles[HEADSCALE], roles[NO_CONSTRAINT]
        book = next((c['key'] for c in corpora if c.get('paper') == 'pg19'), None)
        if book is None:
            raise Undecided("no corpus stands for the paper's 'pg19'")
        losses = {c['key']: free.loss(c['key']) - full.loss(c['key']) for c in corpora}
        points = {
            name: free.score(name) - full.score(name)
            for name in (PASSKEY, LONGBENCH)
            if name == PASSKEY or (name in full.scores and name in free.scores)
        }
        measured = {'without_minus_full_nats': losses, 'without_minus_full_points': points}
        return measured, losses[book] < 0 and all(p < 0 for p in points.values())

    return ClaimTest(
        None,
        'Without the constraint PG19 perplexity at 8 L is better (25.9 against 30.4); proof-pile '
        '(4.2 against 4.1), passkey (53 % against 81 %) and LongBench (16.7 against 17.0) are '
        'worse.',
        'Without the constraint the loss on the corpus in the place of PG19 is lower, and so are '
        'the passkey accuracy and, where both have it, the LongBench mean (means over seeds).',
        measure,
    )
