"""Effective lengths of models on RULER, a reading by three rules."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.figures.claims.decide import Measured, Rule
from experiments.figures.claims.headline import number
from experiments.figures.read.position_curve import THRESHOLD
from experiments.figures.read.ruler_panel import RulerPanel

PASSED, OF_BASE, BY_LOSS = 'score above 85.6', '85 % of the base score', 'loss'
RULES_OF_LENGTH = {
    PASSED: "RULER's, the longest length up to which every mean score is above 85.6",
    OF_BASE: 'the same with 85 % of the mean score at the shortest length measured',
    BY_LOSS: (
        f'the position from which the smoothed loss exceeds its mean over [L/2, L] by {THRESHOLD} '
        'nats'
    ),
}


def said(panel: RulerPanel, rule: str) -> str:
    """'8,192', 'none', '4,096 or more' where it is as long as what was measured."""
    if rule == BY_LOSS:
        if panel.loss is None:
            return 'not measured'
        end = panel.reads_to
        return f'{len(panel.loss.positions):,} or more' if end is None else f'{end:,}'
    length = panel.passed if rule == PASSED else panel.of_base
    if not length:
        return 'none'
    return f'{length:,} or more' if length == max(panel.lengths) else f'{length:,}'


def _effective(panels: Sequence[RulerPanel]) -> Measured:
    measured = {
        panel.label: {rule: said(panel, rule) for rule in RULES_OF_LENGTH} for panel in panels
    }
    numbers = tuple(
        number(f'{panel.label}, effective length', float(panel.passed), 'tokens')
        for panel in panels
    )
    return measured, None, numbers


RULES: tuple[Rule[Sequence[RulerPanel]], ...] = (
    Rule(
        'effective_length',
        '; '.join(f'{rule}: {text}' for rule, text in RULES_OF_LENGTH.items()) + '.',
        _effective,
    ),
)
