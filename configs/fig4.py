"""Figure 4: one scale for all heads against one per head, at four times the training length.

    python -m experiments.run --config=configs/fig4.py:quick --workdir=work/quick

The search begins from the best uniform scale on validation windows (paper size: 1.6).
"""

from ml_collections import ConfigDict

from configs import base, pieces

TIMES = 4.0


def get_config(size: str = 'quick') -> ConfigDict:
    config = base.experiment('fig4', size)
    config.runs = {'nope': pieces.base()}
    headscale = pieces.add_headscale(config, TIMES)
    config.evals['uniform'] = {'run': 'nope', 'times': TIMES, **pieces.uniform(config, TIMES)}
    config.evals['headscale'] = {'run': headscale, 'times': TIMES}
    curves = (
        {'record': 'uniform', 'label': 'one scale'},
        {'record': 'headscale', 'label': 'HeadScale'},
    )
    config.figure = {'kind': 'entropy_loss', 'panels': ({'title': '', 'curves': curves},)}
    return config
