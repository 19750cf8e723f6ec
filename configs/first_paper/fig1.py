"""Figure 1: attention entropy and loss by position, with and without position encoding.

    nope run fig1:quick --workdir=work/quick
    nope run fig1:quick,books --workdir=work/quick    (English: configs/books/README.md)

NoPE as trained and with one multiplier for all heads, RoPE as trained and with dynamic NTK, from
position 1 to four times the training length (`paper`: twice).

Quick: two CPU cores, 4 minutes with the installation (tools/quickstart). Result, five seeds: the
multiplier lowers NoPE's loss up to 4 L by 0.33 nats. NoPE is 0.19 nats behind RoPE inside L, where
the paper has them level. On books 0.12 and 0.13.

Small: 20 minutes of one core a model. Result, three seeds: the loss rises from 1.3 L of NoPE and
1.2 L of RoPE. NoPE is 0.17 nats behind.
"""

from ml_collections import ConfigDict

from configs.shared import base, books, models, pieces, released


@books.also
@released.also
def get_config(size: str = 'quick') -> ConfigDict:
    config = base.experiment('fig1', size)
    times = 2.0 if size == 'paper' else 4.0
    config.runs = {'nope': pieces.base(), 'rope': pieces.base(models.ROPE)}
    config.evals = {
        'nope': {'run': 'nope', 'times': times},
        'rope': {'run': 'rope', 'times': times},
        'rope_ntk': {'run': 'rope', 'times': times, 'position': models.DYNAMIC_NTK},
    }
    config.evals['nope_uniform'] = {'run': 'nope', 'times': times, **pieces.uniform(config, times)}
    curves = (
        {'record': 'nope', 'label': 'NoPE'},
        {'record': 'nope_uniform', 'label': 'NoPE, one multiplier'},
        {'record': 'rope', 'label': 'RoPE'},
        {'record': 'rope_ntk', 'label': 'RoPE, dynamic NTK'},
    )
    roles = {'base': 'nope', 'uniform': ('nope_uniform',), 'rope': 'rope', 'ntk': 'rope_ntk'}
    panels = ({'title': '', 'curves': curves},)
    config.figure = {'kind': 'entropy_loss', 'panels': panels, 'roles': roles}
    return config
