"""Kinds of local heads: forget gates, ALiBi, T5's bias, a window, rotary with and without one.

    nope run split_local:quick --workdir=work/quick

Half of each layer's heads are local, the others have no position. Models trained to retrieve at L
(shared/retrieval.py); windows are L / 4. Each is a point: its loss at L and at 8 L, and the share
of keys that it repeats at 8 L; once as trained and once with a log-length lambda searched up to 8 L
on the heads without position.

Quick: two CPU cores, 61 minutes a seed next to other work, the model with forget gates trained
before. Result (three seeds, trained on an H200 and on CPUs): a rotary window has 1.234 nats at L,
1.197 at 8 L and 99 percent of the keys at 8 L, forget gates 1.236, 1.219 and every key, ALiBi
1.294, 1.266 and every key; rotary without a window fails from 2 L on, T5's bias at 8 L, a window
without positions from the start (1.588). Lambda changes little but for the last.
"""

from ml_collections import ConfigDict

from configs.shared import models, splits


def get_config(size: str = 'quick') -> ConfigDict:
    config = splits.experiment('split_local', size)
    splits.draw_frontier(config, add_runs(config))
    return config


def add_runs(config: ConfigDict) -> dict[str, str]:
    """Adds the models; returns run -> label."""
    window = config.train.length // 4
    kinds = {
        'half_forget': ('forget gates', splits.split(splits.FORGET)),
        'half_alibi': ('ALiBi', splits.split(splits.HALF_ALIBI)),
        'half_t5': ('T5 bias', splits.split({'kind': 't5'})),
        'half_window': ('window', splits.split(models.NOPE, window=window)),
        'half_rotary': ('rotary', splits.split(models.ROTARY)),
        'half_rotary_window': ('rotary in a window', splits.split(models.ROTARY, window=window)),
    }
    labels = {}
    for name, (label, position) in kinds.items():
        labels[splits.add_split(config, name, position)] = label
    for run, label in tuple(labels.items()):
        labels[splits.add_log_length(config, run)] = f'{label}, lambda'
    return labels
