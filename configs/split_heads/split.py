"""Loss against window length: heads split between local ones and ones without position.

    nope run split:quick --workdir=work/quick

Windows of L to 32 L end at the same tokens; no weight is trained beyond L. Measured are RoPE, NoPE,
ALiBi and forget gates in all heads, and half of each layer's heads with forget gates, the others
NoPE. The last also has p_h(n) = 1 + a_h ln(n / L), searched up to 8 L, on its NoPE half and on all
heads.

Quick: two CPU cores, 17 minutes after one_search in one work folder. Result (one seed): the split
has 1.277 nats at L and 1.279 at 32 L, forget gates in all heads 1.235 there. On text alone lambda
gains nothing.
"""

from ml_collections import ConfigDict

from configs.shared import base, splits

TIMES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
# Rows of panels: the first spans 2 nats, the second a tenth of one.
UNBOUND, LOCAL = 'no local heads', 'with local heads'


def get_config(size: str = 'quick') -> ConfigDict:
    config = base.experiment('split', size)
    splits.add_whole(config, *splits.WHOLE)
    half = splits.add_split(config, 'half_forget', splits.split(splits.FORGET))
    log = splits.add_log_length(config, half)
    everywhere = splits.add_log_length(config, half, heads='all')
    labels = {name: label for name, (label, _) in splits.WHOLE.items()} | {
        half: 'half forget gates, half NoPE',
        log: 'the same, log-length lambda on the NoPE half',
        everywhere: 'the same, log-length lambda on all heads',
    }
    for name in labels:
        config.evals[f'{name}/'] = {'kind': 'lengths', 'run': name, 'times': TIMES}
    config.figure = {
        'kind': 'length_curves',
        'curves': tuple(
            {'group': name, 'label': label, 'row': UNBOUND if name in ('nope', 'rope') else LOCAL}
            for name, label in labels.items()
        ),
        'roles': {'base': half, 'log_length': log},
    }
    return config
