"""Loss and keys of heads split between forget gates and no position, beside rotary, three seeds.

    nope run split_seeds:quick --workdir=work/quick

Of the models of frontier rotary, and half of each layer's heads with forget gates: as
trained, with p_h(n) = 1 + a_h x, and with p_h(n) = 1 + a_h x + b_h x^2, x = ln(n / L), both
searched up to 8 L on the heads without position. Single keys up to 64 L, one of four named keys,
losses up to 32 L: what the claims about split heads say, for every seed.

Quick: two CPU cores, 16 minutes after frontier with three seeds in one work folder. Result: without
lambda 1.252 nats at L (rotary 1.281) and 1.253 at 32 L (rotary 3.338); single keys at 64 L 100, 10
and 100 percent, with 1 + a x 100, 92 and 100, with two numbers all; of four keys seed 1 has 45
percent at L. Small: two CPU cores, 52 minutes a model and seed next to other work. Result, trained
on an H200: without lambda 0.872 nats at L (rotary 0.880), 0.820 at 32 L, and 45, 91 and 96 percent
of single keys at 64 L; with 1 + a x 0.802 and 68, 96 and 98 percent, with two numbers 0.795 and
none, all and 74 percent. Medium, seed 0, after 1,200 of its 4,800 steps (80 minutes of one core a
model): 0.906 nats at L (rotary 0.951), with 1 + a x 0.864 at 32 L (rotary 3.372) and 20 of 20 keys
at 64 L, alone or one of four; without lambda 19 of each.
"""

from ml_collections import ConfigDict

from configs.shared import splits

HALF = 'half forget gates, half NoPE'


def get_config(size: str = 'quick') -> ConfigDict:
    config = splits.experiment('split_seeds', size)
    config.seeds = (0, 1, 2)
    half = splits.add_split(config, 'half_forget', splits.split(splits.FORGET))
    labels = {
        half: HALF,
        splits.add_log_length(config, half): f'{HALF}, 1 + a x',
        splits.add_log_length(config, half, form='log_square'): f'{HALF}, 1 + a x + b x^2',
    }
    splits.draw_reach(config, labels, half)
    return config
