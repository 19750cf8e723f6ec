"""Figure 3: entropy of every head, as trained, with HeadScale, and with one multiplier for all.

    nope run fig3:quick --workdir=work/quick

Three layers (first, middle, last; at paper size 0, 10 and 20) up to twice the training length.

Quick: two CPU cores; fig2, fig3, fig4, fig5 and fig10 take a minute together after fig1. Result,
five seeds: as trained the most concentrated head has 44 percent of the bound at L, in the paper 9.
"""

from ml_collections import ConfigDict

from configs.shared import base, pieces, released

TIMES = 2.0


@released.also
def get_config(size: str = 'quick') -> ConfigDict:
    config = base.experiment('fig3', size)
    config.runs = {'nope': pieces.base()}
    headscale = pieces.add_headscale(config, TIMES)
    config.evals['nope'] = {'run': 'nope', 'times': TIMES}
    config.evals['headscale'] = {'run': headscale, 'times': TIMES}
    config.evals['uniform'] = {'run': 'nope', 'times': TIMES, **pieces.uniform(config, TIMES)}
    config.figure = {
        'kind': 'heads',
        'rows': (
            {'record': 'nope', 'label': 'NoPE'},
            {'record': 'headscale', 'label': 'HeadScale'},
            {'record': 'uniform', 'label': 'one multiplier'},
        ),
    }
    if size == 'paper':
        config.figure.layers = (0, 10, 20)
    return config
