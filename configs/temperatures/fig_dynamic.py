"""Loss against window length: constant multipliers and a length-aware lambda.

    nope run fig_dynamic:quick --workdir=work/quick
    nope run fig_dynamic:quick,books --workdir=work/quick    (English: configs/books/README.md)

Windows of L to 8 L end at the same tokens. Compared are no lambda, the best uniform multiplier for
each n, HeadScale (at 4 L and 8 L) and the law 1 + a ln(n / L) searched up to 4 L. Three seeds;
`--config.seeds="(0,)"` for one.

Quick: two CPU cores, 8 minutes a seed after fig1 and fig4 in one work folder. Result, five seeds:
the law costs nothing inside L and is level with the best of the others to 6 L, on books to 4 L.
HeadScale costs 0.11 nats at L or more. Searched at 8 L it is 0.026 below the law there, on books
0.063.
"""

from ml_collections import ConfigDict

from configs.shared import base, books, pieces, released

TIMES = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
SEARCHED = (1.5, 2.0, 3.0, 4.0)


@books.also
@released.also
def get_config(size: str = 'quick') -> ConfigDict:
    config = base.experiment('fig_dynamic', size)
    config.seeds = (0, 1, 2)
    config.runs = {'nope': pieces.base()}
    headscale = {int(times): pieces.add_headscale(config, times) for times in (4.0, 8.0)}
    log_length = pieces.add_log_length(config, SEARCHED)
    measured = {
        'base': 'nope',
        **{run: run for run in headscale.values()},
        'log_length': log_length,
    }
    for name, run in measured.items():
        config.evals[f'{name}/'] = {'kind': 'lengths', 'run': run, 'times': TIMES}
    config.evals['uniform/'] = {
        'kind': 'lengths',
        'run': 'nope',
        'times': TIMES,
        'grid': {'high': 2.6},
    }
    labels = {
        'base': 'base',
        'uniform': 'best uniform multiplier for each n',
        **{run: f'HeadScale searched at {times} L' for times, run in headscale.items()},
        'log_length': 'log-length searched up to 4 L',
    }
    config.figure = {
        'kind': 'length_curves',
        'curves': tuple({'group': name, 'label': label} for name, label in labels.items()),
        'roles': {
            'base': 'base',
            'uniform': 'uniform',
            'headscale': headscale,
            'log_length': 'log_length',
        },
    }
    return config
