"""Passkey retrieval at 16 to 64 L under five changes of the training, one dot a training.

    nope run reach_cures:quick --workdir=work/quick

Half RoPE windows, half NoPE, as in reach, of which some trainings repeat no key at 64 L. Each cure
changes one thing, for the same seeds:
- attention sinks in all heads (which draw other output matrices, so that seeds are no pairs);
- a penalty on the mean entropy of the NoPE heads, at quick of at most 0.4 nats;
- a learning rate that falls from the warm-up on, and sums to 0.56 of the others' at quick;
- a quarter of the heads local in place of half, so that more may find keys;
- records of up to eight keys in place of four, half as many of a single one.
All are asked as trained and with 1 + a ln(n / L), as there.

Quick: 40 trainings after reach in one work folder. Not run.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from configs.shared import models, pieces, splits
from configs.split_heads import reach

PENALTY = 0.1


def get_config(size: str = 'quick') -> ConfigDict:
    config = splits.experiment('reach_cures', size)
    config.seeds = tuple(range(reach.SEEDS[size]))
    reach.draw(config, add_methods(config))
    return config


def add_methods(config: ConfigDict) -> dict[str, str]:
    """The model that is to be cured, and each cure; returns run -> label."""
    window = config.train.length // 4
    position = splits.split(models.ROPE, window=window)
    quarter = splits.split(models.ROPE, share=0.25, window=window)
    labels = {splits.add_split(config, 'half_rope_window', position): 'half RoPE windows'}
    cures: dict[str, tuple[str, dict]] = {
        'sinks': ('sinks', {'model': {'sinks': True}}),
        'penalty': (f'entropy penalty {PENALTY}', {'train': {'entropy_penalty': PENALTY}}),
        'decay': ('longer decay', {'train': {'schedule': 'linear_tail', 'tail_share': 1.0}}),
        'quarter': ('a quarter local', {'model': {'position': quarter}}),
        'eight': ('up to eight keys', {'data': {'needles': 8}}),
    }
    if pieces.is_paper(config):  # which trains on no records and has a schedule of its own
        del cures['eight'], cures['decay']
    for name, (label, changes) in cures.items():
        model = {'position': position, 'lam_layers': 'nope', **changes.get('model', {})}
        config.runs[name] = {**changes, 'init': placeholder(str), 'model': model}
        labels[name] = label
    return labels
