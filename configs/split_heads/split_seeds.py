"""Loss and keys of heads split between forget gates and no position, beside RoPE, three seeds.

    nope run split_seeds:quick --workdir=work/quick
    nope run split_seeds:quick,books --workdir=work/quick    (English: configs/books/README.md)

RoPE and half forget gates, half NoPE, as in frontier. The split is measured as trained
and under two laws, 1 + a x and 1 + a x + b x^2 with x = ln(n / L). They are searched up to 8 L on
the NoPE half. Single keys up to 64 L, one of four named keys and losses up to 32 L decide the
claims about split heads. Keys are hidden in filler, with books too.

Quick: two CPU cores, 16 minutes after frontier with three seeds in one work folder. Result: the
split keeps 1.25 nats from L to 32 L. Two seeds repeat every single key at 64 L. Seed 1 has 10
percent, and 92 with 1 + a x.

Small: two CPU cores, 52 minutes a model and seed. Result: the loss falls from 0.872 nats at L to
0.820 at 32 L. Between 45 and 96 percent of single keys are repeated at 64 L.

Medium, seed 0, a quarter of the steps: 80 minutes of one core a model. Result: with lambda all keys
are repeated at 64 L.
"""

from ml_collections import ConfigDict

from configs.shared import books, splits

HALF = 'half forget gates, half NoPE'


@books.also
def get_config(size: str = 'quick') -> ConfigDict:
    config = splits.experiment('split_seeds', size)
    config.seeds = (0, 1, 2)
    half = splits.add_split(config, 'half_forget', splits.split(splits.FORGET))
    labels = {
        half: HALF,
        splits.add_log_length(config, half): f'{HALF}, 1 + a x',
        splits.add_log_length(config, half, law='log_square'): f'{HALF}, 1 + a x + b x^2',
    }
    splits.draw_reach(config, labels, half)
    return config
