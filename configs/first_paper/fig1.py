"""Figure 1: attention entropy and loss by position, with and without position encoding.

    nope run fig1:quick --workdir=work/quick

NoPE as trained and with one multiplier for all heads, rotary as trained and with dynamic NTK,
from position 1 to twice the training length (quick and small: four times).

Quick: two CPU cores, 3 min 38 s with the installation (tools/quickstart). Result, three seeds: loss
and entropy of NoPE bend together at L (1.0 and 1.1 L); rotary's loss rises from 1.3 to 1.5 L, where
the paper has 1.2 and 1.1 L. The best uniform multiplier lowers NoPE's loss over (2L, 4L] from 2.82
to 2.17 nats and costs 0.10 over (0, L]. No in-domain parity: 1.38 nats against rotary's 1.19 over
(L/2, L].

Small: 20 minutes of one core a model. Result, three seeds: NoPE's loss rises from 1.3 L, that of
rotary from 1.2 L; the multiplier moves both bends of NoPE outward for every seed; 1.16 nats against
rotary's 0.99 over (L/2, L].
"""

from ml_collections import ConfigDict

from configs.shared import base, models, pieces, released


@released.also
def get_config(size: str = 'quick') -> ConfigDict:
    config = base.experiment('fig1', size)
    times = 2.0 if size == 'paper' else 4.0
    config.runs = {'nope': pieces.base(), 'rope': pieces.base(models.ROTARY)}
    config.evals = {
        'nope': {'run': 'nope', 'times': times},
        'rope': {'run': 'rope', 'times': times},
        'rope_ntk': {'run': 'rope', 'times': times, 'position': models.DYNAMIC_NTK},
    }
    config.evals['nope_uniform'] = {
        'run': 'nope',
        'times': times,
        **pieces.uniform(config, times),
    }
    curves = (
        {'record': 'nope', 'label': 'NoPE'},
        {'record': 'nope_uniform', 'label': 'NoPE, one multiplier'},
        {'record': 'rope', 'label': 'RoPE'},
        {'record': 'rope_ntk', 'label': 'RoPE, dynamic NTK'},
    )
    roles = {'base': 'nope', 'uniform': ('nope_uniform',), 'rotary': 'rope', 'ntk': 'rope_ntk'}
    panels = ({'title': '', 'curves': curves},)
    config.figure = {'kind': 'entropy_loss', 'panels': panels, 'roles': roles}
    return config
