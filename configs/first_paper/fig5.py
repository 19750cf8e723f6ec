"""Figure 5: searched multiplier of every head against its entropy at the last position.

    nope run fig5:quick --workdir=work/quick

HeadScale at four times the training length; a regression line per layer. A larger multiplier lowers
the entropy of its own head, so the claim is about the entropy of the same heads without them.

Quick: two CPU cores; fig2, fig3, fig4, fig5 and fig10 take a minute together after fig1. Result,
five seeds: r is -0.16 to 0.64. Under the multipliers it is negative in four of them, as the paper
draws it.
"""

from ml_collections import ConfigDict

from configs.shared import base, pieces, released

TIMES = 4.0


@released.also
def get_config(size: str = 'quick') -> ConfigDict:
    config = base.experiment('fig5', size)
    config.runs = {'nope': pieces.base()}
    headscale = pieces.add_headscale(config, TIMES)
    config.evals['headscale'] = {'run': headscale, 'times': TIMES}
    config.evals['nope'] = {'run': 'nope', 'times': TIMES}
    config.figure = {
        'kind': 'multiplier_entropy',
        'record': 'headscale',
        'control': 'nope',
        'label': 'HeadScale',
    }
    if size == 'paper':
        config.figure.layers = (1, 4, 7, 10, 13, 16, 19)
    return config
