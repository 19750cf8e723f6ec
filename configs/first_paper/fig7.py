"""Figure 7: best uniform multiplier at every position, and its fit 1 + a ln(i / L).

    nope run fig7:quick --workdir=work/quick

Up to eight times the training length, after a fifth of the training and after all of it
(the paper's 10,000 and 50,000 steps; of the published models the second alone).

Quick: one CPU core, 16 minutes a seed after fig1 in one work folder. Result of three seeds: a is
0.44 to 0.58 with R^2 0.50 to 0.94 (the paper's a is 0.40); after a fifth of the training no
multiplier helps beyond 4 L, and the fit means nothing (a is -0.04 to 0.13, R^2 at most 0.34).
"""

from ml_collections import ConfigDict

from configs.shared import base, pieces, released

TIMES = 8.0
EARLY = 0.2  # share of the training steps; among train.keep


@released.also
def get_config(size: str = 'quick') -> ConfigDict:
    config = base.experiment('fig7', size)
    config.runs = {'nope': pieces.base()}
    # The best multiplier of a single position is noisy: more windows than a search needs.
    small_scale = {'high': 2.6, 'increment': 0.025, 'windows': 640}
    fine = {'increment': 0.01} if size == 'paper' else small_scale
    common = {'kind': 'multiplier_grid', 'run': 'nope', 'times': TIMES, 'grid': fine}
    config.evals = {'early': {**common, 'step_share': EARLY}, 'late': common}
    config.figure = {
        'kind': 'uniform_fit',
        'panels': (
            {'record': 'early', 'title': f'after {EARLY:.0%} of the training'},
            {'record': 'late', 'title': 'after all of the training'},
        ),
    }
    return config
