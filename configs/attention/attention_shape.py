"""Attention beyond L: entropy, weight on the first and latest tokens, size of the outputs.

    nope run attention_shape:quick --workdir=work/quick

Positions 0.5 L to 32 L. NoPE is measured as trained, with the best uniform multiplier for 8 L, with
HeadScale searched at 4 L and with a log-length lambda searched up to 8 L. The split model of
split is measured as trained and with that lambda.

Quick: two CPU cores, 2 minutes after one_search and split in one work folder. Result: at 32 L NoPE
has 0.04 of its weight on the latest L bytes, and its loss is 3.3 nats. The local heads of the split
model keep 1.00, and its loss is 1.4 nats.
"""

from ml_collections import ConfigDict

from configs.shared import base, pieces, splits

TIMES = 32.0


def get_config(size: str = 'quick') -> ConfigDict:
    config = base.experiment('attention_shape', size)
    config.evaluation.windows = min(config.evaluation.windows, 128)
    config.runs = {'nope': pieces.base()}
    headscale = pieces.add_headscale(config, 4.0)
    log = splits.add_log_length(config, 'nope')
    half = splits.add_split(config, 'half_forget', splits.split(splits.FORGET))
    half_log = splits.add_log_length(config, half)
    shown = {
        'base': ('NoPE', {'run': 'nope'}),
        'uniform': (
            'NoPE, best uniform multiplier for 8 L',
            {'run': 'nope', 'multiplier_from': pieces.add_grid(config, 8.0)},
        ),
        'headscale': ('NoPE, HeadScale at 4 L', {'run': headscale}),
        'log_length': ('NoPE, log-length up to 8 L', {'run': log}),
        'half': ('half forget gates, half NoPE', {'run': half}),
        'half_log': ('the same, log-length up to 8 L', {'run': half_log}),
    }
    for name, (_, entry) in shown.items():
        config.evals[name] = {'kind': 'attention_shape', 'times': TIMES, **entry}
    config.figure = {
        'kind': 'attention_shape',
        'curves': tuple({'record': name, 'label': label} for name, (label, _) in shown.items()),
    }
    return config
