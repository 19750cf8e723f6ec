"""State spaces as the local part of a hybrid: losses at L and 8 L, keys to 64 L, three seeds.

    nope run state_spaces:quick --workdir=work/quick

Three layers of every four are local and the fourth has attention without positions, as in
Nemotron-H and Granite 4 H. Local are Mamba-2 (arXiv 2405.21060), RoPE in a window of L / 2
(RNoPE-SWA) or forget gates. Beside them stands RoPE everywhere. Each is measured as trained and
with 1 + a ln(n / L), an a for each NoPE head, searched up to 8 L. Losses to 32 L and keys decide
whether a state space is a better local part than a window; limits were fixed before the run.

Mamba-2 has the heads of attention, and 32 numbers of state for each of their dimensions: at quick
as many parameters as attention, at other sizes 0.8 to 1.35 times. Weight decay is of matrices
alone, since it would shorten the memory of states.

Quick: two hours of two CPU cores, an Intel Xeon (family 6, model 167) that did other work besides.
Result, three seeds: state spaces are 0.13 nats above windows at 32 L and retrieve 0 to 18 percent
of the keys at 64 L. Forget gates retrieve all of them. Windows have the lowest loss, and find keys
only near the question.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from configs.shared import base, models, pieces, splits

STATE = 32
MAMBA, WINDOW, GATES = 'mamba', 'window', 'gates'


def get_config(size: str = 'quick') -> ConfigDict:
    config = splits.experiment('state_spaces', size)
    config.seeds = (0, 1, 2)
    config.train.decayed = 'matrices'
    if pieces.is_paper(config):  # a state space needs whole sequences: devices share heads
        config.compute.later_mesh = base.mesh_sizes(base.AXES, (1, 8, None, 1))
    heads, width = config.model.heads, config.model.width
    mixer = {'kind': 'mamba2', 'heads': heads, 'head_dim': width // heads, 'state': STATE}
    local = {
        MAMBA: ('Mamba-2', {'mixer': mixer}),
        WINDOW: ('RoPE in a window', {'position': models.ROPE, 'window': config.train.length // 2}),
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
