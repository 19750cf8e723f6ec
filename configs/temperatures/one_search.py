"""Loss against window length: one search of a law against HeadScale searched at each length.

    nope run one_search:quick --workdir=work/quick

Windows of L to 8 L end at the same tokens, on the NoPE model of fig1. HeadScale is searched at four
lengths up to 8 L. The laws 1 + a x and 1 + a x + b x^2, x = ln(n / L), are searched once each.
Three seeds; `--config.seeds="(0,)"` for one. `paper` has no 6 L, for whose search it has no start.

Quick: two CPU cores, 15 minutes. Result, three seeds: one number a head is within 0.005 nats of the
best of HeadScale's four searches at every length.
"""

from ml_collections import ConfigDict

from configs.shared import base, pieces, released
from configs.temperatures.fig_dynamic import TIMES

APART = (2.0, 4.0, 6.0, 8.0)  # lengths of one search each, in L
SEARCHED = (1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
LAWS = {'log_length': '1 + a x', 'log_square': '1 + a x + b x^2'}


@released.also
def get_config(size: str = 'quick') -> ConfigDict:
    config = base.experiment('one_search', size)
    config.seeds = (0, 1, 2)
    config.runs = {'nope': pieces.base()}
    labels = {'nope': 'base'}
    apart = [times for times in APART if times in pieces.PAPER_STARTS or size != 'paper']
    headscale = {int(times): pieces.add_headscale(config, times) for times in apart}
    for times, run in headscale.items():
        labels[run] = f'HeadScale searched at {times} L'
    for law, words in LAWS.items():
        config.runs[law] = {'init': 'nope', 'search': {'law': law, 'times': SEARCHED}}
        labels[law] = f'{words} searched up to 8 L'
    for run in labels:
        config.evals[f'{run}_loss/'] = {'kind': 'lengths', 'run': run, 'times': TIMES}
    config.figure = {
        'kind': 'length_curves',
        'curves': tuple({'group': f'{run}_loss', 'label': label} for run, label in labels.items()),
        'roles': {
            'base': 'nope_loss',
            'headscale': {times: f'{run}_loss' for times, run in headscale.items()},
            'log_length': 'log_length_loss',
            'log_square': 'log_square_loss',
        },
    }
    return config
