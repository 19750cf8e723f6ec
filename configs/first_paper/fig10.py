"""Figure 10: entropy of every head of every layer by position, with HeadScale.

    nope run fig10:quick --workdir=work/quick

HeadScale at four times the training length, next to the bound log2(i).

Quick: two CPU cores; fig2, fig3, fig4, fig5 and fig10 take a minute together after fig1. Result,
three seeds: at the last position the lowest layer has 83 percent of the bound, the others 69.
"""

from ml_collections import ConfigDict

from configs.shared import base, pieces, released

TIMES = 4.0


@released.also
def get_config(size: str = 'quick') -> ConfigDict:
    config = base.experiment('fig10', size)
    config.runs = {'nope': pieces.base()}
    headscale = pieces.add_headscale(config, TIMES)
    config.evals['headscale'] = {'run': headscale, 'times': TIMES}
    config.figure = {'kind': 'head_entropy', 'record': 'headscale', 'label': 'HeadScale'}
    return config
