"""Claims about keys repeated far beyond the training length, by models of split heads."""

from __future__ import annotations

from collections.abc import Mapping

from experiments.figures.claims.decide import Measured, Rule
from experiments.figures.claims.headline import number
from experiments.figures.claims.intervals import at_most_by_chance, every
from experiments.figures.claims.listed import Listed
from experiments.figures.claims.others import KEYS_FAR, KEYS_FOUR
from experiments.figures.read.key_group import KeyGroup
from experiments.figures.roles import Roles, Shape, Undecided

SPLIT, SPLIT_FOUR = 'split', 'split_four'
CHANCE = 0.025  # as an interval of 95 % on that side
# The same model, asked for a single key and for one of four.
ROLES: Mapping[str, Shape] = {SPLIT: Shape.ONE, SPLIT_FOUR: Shape.ONE}


def far(group: KeyGroup) -> Measured:
    """Single keys at the claim's length."""
    return _at_length(group, KEYS_FAR)


def four(group: KeyGroup) -> Measured:
    """One of four keys at the claim's length."""
    return _at_length(group, KEYS_FOUR)


def _at_length(group: KeyGroup, claim: Listed) -> Measured:
    needles, multiple, least = (claim.thresholds[k] for k in ('needles', 'multiple', 'share'))
    if group.needles != needles:
        raise Undecided(f'{group.label!r} was asked for {group.asked}, not for one of {needles:g}')
    index = group.at(multiple)
    if index is None:
        measured = ', '.join(f'{m:g} L' for m in group.multiples)
        raise Undecided(f'{group.label!r} was asked for keys at {measured}, not at {multiple:g} L')
    shares = group.shares[:, index]
    holds = every(_repeats(share, group.prompts, least) for share in shares)
    found = {
        'label': group.label,
        'prompts': group.asked,
        'prompts_a_seed': group.prompts,
        'mean': float(shares.mean()),
        'by_seed': shares.tolist(),
    }
    return found, holds, (number(f'keys repeated at {multiple:g} L', 100 * shares, '%'),)


def _repeats(share: float, prompts: int, least: float) -> bool | None:
    """Whether one model repeats at least that share of keys; None of one that falls short by what
    chance may do to so many prompts."""
    # The mean of ten times 0.9 or the like may fall short of it by a rounding error.
    if share >= least - 1e-9:
        return True
    rare = at_most_by_chance(round(share * prompts), prompts, least) < CHANCE
    return False if rare else None


def _states(claim: Listed, keys: str) -> str:
    multiple, share = claim.thresholds['multiple'], claim.thresholds['share']
    return (
        f'Of prompts of {multiple:g} L that state {keys}, at least {100 * share:g} % are answered '
        'with exactly the key asked for, for every seed; a seed with fewer decides nothing where '
        f'so few or fewer come by chance in {100 * CHANCE:g} % of cases or more (binomial, at that '
        'share).'
    )


FAR, FOUR = _states(KEYS_FAR, 'one key'), _states(KEYS_FOUR, 'four named keys')
RULES: tuple[Rule[Roles[KeyGroup]], ...] = (
    Rule(KEYS_FAR, FAR, lambda roles: far(roles[SPLIT])),
    Rule(KEYS_FOUR, FOUR, lambda roles: four(roles[SPLIT_FOUR])),
)
