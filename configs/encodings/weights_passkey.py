"""Share of keys repeated up to 16 L: softmax, entmax-1.5 and stick-breaking attention weights.

    nope run weights_passkey:quick --workdir=work/quick

Models trained to retrieve (shared/retrieval.py) on records of one to four keys, no weight trained
beyond L, asked for one key in filler. Softmax and entmax have half of each layer's heads ALiBi,
half NoPE; entmax also the adaptive temperature on the latter (ASEntmax, arXiv 2506.16640), softmax
also a log-length lambda searched up to 8 L. Stick-breaking (arXiv 2410.17980) has no position
encoding, since its weights know the order. Losses on text alone: weights.

Quick: two CPU cores, 50 minutes. Result (one seed): softmax and entmax repeat every key up to 16 L,
stick-breaking none even at L.
"""

from ml_collections import ConfigDict

from configs.encodings import weights
from configs.shared import base, pieces, splits

KEYS = tuple(length for length in splits.KEYS if length <= 16)  # weights hold T x T numbers a head


def get_config(size: str = 'quick') -> ConfigDict:
    config = splits.experiment('weights_passkey', size)
    labels = weights.add_runs(config)
    if pieces.is_paper(config):  # a piece of a prompt has fewer rows than a training sequence
        config.compute.later_mesh = base.mesh_sizes(base.AXES, (1, 8, None, 1))
    del config.runs['stick_breaking'], labels['stick_breaking']
    labels = {'half_alibi': labels.pop('half_alibi'), **labels}
    labels[splits.add_log_length(config, 'half_alibi')] = 'softmax, log-length lambda'
    for run in labels:
        config.evals[f'{run}/'] = {'kind': 'passkey', 'run': run, 'lengths': KEYS}
    config.figure = {
        'kind': 'key_curves',
        'curves': tuple({'group': run, 'label': label} for run, label in labels.items()),
    }
    return config
