"""Kinds of local heads: forget gates, ALiBi, T5's bias, a window, RoPE with and without one.

    nope run split_local:quick --workdir=work/quick

Half of each layer's heads are local, the others NoPE. Models are trained to retrieve at L
(shared/retrieval.py); windows are L / 4. Each is a point: its loss at L and at 8 L, and the share
of keys that it repeats at 8 L, as trained and with a log-length lambda searched up to 8 L on the
NoPE half.

Quick: two CPU cores, 61 minutes a seed. Result, three seeds: RoPE windows have the lowest loss at 8
L (1.197 nats), forget gates follow (1.219) and repeat every key. RoPE without a window, T5's bias
and a window without positions fail.
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
        'half_rope': ('RoPE', splits.split(models.ROPE)),
        'half_rope_window': ('RoPE in a window', splits.split(models.ROPE, window=window)),
    }
    labels = {}
    for name, (label, position) in kinds.items():
        labels[splits.add_split(config, name, position)] = label
    for run, label in tuple(labels.items()):
        labels[splits.add_log_length(config, run)] = f'{label}, lambda'
    return labels
