"""Attention entropy of every head and loss over training: how the patterns emerge.

    nope run emergence:quick --workdir=work/quick

NoPE and RoPE after eight shares of their training, inside L and from 2 L to 4 L. The models keep
more checkpoints than those of other figures, so they are trained for this figure alone.

Quick: one CPU core, 8 minutes. Result: the failure beyond L comes with training. From 2 L to 4 L
the loss is lowest after 480 of 2,400 steps of NoPE and after 120 of RoPE.
"""

from ml_collections import ConfigDict

from configs.shared import base, models, pieces

TIMES = 4.0
SHARES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)  # of the training steps, and the whole
MODELS = {'nope': ('NoPE', None), 'rope': ('RoPE', models.ROPE)}


def get_config(size: str = 'quick') -> ConfigDict:
    config = base.experiment('emergence', size)
    config.train.keep = SHARES
    steps = []
    for run, (label, position) in MODELS.items():
        config.runs[run] = pieces.base(position)
        for share in (*SHARES, 1.0):
            name = f'{run}_{1000 * share:.0f}'  # thousandths of the training
            config.evals[name] = {'run': run, 'times': TIMES, 'step_share': share}
            steps.append({'record': name, 'label': label})
    config.figure = {'kind': 'emergence', 'steps': tuple(steps)}
    return config
