"""State spaces as the local part of a hybrid: losses at L and 8 L, keys to 64 L, three seeds.

    nope run state_spaces:quick --workdir=work/quick

Three layers of every four are local and the fourth has attention without positions, as in
Nemotron-H and Granite 4 H. Local are Mamba-2 (arXiv 2405.21060), RoPE in a window of L / 2
(RNoPE-SWA) or forget gates. Beside them stands RoPE everywhere. Each is measured as trained and
with 1 + a ln(n / L), an a for each NoPE head, searched up to 8 L. Losses to 32 L and keys decide
whether a state space is a better local part than a window; limits were fixed before the run.

A layer of Mamba-2 has as many parameters as one of attention: its heads are those of attention, and
its states hold 32 numbers for each of their dimensions. Not run.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from configs.shared import models, pieces, splits

STATE = 32
MAMBA, WINDOW, GATES = 'mamba', 'window', 'gates'


def get_config(size: str = 'quick') -> ConfigDict:
    config = splits.experiment('state_spaces', size)
    config.seeds = (0, 1, 2)
    heads, width = config.model.heads, config.model.width
    mixer = {'kind': 'mamba2', 'heads': heads, 'head_dim': width // heads, 'state': STATE}
    local = {
        MAMBA: ('Mamba-2', {'mixer': mixer}),
        WINDOW: (
            'RoPE in a window',
            {'position': models.ROPE, 'window': config.train.length // 2},
        ),
        GATES: ('forget gates', {'position': splits.FORGET}),
    }
    labels = {}
    for run, (label, kind) in local.items():
        model = {'pattern': (kind,) * 3 + ({'position': models.NOPE},), 'lam_layers': 'nope'}
        config.runs[run] = {'init': placeholder(str), 'model': model}
        labels[run] = f'{label}, NoPE'
        labels[splits.add_log_length(config, run)] = f'{label}, NoPE, 1 + a x'
    config.runs['rope'] = pieces.base(models.ROPE)
    points = [splits.add_point(config, 'rope', 'RoPE')]
    points += [splits.add_point(config, run, label, reach=64.0) for run, label in labels.items()]
    roles = {'state_space': labels[MAMBA], 'window': labels[WINDOW]}
    config.figure = {'kind': 'frontier', 'points': tuple(points), 'roles': roles}
    return config
