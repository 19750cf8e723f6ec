"""Loss against window length under softmax, entmax-1.5 and stick-breaking attention weights.

    nope run weights:quick --workdir=work/quick

Windows of L to 8 L end at the same tokens. All three rules have half of each layer's heads ALiBi,
half NoPE. Entmax also has the adaptive temperature on the NoPE half (ASEntmax, arXiv 2506.16640).
Stick-breaking (arXiv 2410.17980) also goes without any position encoding, since its weights know
the order. Softmax and entmax also have a log-length lambda, searched up to 8 L. Weights other than
softmax's hold T x T numbers a head; at paper size devices share the heads of one sequence at a
time. Keys: weights_passkey.

Quick: two CPU cores, 43 minutes a seed. Result, three seeds: stick-breaking has the lowest loss at
8 L (1.20 nats), then entmax (1.24) and softmax (1.28). Small, seed 0: stick-breaking has the
highest loss at every length, and entmax, with or without the adaptive temperature, the lowest.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from configs.shared import base, models, pieces, splits
from configs.temperatures.fig_dynamic import TIMES

TRAINED, SEARCHED = 'as trained', 'with a log-length lambda'


def get_config(size: str = 'quick') -> ConfigDict:
    config = base.experiment('weights', size)
    config.evaluation.windows = min(config.evaluation.windows, 512)
    labels = add_runs(config)
    rows = {name: (label, TRAINED) for name, label in labels.items()}
    for name in ('half_alibi', 'entmax'):
        rows[splits.add_log_length(config, name)] = (labels[name], SEARCHED)
    curves = []
    for name, (label, row) in rows.items():
        config.evals[f'{name}/'] = {'kind': 'lengths', 'run': name, 'times': TIMES}
        curves.append({'group': name, 'label': label, 'row': row})
    config.figure = {'kind': 'length_curves', 'curves': tuple(curves)}
    return config


def add_runs(config: ConfigDict) -> dict[str, str]:
    """Adds the models; returns run -> label. Their weights are T x S numbers a head, of whole
    sequences: at paper size devices share heads, and take one sequence at a time."""
    if pieces.is_paper(config):
        config.compute.later_mesh = base.mesh_sizes(base.AXES, (1, 1, None, 1))
        config.compute.shard_sequences = 1
    half = splits.split(splits.HALF_ALIBI)
    kinds: dict[str, tuple[str, dict]] = {
        'entmax': ('entmax-1.5', {'weights': 'entmax'}),
        'asentmax': (
            'entmax-1.5, adaptive temperature',
            {'weights': 'entmax', 'temperature': 'adaptive'},
        ),
        'stick_breaking': ('stick-breaking', {'weights': 'stick_breaking'}),
    }
    labels = {splits.add_split(config, 'half_alibi', half): 'softmax'}
    for name, (label, fields) in kinds.items():
        model = {'position': half, 'lam_layers': 'nope', **fields}
        config.runs[name] = {'init': placeholder(str), 'model': model}
        labels[name] = label
    alone = {'position': models.NOPE, 'weights': 'stick_breaking'}
    config.runs['stick_breaking_nope'] = {'init': placeholder(str), 'model': alone}
    labels['stick_breaking_nope'] = 'stick-breaking, NoPE alone'
    return labels
