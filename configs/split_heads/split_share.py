"""Share of local heads: none, a quarter, half, three quarters and all, by head and by layer.

    nope run split_share:quick --workdir=work/quick

Models trained to retrieve at L (shared/retrieval.py), with forget gates in the local heads. Each
is a point: its loss at L and at 8 L, and the share of keys that it repeats at 8 L, as trained and
with a log-length lambda searched up to 8 L on its NoPE heads.

Quick: two CPU cores, 75 minutes. Result (one seed): half of each layer's heads have the lowest loss
at L and at 8 L, and gates by head are ahead of as many by layer. All gated heads repeat no key.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from configs.shared import models, splits

SHARES = {
    'quarter_forget': (0.25, 'a quarter of heads'),
    'half_forget': (0.5, 'half of heads'),
    'most_forget': (0.75, 'three quarters of heads'),
}
# Kinds of layers in turns: the first has forget gates in all heads.
BY_LAYER = {2: 'every second layer', 4: 'every fourth layer'}


def get_config(size: str = 'quick') -> ConfigDict:
    config = splits.experiment('split_share', size)
    splits.draw_frontier(config, add_runs(config))
    return config


def add_runs(config: ConfigDict) -> dict[str, str]:
    """Adds the models; returns run -> label."""
    splits.add_whole(config, 'nope', 'forget')
    labels = {'nope': 'no heads', 'forget': 'all heads'}
    for name, (share, label) in SHARES.items():
        labels[splits.add_split(config, name, splits.split(splits.FORGET, share))] = label
    for period, words in BY_LAYER.items():
        name = f'forget_layers_{period}'
        kinds = ({'position': splits.FORGET},) + ({'position': models.NOPE},) * (period - 1)
        model = {'pattern': kinds, 'lam_layers': 'nope'}
        config.runs[name] = {'init': placeholder(str), 'model': model}
        labels[name] = words
    for run, label in tuple(labels.items()):
        if run != 'forget':
            labels[splits.add_log_length(config, run)] = f'{label}, lambda'
    return labels
