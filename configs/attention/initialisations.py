"""Attention entropy of every head under three initialisations: does the first step tell the last?

    nope run initialisations:quick --workdir=work/quick

NoPE from three kinds of first weights, at five steps of its training. The learning rate of the
first step is 0, so the model after it is the untrained one. Rank correlations compare the order of
the heads by entropy at each step with that at the end. Every model is trained a second time, from
the same first weights on other data. The other seeds are the control. Three seeds;
`--config.seeds="(0,)"` for one, which has no control.

Quick: two CPU cores, half an hour. Result: the order at the first step says nothing of that at the
end (rank correlation -0.30 to 0.07). From the same first weights, trainings on other data end in a
similar order (0.28 to 0.47).
"""

from ml_collections import ConfigDict

from configs.shared import base

TIMES = 4.0
FIRST = 1e-6  # share of the steps that stands for the first one
SHARES = (FIRST, 0.02, 0.1, 0.5)  # and the whole
OTHER_DATA = 1000  # what the seed of the data is raised by
# Run -> label, fields of the model. Logits of fresh attention deviate by 0.4, 1.0 and 1.6.
INITIALISATIONS: dict[str, tuple[str, dict]] = {
    'tinyllama': ("TinyLlama's", {'init': 'tinyllama'}),
    't5': ("T5's", {'init': 't5', 'softmax_scale': 1.0}),
    'sharp': ('queries and keys twice as large', {'init': 'sharp'}),
}


def get_config(size: str = 'quick') -> ConfigDict:
    config = base.experiment('initialisations', size)
    config.seeds = (0, 1, 2)
    config.train.keep = SHARES
    again = {'data_seed': config.train.data_seed + OTHER_DATA}
    steps, others = [], []
    for run, (label, model) in INITIALISATIONS.items():
        config.runs[run] = {'model': model}
        config.runs[f'{run}_again'] = {'model': model, 'train': again}
        for number, share in enumerate((*SHARES, 1.0)):
            group = f'{run}_{number}'
            config.evals[f'{group}/'] = {'run': run, 'times': TIMES, 'step_share': share}
            steps.append({'group': group, 'label': label})
        config.evals[f'{run}_again/'] = {'run': f'{run}_again', 'times': TIMES}
        others.append({'group': f'{run}_again', 'label': label})
    config.figure = {'kind': 'head_ranks', 'steps': tuple(steps), 'again': tuple(others)}
    return config
