"""Claims about laws of lambda, each source's and ours, decided by losses against the length."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from experiments.figures.claims import others
from experiments.figures.claims.decide import Measured, Rule
from experiments.figures.claims.headline import Numbers, decisive
from experiments.figures.claims.intervals import RULE, Interval
from experiments.figures.claims.lengths import BASE, HEADSCALE, UNIFORM, Groups, told
from experiments.figures.claims.listed import Listed
from experiments.figures.claims.margins import all_decide
from experiments.figures.claims.others import (
    FIT_NEAR_BEST,
    LOG_SQUARE_SERVES_HEADSCALE,
    LOG_SQUARE_SERVES_TAIL,
)
from experiments.figures.read.length_group import Group, by_length
from experiments.figures.roles import Shape, Undecided

# Searched on a frozen model, as `log_length` of `claims.lengths`.
LOG_SQUARE, SCALABLE, SCALABLE_BIAS = 'log_square', 'scalable_softmax', 'scalable_softmax_bias'
# In all heads of a frozen model, with the coefficients of their sources.
FIXED_FIT, FIXED_LOG_N, FIXED_YARN = 'fixed_log_length', 'fixed_log_ratio', 'fixed_yarn_temperature'
FIXED_INFO, FIXED_INKLING, FIXED_LLAMA = 'fixed_info_scale', 'fixed_log_position', 'fixed_log_floor'
FIXED_GROK, FIXED_SWAN = 'fixed_log_ratio_position', 'fixed_log_offset'
FIXED_ENTROPY = 'fixed_entropy'
# In place while the model was trained.
TRAINED_SCALABLE, TRAINED_ADAPTIVE = 'trained_scalable_softmax', 'trained_adaptive'

ROLES: Mapping[str, Shape] = dict.fromkeys(
    (
        *(LOG_SQUARE, SCALABLE, SCALABLE_BIAS),
        *(FIXED_FIT, FIXED_LOG_N, FIXED_YARN, FIXED_INFO, FIXED_INKLING, FIXED_LLAMA),
        *(FIXED_GROK, FIXED_SWAN, FIXED_ENTROPY),
        *(TRAINED_SCALABLE, TRAINED_ADAPTIVE),
    ),
    Shape.ONE,
)


def speaks_of(roles: Mapping[str, object]) -> bool:
    """True where some entry has a role of a law, without which nothing here is decided."""
    return any(roles.get(role) for role in ROLES)


def _lower(claim: Listed, law: str, other: str, name: str, than: str) -> Rule[Groups]:
    """The rule of a claim that a law's loss beyond L is lower than another's, for every seed, by
    more than the claim's margin. law, other: roles. name, than: both in words."""
    margin = claim.thresholds['nats']

    def measure(roles: Groups) -> Measured:
        difference = _beyond(roles[law]) - _beyond(roles[other])
        beyond = roles[law].multiples[roles[law].multiples > 1]
        measured = {
            f'{law}_minus_{other}_nats': by_length(beyond, difference.mean(axis=0)),
            'highest_of_the_seeds_nats': by_length(beyond, difference.max(axis=0)),
        }
        by_n = {f'at {m:g} L': Interval.of(difference[:, i]) for i, m in enumerate(beyond)}
        holds, numbers = all_decide(
            f'highest {name} - {than}', by_n, 'nats', lambda x: x.below(0, margin), highest=True
        )
        return measured, holds, numbers

    statement = (
        f'At every n > L measured {name} has a loss of the last L/2 positions lower than {than}, '
        f'for every seed; a difference of at most {margin} nats decides nothing, and {RULE}.'
    )
    return Rule(claim, statement, measure)


def _at_most(what: str, found: Mapping[str, Interval], nats: float) -> tuple[bool | None, Numbers]:
    """Whether no number lies above `nats`, and the one that decides it."""
    return all_decide(what, found, 'nats', lambda one: one.at_most(nats), highest=True)


def _beyond(group: Group) -> np.ndarray:
    """[seeds, n > L] loss of the last L/2 positions in nats."""
    beyond = group.multiples > 1
    if not beyond.any():
        raise Undecided('no length beyond L was measured')
    return group.loss_tail[:, beyond]


def _fit_near_best(roles: Groups) -> Measured:
    fit, best = roles[FIXED_FIT], roles[UNIFORM]
    above_S = fit.loss_window - best.loss_window
    beyond = fit.multiples > 1
    if not beyond.any():
        raise Undecided('no length beyond L was measured')
    above = above_S.mean(axis=0)[beyond]
    holds = bool((above <= FIT_NEAR_BEST.thresholds['nats']).all())
    by_n = {f'at {m:g} L': above_S[:, i] for i, m in enumerate(fit.multiples) if beyond[i]}
    numbers = decisive('highest fit - best uniform', by_n, 'nats', highest=True)
    measured = by_length(fit.multiples[beyond], above)
    return {'fit_minus_best_uniform_nats': measured}, holds, numbers


def _square_serves_headscale(roles: Groups) -> Measured:
    law = roles[LOG_SQUARE]
    searches = told(roles.by_multiple(HEADSCALE))
    above = {name: law.loss_window - g.loss_window for name, _, g in searches}
    measured = {name: by_length(law.multiples, x.mean(axis=0)) for name, x in above.items()}
    margin = LOG_SQUARE_SERVES_HEADSCALE.thresholds['nats']
    by_n = {
        f'{name}, at {m:g} L': Interval.of(x[:, i])
        for name, x in above.items()
        for i, m in enumerate(law.multiples)
    }
    holds, numbers = _at_most('highest 1 + a x + b x^2 -', by_n, margin)
    return {'log_square_minus_headscale_nats': measured}, holds, numbers


def _square_serves_tail(roles: Groups) -> Measured:
    law = roles[LOG_SQUARE]
    above = {
        multiple: law.loss_tail[:, index] - g.loss_tail[:, index]
        for multiple, g in roles.by_multiple(HEADSCALE).items()
        if (index := g.at(multiple)) is not None
    }
    if not above:
        raise Undecided('no search of HeadScale has windows of its length')
    margin = LOG_SQUARE_SERVES_TAIL.thresholds['nats']
    measured = {f'{multiple:g} L': values.tolist() for multiple, values in above.items()}
    by_n = {f'at {multiple:g} L': Interval.of(values) for multiple, values in above.items()}
    holds, numbers = _at_most('highest 1 + a x + b x^2 - HeadScale', by_n, margin)
    return {'log_square_minus_headscale_by_seed_nats': measured}, holds, numbers


def _lower_than_base(claim: Listed, law: str, name: str) -> Rule[Groups]:
    return _lower(claim, law, BASE, name, 'the base model')


RULES: tuple[Rule[Groups], ...] = (
    _lower_than_base(others.FIT_EXTENDS, FIXED_FIT, '1 + 0.397 ln(n/L)'),
    Rule(
        FIT_NEAR_BEST,
        'At every n > L measured the mean loss over the window with 1 + 0.397 ln(n/L) is at most '
        f'{FIT_NEAR_BEST.thresholds["nats"]} nats above that with the best uniform multiplier for '
        'n (means over seeds).',
        _fit_near_best,
    ),
    _lower_than_base(others.LOG_N_EXTENDS, FIXED_LOG_N, 'ln n / ln L'),
    _lower_than_base(others.GROK_EXTENDS, FIXED_GROK, 'max(1, ln i / ln L)'),
    _lower_than_base(others.YARN_TEMPERATURE_EXTENDS, FIXED_YARN, "YaRN's temperature"),
    _lower_than_base(others.INFO_SCALE_EXTENDS, FIXED_INFO, 'InfoScale'),
    _lower(others.INFO_SCALE_BEATS_LOG_N, FIXED_INFO, FIXED_LOG_N, 'InfoScale', 'ln n / ln L'),
    _lower_than_base(others.LLAMA_EXTENDS, FIXED_LLAMA, "Llama 4's staircase"),
    _lower_than_base(others.INKLING_EXTENDS, FIXED_INKLING, '1 + 0.1 ln(max(i/L, 1))'),
    _lower_than_base(others.SWAN_EXTENDS, FIXED_SWAN, 'ln(a + i) / ln a'),
    _lower_than_base(others.ENTROPY_EXTENDS, FIXED_ENTROPY, 'the temperature by entropy'),
    _lower_than_base(others.SCALABLE_EXTENDS, TRAINED_SCALABLE, 'the model trained with s ln i'),
    _lower(
        others.SCALABLE_BIAS_HURTS,
        SCALABLE,
        SCALABLE_BIAS,
        's ln i, searched with the weights frozen,',
        's ln i + b, searched in the same way',
    ),
    _lower(
        others.ADAPTIVE_BEATS_SCALABLE,
        TRAINED_ADAPTIVE,
        TRAINED_SCALABLE,
        'the model trained with an adaptive temperature',
        'that trained with s ln i',
    ),
    Rule(
        LOG_SQUARE_SERVES_HEADSCALE,
        'At every n measured the mean loss over the window with 1 + a x + b x^2 is at most '
        f'{LOG_SQUARE_SERVES_HEADSCALE.thresholds["nats"]} nats above that of any search of '
        f'HeadScale, for every seed; {RULE}.',
        _square_serves_headscale,
    ),
    Rule(
        LOG_SQUARE_SERVES_TAIL,
        'In windows of the length that HeadScale was searched at, the loss of the last L/2 '
        'positions with 1 + a x + b x^2 is at most '
        f'{LOG_SQUARE_SERVES_TAIL.thresholds["nats"]} nats above that of HeadScale, for every seed '
        f'and every length searched at; {RULE}.',
        _square_serves_tail,
    ),
)
