"""Loss against window length under five position encodings, and with RoPE in three layers of four.

    nope run encodings:quick --workdir=work/quick

Windows of L to 8 L end at the same tokens. A row of ENCODINGS is all that another encoding needs.

Quick: two CPU cores, 3 minutes a model. Result (one seed): ALiBi is level to 8 L
(1.26 nats). NoPE and T5's bias rise to 2.7 nats, RoPE to 3.15.
"""

from ml_collections import ConfigDict

from configs.shared import base, models, pieces

TIMES = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
ENCODINGS: dict[str, tuple[str, dict]] = {
    'none': ('NoPE', models.NOPE),
    'rope': ('RoPE', models.ROPE),
    'alibi': ('ALiBi', models.ALIBI),
    't5': ('T5 bias', {'kind': 't5'}),
    'sinusoidal': ('sinusoidal', {'kind': 'sinusoidal'}),
}


def get_config(size: str = 'quick') -> ConfigDict:
    config = base.experiment('encodings', size)
    config.runs = {name: pieces.base(position) for name, (_, position) in ENCODINGS.items()}
    mixed = ({'position': models.ROPE},) * 3 + ({'position': models.NOPE},)
    config.runs['mixed'] = {'model': {'pattern': mixed}}
    for name in config.runs:
        config.evals[f'{name}/'] = {'kind': 'lengths', 'run': name, 'times': TIMES}
    labels = {name: label for name, (label, _) in ENCODINGS.items()}
    labels['mixed'] = 'RoPE, NoPE every fourth layer'
    curves = tuple({'group': name, 'label': label} for name, label in labels.items())
    config.figure = {'kind': 'length_curves', 'curves': curves}
    return config
