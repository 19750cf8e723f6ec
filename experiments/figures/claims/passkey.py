"""Claims about passkey retrieval by length and depth."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from experiments.figures.claims.catalogue import CLAIMS
from experiments.figures.claims.decide import Every, Measured, Rule
from experiments.figures.claims.headline import apart, number
from experiments.figures.claims.intervals import Interval
from experiments.figures.claims.verdict import ABOVE, AT_LEAST, BELOW, NEAR, RULE, Bound, every
from experiments.figures.read.passkey_panel import PasskeyPanel
from experiments.figures.roles import Roles, Shape, Undecided

FULL, NO_BOUND, NO_INIT, NOPE = 'full', 'no_bound', 'no_init', 'nope'
ROPE, ALIBI = 'rope', 'alibi'
ABLATED: Mapping[str, Shape] = {FULL: Shape.ONE, NO_BOUND: Shape.ONE, NO_INIT: Shape.ONE}
ROLES: Mapping[str, Shape] = {
    **ABLATED,
    NOPE: Shape.SEVERAL,  # models without position encoding, ablations aside
    ROPE: Shape.ONE,  # as it was trained
    ALIBI: Shape.SEVERAL,
}

WITHOUT: Mapping[str, str] = {NO_BOUND: 'without bound', NO_INIT: 'without initialisation'}

Panels = Roles[PasskeyPanel]


# A length works from this mean accuracy on.
LEAST = CLAIMS['passkey_reach'].thresholds['accuracy']


def _parts_matter(roles: Panels) -> dict[str, np.ndarray]:
    _works_inside(roles[FULL])
    inside = {}
    for role in ABLATED:
        share_S = roles[role].inside_by_seed
        if share_S is None:
            raise Undecided(f'{roles[role].label!r} has no prompts inside the window')
        inside[role] = 100 * share_S
    full_S = inside.pop(FULL)
    return {f'full - {WITHOUT[role]}': apart(full_S, x_S) for role, x_S in inside.items()}


def _reach(roles: Panels) -> Measured:
    windows, chosen = CLAIMS['passkey_reach'].thresholds['windows'], roles.several(NOPE)
    found: dict[str, np.ndarray] = {}
    holds: dict[str, bool | None] = {}
    measured = {}
    for p in chosen:
        if p.context == p.train_length:
            _works_inside(p)
        found[p.label] = _reaches(p)
        measured[p.label] = {
            'reach_over_window': p.reach(LEAST) / p.context,
            'by_seed': found[p.label].tolist(),
            'measured_up_to': int(p.lengths[-1]) / p.context,
        }
        # A seed that works to the end of prompts that end earlier decides nothing.
        ended = found[p.label] >= measured[p.label]['measured_up_to'] - 1e-9
        enough = [
            True if reach >= windows - 1e-9 else None if end else False
            for reach, end in zip(found[p.label], ended, strict=True)
        ]
        holds[p.label] = enough[0] if len(set(enough)) == 1 else None
    open_ = [label for label, held in holds.items() if held is None]
    fails = [label for label, held in holds.items() if held is False]
    shortest = min(fails or open_ or found, key=lambda label: found[label].mean())
    told = number(f'shortest reach, {shortest}', found[shortest], 'windows')
    told = dataclasses.replace(told, note=_ends(chosen).get(shortest, ''))
    return measured, every(holds.values()), (told,)


def _reaches(panel: PasskeyPanel) -> np.ndarray:
    """[S] in windows."""
    return np.array(panel.reach_by_seed(LEAST)) / panel.context


def _ends(panels: Sequence[PasskeyPanel]) -> dict[str, str]:
    """A note on the panels that work to the end of their prompts: how far is then not known."""
    return {
        p.label: 'the end of its prompts'
        for p in panels
        if all(reach == p.lengths[-1] for reach in p.reach_by_seed(LEAST))
    }


def _from_printed(roles: Panels) -> dict[str, np.ndarray]:
    away = {
        p.label: 100 * p.inside_by_seed - p.paper
        for p in roles.players.values()
        if p.inside_by_seed is not None and p.paper is not None
    }
    if not away:
        raise Undecided('the paper prints no mean of the models that are drawn')
    return away


def _rope_beyond(roles: Panels) -> dict[str, np.ndarray]:
    panel, first = roles[ROPE], CLAIMS['rope_passkey_fails'].thresholds['windows']
    _works_inside(panel)
    # A multiple of L such as 1.1 is not exact in binary.
    beyond = panel.lengths >= first * panel.train_length - 1e-6
    if not beyond.any():
        raise Undecided(f'{panel.label!r} has no prompts from {first:g} L on')
    shares = 100 * panel.by_seed[:, beyond].mean(axis=2).T
    return {
        f'at {length / panel.train_length:g} L': share_S
        for length, share_S in zip(panel.lengths[beyond], shares, strict=True)
    }


def _alibi_reaches(roles: Panels) -> dict[str, np.ndarray]:
    windows = CLAIMS['alibi_passkey_fails'].thresholds['windows']
    for panel in roles.several(ALIBI):
        _works_inside(panel)
        if panel.lengths[-1] < windows * panel.context:
            raise Undecided(f'{panel.label!r} has no prompts of {windows:g} windows')
    return {panel.label: _reaches(panel) for panel in roles.several(ALIBI)}


def _beginning(roles: Panels) -> Measured:
    """By prompts that are longer than L and within the window of the search."""
    panel, limits = roles[NO_INIT], CLAIMS['no_init_beginning'].thresholds
    lengths = panel.inside & (panel.lengths > panel.train_length)
    start = panel.depths < limits['share'] - 1e-9
    if not lengths.any() or not start.any() or start.all():
        raise Undecided(f'{panel.label!r} has no such prompts beyond L inside its window')
    near, far = (
        100 * panel.by_seed[:, lengths][:, :, depths].mean(axis=(1, 2))
        for depths in (start, ~start)
    )
    if near.mean() < 100 * LEAST:
        raise Undecided(
            f'{panel.label!r} repeats {near.mean():.0f} % of the keys at the beginning, not '
            f'{100 * LEAST:g} %'
        )
    ahead, others = Interval.of(near - far), Interval.of(far)
    measured = {'beginning_minus_others_points': ahead.stated(), 'others': others.stated()}
    holds = every(
        (
            Bound(ABOVE, limits['points']).holds(ahead),
            Bound(BELOW, 100 * limits['accuracy']).holds(others),
        )
    )
    numbers = (number('keys at the beginning', near, '%'), number('others', far, '%'))
    return measured, holds, numbers


def _works_inside(panel: PasskeyPanel) -> None:
    """Undecided for a model that does not retrieve inside its window: it has nothing to lose."""
    mean = panel.inside_mean
    if mean is None or mean < LEAST:
        share = 'none' if mean is None else f'{100 * mean:.0f} %'
        raise Undecided(
            f'{panel.label!r} repeats {share} of the keys inside its window, not {100 * LEAST:g} %'
        )


_BEGINNING = CLAIMS['no_init_beginning'].thresholds
RULES: tuple[Rule[Panels], ...] = (
    Rule(
        'parts_matter',
        'Mean accuracy inside the window with the full method, which repeats at least '
        f'{100 * LEAST:g} % of the keys there, less that without the bound and that without the '
        'initialisation',
        Every(_parts_matter, Bound(ABOVE, 'points'), '', 'points', each=True),
        tuple(ABLATED),
    ),
    Rule(
        'passkey_reach',
        f'Passkey retrieval works to at least {CLAIMS["passkey_reach"].thresholds["windows"]} '
        'windows for every model without position encoding, ablations aside; lengths are nominal. '
        'It works up to the longest length such that the mean accuracy over depths is at least '
        f'{LEAST} there and at every shorter length, 0 if there is none. Decided for each seed, if '
        'models as trained work in their window; where seeds disagree nothing is, nor by panels '
        'that end earlier and work to their end.',
        _reach,
        (NOPE,),
        Bound(AT_LEAST, CLAIMS['passkey_reach'].thresholds['windows']),
        'windows',
    ),
    Rule(
        'passkey_inside',
        'Mean accuracy over the cells inside the window (over seeds too) less the one that the '
        'paper prints, in every panel whose model the paper has',
        Every(_from_printed, Bound(NEAR, 'points'), "furthest from the paper's mean", 'points'),
        (NOPE,),
    ),
    Rule(
        'rope_passkey_fails',
        f'Keys repeated by the RoPE model as trained, which repeats at least {100 * LEAST:g} % '
        'inside L, at every length from '
        f'{CLAIMS["rope_passkey_fails"].thresholds["windows"]:g} L on',
        Every(_rope_beyond, Bound(BELOW, 'percent'), 'most keys repeated', '%'),
        (ROPE,),
    ),
    Rule(
        'alibi_passkey_fails',
        'Reach of every model with ALiBi, which works inside its window, as in the claim that '
        'models without position encoding reach beyond it',
        Every(
            _alibi_reaches,
            Bound(BELOW, 'windows'),
            'furthest reach',
            'windows',
            notes=lambda roles: _ends(roles.several(ALIBI)),
        ),
        (ALIBI,),
    ),
    Rule(
        'no_init_beginning',
        'In prompts longer than L and within the window of the search, without the initialisation '
        f'keys in the first {100 * _BEGINNING["share"]:g} % of the text are repeated more often '
        f'than the others, by more than {_BEGINNING["points"]:g} points, and fewer than half of '
        f'the others are. A model that repeats fewer than {100 * LEAST:g} % of those at the '
        f'beginning decides nothing, and {RULE}.',
        _beginning,
        (NO_INIT,),
    ),
)
