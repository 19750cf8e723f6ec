"""Figure 4: one multiplier for all heads against one per head, at four times the training length.

    nope run fig4:quick --workdir=work/quick
    nope run fig4:quick,books --workdir=work/quick    (English: configs/books/README.md)

The search begins from the best uniform multiplier on validation windows (paper size: 1.6).

Quick: two CPU cores; fig2, fig3, fig4, fig5 and fig10 take a minute together after fig1. Result,
five seeds: HeadScale is 0.05 to 0.15 nats below the multiplier at 4 L. Over (0, L] it is 0.005 to
0.03 behind, against the paper. On books it is 0.22 to 0.61 below, and 0.03 to 0.07 behind.
"""

from ml_collections import ConfigDict

from configs.shared import base, books, pieces, released

TIMES = 4.0


@books.also
@released.also
def get_config(size: str = 'quick') -> ConfigDict:
    config = base.experiment('fig4', size)
    config.runs = {'nope': pieces.base()}
    headscale = pieces.add_headscale(config, TIMES)
    config.evals['uniform'] = {'run': 'nope', 'times': TIMES, **pieces.uniform(config, TIMES)}
    config.evals['headscale'] = {'run': headscale, 'times': TIMES}
    curves = (
        {'record': 'uniform', 'label': 'one multiplier'},
        {'record': 'headscale', 'label': 'HeadScale'},
    )
    roles = {'uniform': ('uniform',), 'headscale': {int(TIMES): 'headscale'}}
    panels = ({'title': '', 'curves': curves},)
    config.figure = {'kind': 'entropy_loss', 'panels': panels, 'roles': roles}
    return config
