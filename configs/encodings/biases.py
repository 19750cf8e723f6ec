"""Loss against window length for models whose logits know the distance between query and key.

    nope run biases:quick --workdir=work/quick

n / L from 1 to 8 on windows that end at the same tokens, as in `encodings`, whose models of NoPE,
ALiBi and T5's bias are these too: biases by distance, fixed and learned; p-RoPE; and
scale-invariant attention over it. Of the rotary pairs those turn that complete a cycle within L:
at longer windows all others reach angles that no training has shown.

Quick: two CPU cores, 13 minutes after split in one work folder, next to other work. Result (one
seed), at L and 8 L: scale-invariant p-RoPE 1.252 and 1.342, p-RoPE without it 1.275 and 2.255,
KERPLE 1.281 and 1.226, Sandwich 1.271 and 1.229, ALiBi 1.316 and 1.261.
"""

from ml_collections import ConfigDict

from configs.encodings.encodings import TIMES
from configs.shared import base, models, pieces

BASE = 10_000.0
# The pairs whose wavelength 2 pi BASE^(2j / H) is at most L, over H / 2.
TURNING = {'quick': 3 / 8, 'small': 6 / 16, 'medium': 7 / 16, 'paper': 21 / 32}


def get_config(size: str = 'quick') -> ConfigDict:
    config = base.experiment('biases', size)
    turning = {'share': TURNING[size], 'base': BASE}
    compared: dict[str, tuple[str, dict]] = {
        'none': ('NoPE', models.NOPE),
        'alibi': ('ALiBi', models.ALIBI),
        't5': ('T5 bias', {'kind': 't5'}),
        'kerple': ('KERPLE', {'kind': 'kerple'}),
        'sandwich': ('Sandwich', {'kind': 'sandwich'}),
        'p_rope': ('p-RoPE', {**models.ROTARY, **turning}),
        'scale_invariant': ('scale-invariant p-RoPE', {'kind': 'scale_invariant', **turning}),
    }
    config.runs = {name: pieces.base(position) for name, (_, position) in compared.items()}
    for name in compared:
        config.evals[f'{name}/'] = {'kind': 'lengths', 'run': name, 'times': TIMES}
    curves = tuple({'group': name, 'label': label} for name, (label, _) in compared.items())
    config.figure = {'kind': 'length_curves', 'curves': curves}
    return config
