"""Claims about laws of lambda, each source's and ours, decided by losses against the length."""

from __future__ import annotations

from collections.abc import Mapping

from experiments.figures.claims.decide import Every, Rule
from experiments.figures.claims.lengths import (
    ALL,
    BASE,
    BEYOND,
    HEADSCALE,
    SEARCHED,
    TAIL,
    UNIFORM,
    Groups,
    Less,
    less,
)
from experiments.figures.claims.verdict import AT_MOST, BELOW, Bound
from experiments.figures.roles import Shape

# Searched on a frozen model, as `log_length` of `claims.lengths`.
LOG_SQUARE, SCALABLE, SCALABLE_BIAS = 'log_square', 'scalable_softmax', 'scalable_softmax_bias'
FIXED_FIT = 'fixed_log_length'
# In place while the model was trained.
TRAINED_SCALABLE, TRAINED_ADAPTIVE = 'trained_scalable_softmax', 'trained_adaptive'

# Claim that a law's loss beyond L is lower than another's -> role and name of both. The fixed laws
# stand in all heads of a frozen model, with the coefficients of their sources.
AS_TRAINED = (BASE, 'the base model')
LOWER: Mapping[str, tuple[tuple[str, str], tuple[str, str]]] = {
    'fit_extends': ((FIXED_FIT, '1 + 0.397 ln(n/L)'), AS_TRAINED),
    'log_n_extends': (('fixed_log_ratio', 'ln n / ln L'), AS_TRAINED),
    'grok_extends': (('fixed_log_ratio_position', 'max(1, ln i / ln L)'), AS_TRAINED),
    'yarn_temperature_extends': (('fixed_yarn_temperature', "YaRN's temperature"), AS_TRAINED),
    'info_scale_extends': (('fixed_info_scale', 'InfoScale'), AS_TRAINED),
    'info_scale_beats_log_n': (
        ('fixed_info_scale', 'InfoScale'),
        ('fixed_log_ratio', 'ln n / ln L'),
    ),
    'llama_extends': (('fixed_log_floor', "Llama 4's staircase"), AS_TRAINED),
    'inkling_extends': (('fixed_log_position', '1 + 0.1 ln(max(i/L, 1))'), AS_TRAINED),
    'swan_extends': (('fixed_log_offset', 'ln(a + i) / ln a'), AS_TRAINED),
    'hypenet_extends': (('tied_offset', 'ln(a + i) / ln a, one a searched,'), AS_TRAINED),
    'beam_extends': (('fixed_power', '(1 + i/L)^0.1'), AS_TRAINED),
    'entropy_extends': (('fixed_entropy', 'the temperature by entropy'), AS_TRAINED),
    'scalable_softmax_extends': ((TRAINED_SCALABLE, 'the model trained with s ln i'), AS_TRAINED),
    'scalable_softmax_bias_hurts': (
        (SCALABLE, 's ln i, searched with the weights frozen,'),
        (SCALABLE_BIAS, 's ln i + b, searched in the same way'),
    ),
    'adaptive_beats_scalable_softmax': (
        (TRAINED_ADAPTIVE, 'the model trained with an adaptive temperature'),
        (TRAINED_SCALABLE, 'that trained with s ln i'),
    ),
}
ROLES: Mapping[str, Shape] = dict.fromkeys(
    (LOG_SQUARE, *(role for both in LOWER.values() for role, _ in both if role != BASE)), Shape.ONE
)


def _lower(claim: str) -> Rule[Groups]:
    (law, name), (other, than) = LOWER[claim]
    return Rule(
        claim,
        f'Loss of the last L/2 positions with {name} less that of {than}, at every n > L measured',
        Every(Less(law, other, BEYOND, TAIL), Bound(BELOW, 0, 'nats'), f'highest {name} - {than}'),
    )


RULES: tuple[Rule[Groups], ...] = (
    *map(_lower, LOWER),
    less(
        'fit_near_best',
        Less(FIXED_FIT, UNIFORM, BEYOND),
        Bound(AT_MOST, 'nats'),
        'highest fit - best uniform',
    ),
    less(
        'log_square_serves_headscale',
        Less(LOG_SQUARE, HEADSCALE, ALL),
        Bound(AT_MOST, 'nats'),
        'highest 1 + a x + b x^2 -',
    ),
    less(
        'log_square_serves_tail',
        Less(LOG_SQUARE, HEADSCALE, SEARCHED, TAIL),
        Bound(AT_MOST, 'nats'),
        'highest 1 + a x + b x^2 - HeadScale',
    ),
)
