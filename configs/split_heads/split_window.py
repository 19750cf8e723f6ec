"""Loss and keys of heads split between a RoPE window and no position, three seeds.

    nope run split_window:quick --workdir=work/quick

RoPE in a window of L / 4, the best local heads of split_local at 8 L. They are trained and asked as
in split_seeds, whose RoPE and split with gates stand beside them. This model is measured as
trained, and with 1 + a ln(n / L) searched up to 8 L on the NoPE half.

Quick: one CPU core, 22 minutes a seed after split_seeds in one work folder. Result, three seeds: at
32 L the loss is 0.023 nats below that of forget gates. Seed 1 repeats no key at 64 L, with lambda
98 percent.
"""

from ml_collections import ConfigDict

from configs.shared import models, splits


def get_config(size: str = 'quick') -> ConfigDict:
    config = splits.experiment('split_window', size)
    config.seeds = (0, 1, 2)
    position = splits.split(models.ROPE, window=config.train.length // 4)
    half = splits.add_split(config, 'half_rope_window', position)
    labels = {
        splits.add_split(config, 'half_forget', splits.split(splits.FORGET)): 'half forget gates',
        half: 'half RoPE windows',
        splits.add_log_length(config, half): 'half RoPE windows, 1 + a x',
    }
    splits.draw_reach(config, labels, half)
    return config
