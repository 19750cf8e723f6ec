"""Claims about LongBench, where they hold and where they do not."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.figures import KINDS, Decided, FigureInput
from tests.experiments.figures import synthetic

ROWS = ('RoPE', 'NoPE', 'HeadScale 2 L', 'HeadScale 4 L', 'HeadScale 9 L')
ROLES = {
    'base': 'NoPE',
    'rope': 'RoPE',
    'headscale': {2: 'HeadScale 2 L', 4: 'HeadScale 4 L', 9: 'HeadScale 9 L'},
}
PAPER = (16.5, 18.3, 18.5, 17.2, 17.0)


def claims(means, roles=ROLES) -> dict[str, Decided]:
    """means: of a row, or of each of its seeds."""
    records, rows = {}, []
    for label, mean in zip(ROWS, means, strict=True):
        for seed, value in enumerate(np.atleast_1d(mean)):
            records[f'{label}/seed{seed}'] = synthetic.longbench_records([value] * 16, seed=seed)
        rows.append({'label': label, 'record': f'{label}/'})
    given = FigureInput('f', records, {'rows': rows, 'roles': roles})
    return {claim.id: claim for claim in KINDS['longbench_table'].draw(given).claims}


@pytest.mark.parametrize(
    ('means', 'roles', 'nope', 'shortest'),
    [
        (PAPER, ROLES, 'holds', 'holds'),
        ((18.3, 16.5, 17.0, 17.2, 18.5), ROLES, 'does not hold', 'does not hold'),
        ((16.5, 16.6, 18.5, 17.2, 18.4), ROLES, 'undecided', 'undecided'),
        (
            ([16.5] * 3, (16.0, 19.0, 18.0), [18.5] * 3, [17.2] * 3, [17.0] * 3),
            ROLES,
            'undecided',
            'holds',
        ),
        (PAPER, {'headscale': {2: 'HeadScale 2 L'}}, 'not measured', 'not measured'),
    ],
)
def test_the_mean_of_the_tasks_decides(means, roles, nope, shortest):
    found = claims(means, roles)
    assert found['longbench_nope'].verdict == nope
    assert found['longbench_shortest'].verdict == shortest
    if means is PAPER and roles is ROLES:
        assert found['longbench_nope'].headline == 'NoPE - RoPE, mean of 16 tasks 1.8 points'
        said = 'HeadScale at 2 L - best longer, that at 4 L 1.3 points'
        assert found['longbench_shortest'].headline == said
