"""Loss against window length: learned positions that a trained NoPE model gets by more training.

    nope run learned_later:quick --workdir=work/quick

The table of positions starts at 0, so that step 0 is the NoPE model itself. It is trained for a
quarter of the pre-training's steps, with the weights or alone. Beside it stand the same training
without positions and RoPE from scratch. Rows beyond L, which no training reaches, stay 0.

Quick: two CPU cores, 2 minutes after one_search and encodings in one work folder. Result (one
seed): NoPE trained on as long without it is 0.140 nats above RoPE at L. The table restores 0.012
of them, and costs 0.1 beyond L. Alone it changes nothing.
"""

from ml_collections import ConfigDict

from configs.shared import base, models, pieces

TIMES = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
SHARE = 0.25


def get_config(size: str = 'quick') -> ConfigDict:
    config = base.experiment('learned_later', size)
    learned = {'kind': 'learned', 'size': round(max(TIMES) * config.train.length)}
    config.runs = {
        'nope': pieces.base(),
        'rope': pieces.base(models.ROPE),
        'nope_more': {'init': 'nope', 'finetune': pieces.more_training(config, SHARE)},
        'learned': {
            'init': 'nope',
            'model': {'position': learned},
            'finetune': pieces.more_training(config, SHARE),
        },
        'learned_alone': {
            'init': 'nope',
            'model': {'position': learned},
            'finetune': {**pieces.more_training(config, SHARE), 'trains': 'position'},
        },
    }
    labels = {
        'nope': 'NoPE',
        'nope_more': 'NoPE, a quarter more training',
        'learned': 'learned positions, a quarter more training',
        'learned_alone': 'learned positions trained alone',
        'rope': 'RoPE',
    }
    for name in labels:
        config.evals[f'{name}/'] = {'kind': 'lengths', 'run': name, 'times': TIMES}
    curves = tuple({'group': name, 'label': label} for name, label in labels.items())
    config.figure = {'kind': 'length_curves', 'curves': curves}
    return config
