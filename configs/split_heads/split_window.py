"""Loss and keys of heads split between a rotary window and no position, three seeds.

    nope run split_window:quick --workdir=work/quick

The best kind of local heads of split_local at 8 L, rotary heads that see the last L / 4
keys, under the training and the questions of split_seeds, beside its rotary models and
those with forget gates: as trained, and with p_h(n) = 1 + a_h x, x = ln(n / L), searched up to 8 L
on the heads without position.

Quick: 22 minutes of one core a seed beside other work, after split_seeds in one work folder. Result
(three seeds): 1.250 nats at L (forget gates 1.252, rotary 1.281), 1.213 at 8 L and 1.230 at 32 L
(forget gates 1.235 and 1.253). Single keys at 64 L: 85, 0 and 60 percent, with lambda 65, 98 and
100; of four 72, 0 and 100, with lambda 70, 98 and 100.
"""

from ml_collections import ConfigDict

from configs.shared import models, splits


def get_config(size: str = 'quick') -> ConfigDict:
    config = splits.experiment('split_window', size)
    config.seeds = (0, 1, 2)
    position = splits.split(models.ROTARY, window=config.train.length // 4)
    half = splits.add_split(config, 'half_rotary_window', position)
    labels = {
        splits.add_split(config, 'half_forget', splits.split(splits.FORGET)): 'half forget gates',
        half: 'half rotary windows',
        splits.add_log_length(config, half): 'half rotary windows, 1 + a x',
    }
    splits.draw_reach(config, labels, half)
    return config
