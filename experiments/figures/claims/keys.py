"""Claims about keys repeated far beyond the training length, by models of split heads."""

from __future__ import annotations

from collections.abc import Mapping

from scipy import special

from experiments.figures.claims.catalogue import CLAIMS
from experiments.figures.claims.decide import Measured, Rule
from experiments.figures.claims.headline import number
from experiments.figures.claims.verdict import AT_LEAST, Bound, every
from experiments.figures.read.key_group import KeyGroup
from experiments.figures.roles import Roles, Shape, Undecided

SPLIT, SPLIT_FOUR = 'split', 'split_four'
CHANCE = 0.025  # as an interval of 95 % on that side
# The same model, asked for a single key and for one of four.
ROLES: Mapping[str, Shape] = {SPLIT: Shape.ONE, SPLIT_FOUR: Shape.ONE}


def repeated(group: KeyGroup, claim: str) -> Measured:
    """Share of keys repeated at the length of a claim."""
    needles, multiple, least = (
        CLAIMS[claim].thresholds[k] for k in ('needles', 'multiple', 'share')
    )
    if group.needles != needles:
        raise Undecided(f'{group.label!r} was asked for {group.asked}, not for one of {needles:g}')
    index = group.at(multiple)
    if index is None:
        measured = ', '.join(f'{m:g} L' for m in group.multiples)
        raise Undecided(f'{group.label!r} was asked for keys at {measured}, not at {multiple:g} L')
    shares = group.shares[:, index]
    found = {
        'label': group.label,
        'prompts': group.asked,
        'prompts_a_seed': group.prompts,
        'mean': float(shares.mean()),
        'by_seed': shares.tolist(),
    }
    holds = every(_enough(share, group.prompts, least) for share in shares)
    return found, holds, (number(f'keys repeated at {multiple:g} L', 100 * shares, '%'),)


def _enough(share: float, prompts: int, least: float) -> bool | None:
    """Whether one model repeats at least that share of keys. None means that chance may take so
    many prompts from it."""
    # The mean of ten times 0.9 or the like may fall short of it by a rounding error.
    if share >= least - 1e-9:
        return True
    return False if special.bdtr(round(share * prompts), prompts, least) < CHANCE else None


def said(claim: str) -> str:
    """Statement of a claim about keys."""
    needles, multiple, share = (
        CLAIMS[claim].thresholds[k] for k in ('needles', 'multiple', 'share')
    )
    keys = 'one key' if needles == 1 else 'four named keys'
    return (
        f'Of prompts of {multiple:g} L that state {keys}, at least {100 * share:g} % are answered '
        'with exactly the key asked for, for every seed. A seed with fewer decides nothing where '
        f'so few or fewer come by chance in {100 * CHANCE:g} % of cases or more (binomial, at that '
        'share).'
    )


def limit(claim: str) -> Bound:
    return Bound(AT_LEAST, 100 * CLAIMS[claim].thresholds['share'])


def _rule(claim: str, role: str) -> Rule[Roles[KeyGroup]]:
    return Rule(
        claim, said(claim), lambda roles: repeated(roles[role], claim), (role,), limit(claim), '%'
    )


RULES: tuple[Rule[Roles[KeyGroup]], ...] = (
    _rule('keys_far', SPLIT),
    _rule('keys_four', SPLIT_FOUR),
)
