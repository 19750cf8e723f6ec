"""Loss and keys of heads split between forget gates and no position, beside RoPE, three seeds.

    nope run split_seeds:quick --workdir=work/quick
    nope run split_seeds:quick,books --workdir=work/quick    (English: configs/books/README.md)

RoPE and half forget gates, half NoPE, as in frontier. The split is measured as trained and under
laws of lambda on the NoPE half, searched up to 8 L with the weights frozen:
- 1 + a x and 1 + a x + b x^2 of each head, with x = ln(n / L), and HeadScale at 8 L;
- 1 + a x and HypeNet's ln(i + a) / ln a, with one a for the model. HypeNet chooses a on validation
  text; here a search does, on text of the training.
NAPE (ASEntmax) has ALiBi for the gates, here with s ln i trained in. Single keys up to 64 L, one of
four named keys and losses up to 32 L decide the claims about split heads. Keys are hidden in
filler, with books too.

Quick: two CPU cores, two and a half hours with five seeds. Result: windows of L and of 32 L have
1.26 nats; their last L/2 rise by 0.05. Four seeds repeat every single key at 64 L, one 88 percent.
Under one number for all heads every seed does, and NAPE too.

Small: two CPU cores, 52 minutes a model and seed. Result: windows fall from 0.872 nats at L to
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
    headscale = splits.add_search(config, half, 'headscale', {'law': 'constant', 'times': (8.0,)})
    labels[headscale] = f'{HALF}, HeadScale at 8 L'
    per_head = labels[f'{half}_log'], labels[headscale]
    tied = splits.add_search(config, half, 'tied', {'law': 'log_length', 'tied': True})
    one = {
        tied: f'{HALF}, 1 + a x, one a',
        splits.add_search(config, half, 'hypenet', splits.HYPENET): f"{HALF}, HypeNet's law, one a",
    }  # of each the same search as above
    labels |= one | {splits.add_nape(config): 'NAPE'}
    roles = {'per_head': per_head, 'one_number': tuple(one.values()), 'nape': labels['nape']}
    splits.draw_reach(config, labels, half, roles)
    return config
