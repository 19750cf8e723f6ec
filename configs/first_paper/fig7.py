"""Figure 7: best uniform multiplier at every position, and its fit 1 + a ln(i / L).

    nope run fig7:quick --workdir=work/quick

Up to eight times the training length, after a fifth of the training and after all of it. Size
`released` has the second panel alone.

Quick: one CPU core, 16 minutes a seed after fig1 in one work folder. Result, five seeds: a is 0.51
to 0.59, where the paper has 0.40. After a fifth of the training the fit means nothing.
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
