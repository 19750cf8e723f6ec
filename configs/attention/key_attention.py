"""Attention weight of the query on the passkey, at lengths that work and at those that fail.

    nope run key_attention:quick --workdir=work/quick

Models trained to retrieve (shared/retrieval.py), asked for one key in filler of 0.5 L to 16 L:
NoPE, the same with HeadScale searched at 4 L, RoPE, and a model of half forget gates, half NoPE.
The query predicts the first digit. Its weight lies on the key, on the first token, on the latest
L / 4 or on the rest. Drawn in parts is the head that finds the key inside L.

Quick: half an hour on two busy cores. Result, one seed: that head of NoPE has 0.87 of its weight on
the key at L and 0.11 at 4 L, where no key is repeated. HeadScale leaves its multiplier at 1.
"""

from ml_collections import ConfigDict

from configs.shared import pieces, retrieval, splits

TIMES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
TESTS = 4  # prompts of each length and depth


def get_config(size: str = 'quick') -> ConfigDict:
    config = retrieval.experiment('key_attention', size)
    config.runs = {'nope': pieces.base()}
    headscale = pieces.add_headscale(config, 4.0)
    splits.add_whole(config, 'rope')
    half = splits.add_split(config, 'half_forget', splits.split(splits.FORGET))
    labels = {
        'nope': 'NoPE',
        headscale: 'NoPE, HeadScale at 4 L',
        'rope': 'RoPE',
        half: 'half forget gates, half NoPE',
    }
    curves = tuple(add_attention(config, run, label) for run, label in labels.items())
    config.figure = {'kind': 'key_attention', 'curves': curves}
    return config


def add_attention(config: ConfigDict, run: str, label: str) -> dict:
    """Measures attention of `run` on keys; returns its curve."""
    name = f'{run}_keys'
    entry = {'kind': 'key_attention', 'run': run, 'lengths': TIMES, 'passkey': {'tests': TESTS}}
    config.evals[f'{name}/'] = entry
    return {'group': name, 'label': label}
