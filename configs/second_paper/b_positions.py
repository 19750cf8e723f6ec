"""Exact match of encodings that are given no positions against those that are, on synthetic tasks.

    nope run b_positions:quick --workdir=work/quick

On the tasks of b_mrr, NoPE and half forget gates against RoPE, ALiBi, T5's bias and sinusoidal
positions. Forget gates decay with what is read, not with how far away it is. The models are those
of b_mrr and b_hybrids.

quick: three tasks, three seeds; seconds after b_hybrids in one work folder, else a minute of one
core for each of 54 models. Result: NoPE is ahead of each encoding on every task and seed, on
average by 32 points or more. Half forget gates are level with ALiBi and behind RoPE.
small, medium, paper: the tasks of b_mrr at that size, some alone by name. Not run.
"""

from ml_collections import ConfigDict

from configs.second_paper import b_hybrids
from configs.shared import tasks


def get_config(argument: str = 'quick') -> ConfigDict:
    """argument: as of b_mrr."""
    config = b_hybrids.named('b_positions', argument)
    encodings = {name: label for name, (label, _) in tasks.encodings(config).items()}
    without = (encodings['nope'], b_hybrids.HYBRIDS['half_forget'][0])
    kept = {*encodings.values(), *without}
    curves = tuple(curve for curve in config.figure.curves if curve['label'] in kept)
    groups = {curve['group'] for curve in curves}
    config.runs = ConfigDict({k: v for k, v in config.runs.to_dict().items() if k in groups})
    config.evals = ConfigDict(
        {k: v for k, v in config.evals.to_dict().items() if k.removesuffix('/') in groups}
    )
    config.figure = {'kind': 'encoding_pairs', 'curves': curves, 'without': without}
    return config
