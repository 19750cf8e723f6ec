"""Loss against window length for models whose logits know the distance between query and key.

    nope run biases:quick --workdir=work/quick

Windows of L to 8 L end at the same tokens, as in encodings, whose NoPE, ALiBi and T5's bias are
shared. Measured are fixed and learned biases by distance, p-RoPE, and scale-invariant attention
over it. A RoPE pair turns only if it completes a cycle within L: the others would reach untrained
angles.

Quick: two CPU cores, 13 minutes after split in one work folder. Result (one seed): KERPLE and
Sandwich have 1.23 nats at 8 L, below ALiBi's 1.26. Scale-invariant p-RoPE has 1.35, p-RoPE without
it 2.26.
"""

from ml_collections import ConfigDict

from configs.encodings.encodings import TIMES
from configs.shared import base, models, pieces

BASE = 10_000.0
# The pairs whose wavelength 2 pi BASE^(2j / H) is at most L, over H / 2.
TURNING = {'quick': 3 / 8, 'small': 6 / 16, 'medium': 7 / 16, 'large': 16 / 32, 'paper': 21 / 32}


def get_config(size: str = 'quick') -> ConfigDict:
    config = base.experiment('biases', size)
    turning = {'share': TURNING[size], 'base': BASE}
    compared: dict[str, tuple[str, dict]] = {
        'none': ('NoPE', models.NOPE),
        'alibi': ('ALiBi', models.ALIBI),
        't5': ('T5 bias', {'kind': 't5'}),
        'kerple': ('KERPLE', {'kind': 'kerple'}),
        'sandwich': ('Sandwich', {'kind': 'sandwich'}),
        'p_rope': ('p-RoPE', {**models.ROPE, **turning}),
        'scale_invariant': ('scale-invariant p-RoPE', {'kind': 'scale_invariant', **turning}),
    }
    config.runs = {name: pieces.base(position) for name, (_, position) in compared.items()}
    for name in compared:
        config.evals[f'{name}/'] = {'kind': 'lengths', 'run': name, 'times': TIMES}
    curves = tuple({'group': name, 'label': label} for name, (label, _) in compared.items())
    config.figure = {'kind': 'length_curves', 'curves': curves}
    return config
