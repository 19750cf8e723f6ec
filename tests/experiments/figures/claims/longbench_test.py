"""Claims about LongBench, where they hold and where they do not."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.figures import KINDS, Claim, FigureInput
from tests.experiments.figures import synthetic

ROWS = ('RoPE', 'NoPE', 'HeadScale 2 L', 'HeadScale 4 L', 'HeadScale 9 L')
ROLES = {
    'base': 'NoPE',
    'rotary': 'RoPE',
    'headscale': {2: 'HeadScale 2 L', 4: 'HeadScale 4 L', 9: 'HeadScale 9 L'},
}


def claims(means, roles=ROLES) -> dict[str, Claim]:
    """means: of a row, or of each of its seeds."""
    records, rows = {}, []
    for label, mean in zip(ROWS, means, strict=True):
        for seed, value in enumerate(np.atleast_1d(mean)):
            records[f'{label}/seed{seed}'] = synthetic.longbench_records([value] * 16, seed=seed)
        rows.append({'label': label, 'record': f'{label}/'})
    given = FigureInput('f', records, {'rows': rows, 'roles': roles})
    return {claim.id: claim for claim in KINDS['longbench_table'].draw(given).claims}


@pytest.mark.parametrize(
    ('means', 'nope', 'shortest'),
    [
        ((16.5, 18.3, 18.5, 17.2, 17.0), True, True),  # the paper's
        ((18.3, 16.5, 17.0, 17.2, 18.5), False, False),
        ((16.5, 16.6, 18.5, 17.2, 18.4), None, None),
        ((16.5, (16.0, 19.0, 18.0), 18.5, 17.2, 17.0), None, True),
    ],
)
def test_the_mean_of_the_tasks_decides(means, nope, shortest):
    if isinstance(means[1], tuple):
        means = tuple(np.broadcast_to(mean, 3) for mean in means)
    found = claims(means)
    assert (found['longbench_nope'].holds, found['longbench_shortest'].holds) == (nope, shortest)


def test_headlines_give_points():
    found = claims((16.5, 18.3, 18.5, 17.2, 17.0))
    assert found['longbench_nope'].headline == 'NoPE - RoPE, mean of 16 tasks 1.8 points'
    said = 'HeadScale at 2 L - best longer, that at 4 L 1.3 points'
    assert found['longbench_shortest'].headline == said


def test_without_the_roles_nothing_is_decided():
    found = claims((16.5, 18.3, 18.5, 17.2, 17.0), {'headscale': {2: 'HeadScale 2 L'}})
    assert {claim.verdict for claim in found.values()} == {'not measured'}
