"""Loss and keys without each head of a model whose heads are split, and without all of one kind.

    nope run split_heads:quick --workdir=work/quick

The model of frontier with half of each layer's heads gated and a log-length lambda on
the others. One head after the other is silenced, then all local ones, then all NoPE ones; nothing
is trained again. Measured are the rise of the loss and the keys lost, at L and at 8 L.

Quick: two CPU cores, 3 minutes a seed after split_seeds in one work folder. Result, three seeds:
the loss rises by 2.97 nats without all local heads, and by 0.15 without all NoPE heads. One NoPE
head carries the keys in every seed.
"""

from ml_collections import ConfigDict

from configs.shared import splits

TIMES = (1.0, 8.0)


def get_config(size: str = 'quick') -> ConfigDict:
    config = splits.experiment('split_heads', size)
    config.evaluation.windows = min(config.evaluation.windows, 128)  # of many models
    half = splits.add_split(config, 'half_forget', splits.split(splits.FORGET))
    whole = splits.add_log_length(config, half)
    places = [(i, j) for i in range(config.model.layers) for j in range(config.model.heads)]
    single = {f'without_{i}_{j}': (f'without head {j} of layer {i}', ((i, j),)) for i, j in places}
    groups = {
        'without_local': ('without all local heads', 'local'),
        'without_nope': ('without all heads without position', 'nope'),
    }
    for name, (_, heads) in {**single, **groups}.items():
        config.runs[name] = {'init': whole, 'without': heads}
    config.figure = {
        'kind': 'head_effects',
        'base': _point(config, whole, 'half forget gates, half NoPE, log-length lambda'),
        'heads': tuple(_point(config, name, label) for name, (label, _) in single.items()),
        'groups': tuple(_point(config, name, label) for name, (label, _) in groups.items()),
        'roles': {'local': groups['without_local'][0], 'nope': groups['without_nope'][0]},
    }
    return config


def _point(config: ConfigDict, run: str, label: str) -> dict:
    """Measures losses and keys of `run`; returns its entry in the figure."""
    config.evals[f'{run}_loss/'] = {'kind': 'lengths', 'run': run, 'times': TIMES}
    config.evals[f'{run}_keys/'] = {'kind': 'passkey', 'run': run, 'lengths': TIMES}
    return {'label': label, 'loss': f'{run}_loss', 'keys': f'{run}_keys'}
