"""Reach of an extended checkpoint by its loss, and its effective length on RULER: readings."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.figures.claims.catalogue import CLAIMS
from experiments.figures.claims.decide import Measured, Rule
from experiments.figures.claims.headline import number
from experiments.figures.read.recipe import Recipe
from experiments.figures.roles import Undecided

NATS = CLAIMS['recipes_read'].thresholds['nats']
EFFECTIVE = {
    'effective_length': 'the longest length up to which every mean score is above 85.6',
    'effective_length_of_base': 'the same with 85 % of its score at the shortest length',
}


def _read_to(recipes: Sequence[Recipe]) -> Measured:
    """By loss: the longest length up to which that of the last L/2 is little above the first
    recipe's at L."""
    base = recipes[0].curves.get('loss')
    level = None if base is None else base.at(1)
    if level is None:
        raise Undecided('the loss at L was not measured')
    measured = {}
    for recipe in recipes:
        curve = recipe.curves['loss']
        reads = 0.0
        for multiple, loss in zip(curve.multiples, curve.values, strict=True):
            if multiple < 1:
                continue
            if loss > level + NATS:
                break
            reads = float(multiple)
        cost = curve.at(1)
        assert cost is not None  # all have the same lengths
        measured[recipe.label] = {'reads_to_L': reads, 'cost_at_L_nats': cost - level}
    told = _first_and_best({label: one['reads_to_L'] for label, one in measured.items()})
    numbers = tuple(number(f'{label} reads to', reads, 'L') for label, reads in told.items())
    return measured, None, numbers


def _effective(recipes: Sequence[Recipe]) -> Measured:
    if not recipes[0].effective:
        raise Undecided('RULER was not measured')
    measured = {recipe.label: dict(recipe.effective) for recipe in recipes}
    told = _first_and_best({r.label: float(r.effective['effective_length']) for r in recipes})
    numbers = tuple(number(f'{label}, effective length', n, 'tokens') for label, n in told.items())
    return measured, None, numbers


def _first_and_best(by_label: dict[str, float]) -> dict[str, float]:
    """Of the first recipe, and of the first that reads furthest, if another does."""
    first = next(iter(by_label))
    best = max(by_label, key=lambda label: by_label[label])
    return {label: by_label[label] for label in (first, best)}


RULES: tuple[Rule[Sequence[Recipe]], ...] = (
    Rule(
        'recipes_read',
        'The longest length up to which, from L on, the loss over the last L/2 positions is at '
        f'most {NATS} nats above that of the first recipe at L.',
        _read_to,
    ),
    Rule(
        'effective_length',
        '; '.join(f'{name}: {words}' for name, words in EFFECTIVE.items()) + ', in tokens.',
        _effective,
    ),
)
