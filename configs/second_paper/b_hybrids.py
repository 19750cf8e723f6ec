"""Exact match on longer problems of models that have position encoding in half of their heads.

    nope run b_hybrids:quick --workdir=work/quick

The tasks and encodings of b_mrr, and three hybrids: half of each layer's heads have ALiBi, T5's
bias or forget gates, the others none. Mean reciprocal ranks are of all eight, claims of the paper's
five.

quick: the three tasks of b_mrr, three seeds; 72 models, a minute of one core each, shared with
b_mrr in one work folder. Result: every hybrid is behind NoPE on every task and seed, and none is
ahead of RoPE in mean rank.
small, medium, paper: the tasks of b_mrr at that size, some alone by name
(`b_hybrids:small,rsc`). Not run.
"""

from ml_collections import ConfigDict

from configs.second_paper import b_mrr
from configs.shared import splits

HYBRIDS = {
    'half_alibi': ('half ALiBi, half NoPE', splits.split(splits.HALF_ALIBI)),
    'half_t5': ('half T5 bias, half NoPE', splits.split({'kind': 't5'})),
    'half_forget': ('half forget gates, half NoPE', splits.split(splits.FORGET)),
}


def get_config(argument: str = 'quick') -> ConfigDict:
    """argument: as of b_mrr."""
    return named('b_hybrids', argument)


def named(name: str, argument: str) -> ConfigDict:
    """The experiment under the name of a config that is built on it."""
    config = b_mrr.named(name, argument)
    every = []
    for curve in config.figure.curves:
        every.append(curve)
        run = curve['group']
        if run.endswith('_nope'):  # the last of its task
            every += _add(config, run)
    config.figure.curves = tuple(every)
    return config


def _add(config: ConfigDict, base: str) -> list[dict]:
    """Adds the hybrids on the task of the run `base`; returns their curves."""
    found = []
    for name, (label, position) in HYBRIDS.items():
        run = f'{base.removesuffix("_nope")}_{name}'
        config.runs[run] = {**config.runs[base].to_dict(), 'model': {'position': position}}
        config.evals[f'{run}/'] = {'kind': 'exact_match', 'run': run}
        found.append({'group': run, 'label': label, 'paper': ''})
    return found
