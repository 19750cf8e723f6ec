"""The head that finds a key, at L and 2 L, against how far its training reaches.

    nope run reach_predictors:quick --workdir=work/quick

Eight trainings of each method of reach_cures. At L and 2 L the head with the most weight on the key
is measured: its weight, the margin of its logits over prompts, how much of that lies between
depths, the size of its values. The reach is the mean share of keys at 16, 32 and 64 L. Every second
training chooses the best of nine candidates, by rank correlation; the others test it.

Quick: trains nothing after `reach_cures:quick` in one work folder. Not run.
"""

from ml_collections import ConfigDict

from configs.shared import splits
from configs.split_heads import reach, reach_cures

SEEDS = 8
TESTS = 10  # prompts of each length and depth


def get_config(size: str = 'quick') -> ConfigDict:
    config = splits.experiment('reach_predictors', size)
    config.seeds = tuple(range(SEEDS))
    points = []
    for run, label in reach_cures.add_methods(config).items():
        look = {'kind': 'key_attention', 'run': run, 'lengths': (1.0, 2.0)}
        config.evals[f'{run}_look/'] = {**look, 'passkey': {'tests': TESTS}}
        config.evals[f'{run}_far/'] = {'kind': 'passkey', 'run': run, 'lengths': reach.TIMES}
        points.append({'label': label, 'attention': f'{run}_look', 'keys': f'{run}_far'})
    config.figure = {'kind': 'reach_predictors', 'points': tuple(points)}
    return config
