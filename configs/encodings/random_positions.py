"""Loss against window length: encodings trained on positions 0, 1, 2 ... and on random ones.

    nope run random_positions:quick --workdir=work/quick

Randomised positions (Ruoss et al., 2023, arXiv 2305.16843): every training sequence of L tokens has
a sorted random subset of the positions below 8 L. Windows of n tokens have positions spread evenly
over that range. A learned table that was trained on the first L positions has nothing for others,
and is measured with random ones only.

Quick: two CPU cores, 7 minutes after one_search and encodings in one work folder. Result (one
seed): random positions take RoPE at 8 L from 3.15 to 2.14 nats and cost 0.06 at L. No encoding
stays level.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from configs.shared import base, models, pieces

TIMES = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
AS_COUNTED, RANDOM = 'trained on positions 0, 1, 2 ...', 'on random positions below 8 L'


def get_config(size: str = 'quick') -> ConfigDict:
    config = base.experiment('random_positions', size)
    reach = max(TIMES)
    encodings: dict[str, tuple[str, dict]] = {
        'rope': ('RoPE', models.ROPE),
        'sinusoidal': ('sinusoidal', {'kind': 'sinusoidal'}),
        'learned': ('learned', {'kind': 'learned', 'size': round(reach * config.train.length)}),
    }
    config.runs = {'nope': pieces.base()}
    curves = [{'group': 'nope', 'label': 'NoPE', 'row': AS_COUNTED}]
    for name, (label, position) in encodings.items():
        if name != 'learned':
            config.runs[name] = pieces.base(position)
            curves.append({'group': name, 'label': label, 'row': AS_COUNTED})
        config.runs[f'{name}_random'] = {
            'init': placeholder(str),
            'model': {'position': position},
            'train': {'random_positions': reach},
        }
        curves.append({'group': f'{name}_random', 'label': label, 'row': RANDOM})
    for name in config.runs:
        config.evals[f'{name}/'] = {'kind': 'lengths', 'run': name, 'times': TIMES}
    config.figure = {'kind': 'length_curves', 'curves': tuple(curves)}
    return config
