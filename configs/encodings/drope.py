"""Loss against window length: a RoPE model whose rotation is dropped by more training at L.

    nope run drope:quick --workdir=work/quick

DroPE (arXiv 2512.12167): a RoPE model is trained on at L without its rotation, for a tenth and a
quarter of its steps. Both are measured as trained. The longer one also gets HeadScale searched at 4
L from 1, or a log-length lambda searched up to 8 L. Beside it stand RoPE, NoPE from scratch, and
one training that drops its rotation after three quarters of its steps.

Quick: two CPU cores, 5 minutes after one_search and encodings in one work folder. Result (one
seed): a quarter more training leaves 1.76 nats at L, where RoPE has 1.27. At 8 L it has 2.31, where
RoPE has 3.15.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from configs.shared import base, models, pieces, splits

TIMES = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
SHARES = {0.1: 'a tenth', 0.25: 'a quarter'}


def get_config(size: str = 'quick') -> ConfigDict:
    config = base.experiment('drope', size)
    config.runs = {'nope': pieces.base(), 'rope': pieces.base(models.ROPE)}
    config.runs['dropped'] = {
        'init': placeholder(str),
        'model': {'position': models.ROPE},
        'drop_at': 1 - max(SHARES),
    }
    labels = {
        'nope': 'NoPE',
        'rope': 'RoPE',
        'dropped': 'rotation dropped after 3/4 of its training',
    }
    for share, words in SHARES.items():
        name = drop(config, share)
        labels[name] = f'rotation dropped, {words} more training'
    longest = drop(config, max(SHARES))
    config.runs[f'{longest}_headscale'] = {
        'init': longest,
        'search': {'law': 'constant', 'times': (4.0,)},
    }
    labels[f'{longest}_headscale'] = 'the latter, HeadScale at 4 L'
    labels[splits.add_log_length(config, longest)] = 'the latter, log-length lambda'
    for name in labels:
        config.evals[f'{name}/'] = {'kind': 'lengths', 'run': name, 'times': TIMES}
    config.figure = {
        'kind': 'length_curves',
        'curves': tuple({'group': name, 'label': label} for name, label in labels.items()),
        'roles': {'base': longest, 'log_length': f'{longest}_log'},
    }
    return config


def drop(config: ConfigDict, share: float) -> str:
    """The RoPE model trained on without rotation for `share` of its steps; returns its name."""
    name = f'drope_{round(100 * share)}'
    config.runs[name] = {
        'init': 'rope',
        'model': {'position': models.NOPE},
        'finetune': pieces.more_training(config, share),
    }
    return name
