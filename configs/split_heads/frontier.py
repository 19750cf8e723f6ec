"""Loss at L against loss at 8 L with the share of keys repeated there: one point a method.

    nope run frontier:quick --workdir=work/quick

The models of split_passkey, and rivals trained on the same tokens: RoPE, RoPE fine-tuned under YaRN
at 8 L, NoPE with HeadScale searched at 8 L, half of each layer's heads with ALiBi, and NAPE (ALiBi
beside NoPE under s ln i trained in), at quick also with entmax. Split heads also with p_h(n) = 1 +
a_h ln(n / L), searched up to 8 L on their NoPE half. Claims are of the split with lambda: its loss
to 32 L, one key and one of four to 64 L.

Quick: two CPU cores, 45 minutes a seed without NAPE. With entmax one core takes another hour, most
of it for the loss at 32 L. Result, five seeds: NAPE has the lowest loss at L (1.252 nats) and at
8 L (1.234). Half forget gates, half NoPE is next (1.256, 1.240), and the lower one at 32 L (1.259,
NAPE 1.278). Both repeat every key to 8 L.
"""

from ml_collections import ConfigDict

from configs.shared import models, pieces, retrieval, splits


def get_config(size: str = 'quick') -> ConfigDict:
    config = splits.experiment('frontier', size)
    splits.add_whole(config, 'nope', 'alibi', 'forget')
    config.runs['rope'] = pieces.base(models.ROPE)
    forget = splits.add_split(config, 'half_forget', splits.split(splits.FORGET))
    alibi = splits.add_split(config, 'half_alibi', splits.split(splits.HALF_ALIBI))
    chosen = splits.add_log_length(config, forget)
    labels = {name: splits.WHOLE[name][0] for name in ('nope', 'alibi', 'forget')} | {
        'rope': 'RoPE',
        retrieval.yarn(config, 8.0): 'RoPE, YaRN at 8 L',
        pieces.add_headscale(config, 8.0): 'NoPE, HeadScale at 8 L',
        forget: 'half forget gates, half NoPE',
        alibi: 'half ALiBi, half NoPE',
        chosen: 'half forget gates, half NoPE, log-length lambda',
        splits.add_log_length(config, alibi): 'half ALiBi, half NoPE, log-length lambda',
        splits.add_nape(config): 'NAPE',
    }
    if size == 'quick':  # entmax's weights are T x T numbers a head
        labels[splits.add_nape(config, 'nape_entmax', 'entmax')] = 'NAPE with entmax-1.5'
    points = []
    for name, label in labels.items():
        far = name == chosen
        points.append(splits.add_point(config, name, label, 64.0 if far else 8.0, four=far))
    config.figure = {
        'kind': 'frontier',
        'points': tuple(points),
        'roles': {'split': labels[chosen], 'rope': labels['rope']},
    }
    return config
