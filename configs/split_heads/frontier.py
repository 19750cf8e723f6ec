"""Loss at L against loss at 8 L with the share of keys repeated there: one point a method.

    nope run frontier:quick --workdir=work/quick

The models of split_passkey, and rivals trained on the same tokens: rotary, rotary
fine-tuned under YaRN at 8 L, NoPE with HeadScale searched at 8 L, and half of each layer's heads
with ALiBi. Split heads also with p_h(n) = 1 + a_h ln(n / L) searched up to 8 L on the heads without
position. Losses up to 32 L and single keys up to 64 L decide what the split heads with lambda keep.

Quick: two CPU cores, 45 minutes a seed. Result (three seeds): half forget gates, half NoPE: 1.252
nats at L, where rotary has 1.281, 1.235 at 8 L, 1.253 at 32 L; with lambda 1.240 at 8 L and 1.266
at 32 L. Single keys at 64 L with lambda: 100, 92 and 100 percent; of four keys at 16 L 100, 52 and
100, seed 1 having 45 at L. The next at L and at 8 L are forget gates in all heads, 1.265 and 1.249,
which find no key, and rotary under YaRN trained at 8 L, 1.299 and 1.262, 2.519 at 32 L.
"""

from ml_collections import ConfigDict

from configs.shared import models, pieces, retrieval, splits


def get_config(size: str = 'quick') -> ConfigDict:
    config = splits.experiment('frontier', size)
    splits.add_whole(config, 'nope', 'alibi', 'forget')
    config.runs['rope'] = pieces.base(models.ROTARY)
    forget = splits.add_split(config, 'half_forget', splits.split(splits.FORGET))
    alibi = splits.add_split(config, 'half_alibi', splits.split(splits.HALF_ALIBI))
    chosen = splits.add_log_length(config, forget)
    labels = {name: splits.WHOLE[name][0] for name in ('nope', 'alibi', 'forget')} | {
        'rope': 'rotary',
        retrieval.yarn(config, 8.0): 'rotary, YaRN at 8 L',
        pieces.add_headscale(config, 8.0): 'NoPE, HeadScale at 8 L',
        forget: 'half forget gates, half NoPE',
        alibi: 'half ALiBi, half NoPE',
        chosen: 'half forget gates, half NoPE, log-length lambda',
        splits.add_log_length(config, alibi): 'half ALiBi, half NoPE, log-length lambda',
    }
    points = []
    for name, label in labels.items():
        far = name == chosen
        points.append(splits.add_point(config, name, label, 64.0 if far else 8.0, four=far))
    config.figure = {
        'kind': 'frontier',
        'points': tuple(points),
        'roles': {'split': labels[chosen], 'rotary': labels['rope']},
    }
    return config
