"""What the paper says of passkey retrieval, tested on the panels of a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.figures.base import Claim
from experiments.figures.claims import NOPE
from experiments.figures.passkey_panel import Panel

FULL, NO_BOUND, NO_INIT = 'full', 'no_bound', 'no_init'
# Role -> percent inside the window (Table 4).
ROLES: Mapping[str, int] = {FULL: 81, NO_BOUND: 53, NO_INIT: 26}

# Of 800 prompts, which is 8 lengths with 10 depths and 10 tests, a share has a standard error of
# at most 0.018.
MARGIN = 0.1
# A length works from this mean accuracy on, and 'about twice the window' begins here.
WORKS = 0.5
REACH = 1.5
ABOVE = 0.9


def from_panels(panels: Sequence[Panel], roles: Mapping[str, Panel]) -> list[Claim]:
    """Every claim that `panels` can bear. roles: the panels of `ROLES`, as far as there are."""
    ablations = [roles[r].label for r in (NO_BOUND, NO_INIT) if r in roles]
    found = [
        ablation(roles),
        beyond_window([p for p in panels if p.label not in ablations]),
        inside_window(panels),
    ]
    return [claim for claim in found if claim is not None]


def ablation(roles: Mapping[str, Panel]) -> Claim | None:
    """Claim 8, of the full method and one ablation or both."""
    found = {role: roles[role].inside_mean for role in ROLES if role in roles}
    means = {role: mean for role, mean in found.items() if mean is not None}
    others = [role for role in means if role != FULL]
    if FULL not in means or not others:
        return None
    return Claim(
        8,
        'Starting from the best uniform scale matters (passkey 81 % to 26 % without), and so does '
        'the constraint on lambda (81 % to 53 % without; Table 4).',
        {
            'inside_window': {
                role: _inside(roles[role]) | {'paper': ROLES[role] / 100} for role in means
            },
            'full_minus_other': {role: means[FULL] - means[role] for role in others},
        },
        all(means[FULL] - means[role] > MARGIN for role in others),
        'Mean accuracy inside the window with the full method exceeds that of '
        f'{" and of ".join(others)} by more than {MARGIN} (means over seeds).',
    )


def beyond_window(panels: Sequence[Panel]) -> Claim | None:
    """The part of claim 10 that is about passkey retrieval, of panels that are no ablation."""
    chosen = [p for p in panels if p.encoding == NOPE]
    # The statement can be decided where prompts went that far, or where the panel fell short.
    decided = [
        p for p in chosen if p.lengths[-1] >= REACH * p.window or p.reach(WORKS) < p.lengths[-1]
    ]
    if not chosen:
        return None
    measured = {
        p.label: {
            'reach_over_window': p.reach(WORKS) / p.window,
            'by_seed': [reach / p.window for reach in p.reach_by_seed(WORKS)],
            'measured_up_to': int(p.lengths[-1]) / p.window,
        }
        for p in chosen
    }
    return Claim(
        10,
        'HeadScale does not extrapolate past its tuned length in perplexity, but passkey retrieval '
        'works to about twice the window for models without position encoding (Figure 6).',
        measured,
        all(p.reach(WORKS) >= REACH * p.window for p in decided) if decided else None,
        f'Passkey retrieval works to at least {REACH} windows for every model without position '
        'encoding, ablations aside; lengths are nominal. It works up to the longest length such '
        f'that the mean accuracy over depths is at least {WORKS} there and at every shorter '
        'length, 0 if there is none; panels that end earlier, and work to their end, decide '
        'nothing.',
    )


def inside_window(panels: Sequence[Panel]) -> Claim | None:
    """A reading outside the list of claims."""
    means = [p.inside_mean for p in panels if p.inside_mean is not None]
    if not means:
        return None
    return Claim(
        None,
        'The paper prints the mean accuracy inside the window above every panel of Figures 6, 8 '
        'and 9.',
        {p.label: _inside(p) | _paper(p) for p in panels if p.inside_mean is not None},
        min(means) > ABOVE,
        f'Mean accuracy over the cells inside the window is above {ABOVE} in every panel that has '
        'such cells.',
    )


def _inside(panel: Panel) -> dict[str, Any]:
    by_seed = panel.inside_by_seed
    assert by_seed is not None
    return {'mean': float(by_seed.mean()), 'by_seed': by_seed.tolist()}


def _paper(panel: Panel) -> dict[str, float]:
    return {} if panel.paper is None else {'paper': panel.paper / 100}
