"""Largest weight that a NoPE head can give one key among n, by the range of its logits.

    nope run weight_bound:quick --workdir=work/quick

A head whose logits differ by r nats at most gives one key among n at most e^r / (n - 1 + e^r). A
multiplier p makes that p r for the same input. Measured on the prompts of key_attention: NoPE
trained to retrieve, with HeadScale searched at 4 L, and with p_h(n) = 1 + a_h ln(n / L) searched
up to 8 L.

Quick: 15 minutes on two busy CPU cores. Result, one seed: the bound of the head that finds the
key is 0.93 at 4 L, where its largest weight is 0.06. The range of its logits falls with the length.
"""

from ml_collections import ConfigDict

from configs.attention.key_attention import add_attention
from configs.shared import pieces, retrieval, splits


def get_config(size: str = 'quick') -> ConfigDict:
    config = retrieval.experiment('weight_bound', size)
    config.runs = {'nope': pieces.base()}
    labels = {
        pieces.add_headscale(config, 4.0): 'HeadScale at 4 L',
        splits.add_log_length(config, 'nope'): 'log-length up to 8 L',
    }
    base = add_attention(config, 'nope', 'NoPE')
    searched = [add_attention(config, run, label) for run, label in labels.items()]
    curves = (base, *({**curve, 'base': base['group']} for curve in searched))
    config.figure = {'kind': 'weight_bound', 'curves': curves}
    return config
