"""Share of keys repeated up to 64 L: heads split between local ones and ones without position.

    nope run split_passkey:quick --workdir=work/quick

Models trained to retrieve (shared/retrieval.py) on records of one to four keys, no weight trained
beyond L. They are asked for one key in filler: NoPE, ALiBi, forget gates, and split heads, these
also with p_h(n) = 1 + a_h ln(n / L) searched up to 8 L on their NoPE half. The last is also asked
for one of four named keys. Keys in text: split_text.

Quick: two CPU cores, 5 minutes after frontier in one work folder. Result, three
seeds: split heads repeat 10 percent or more at 64 L, with lambda 92 or more. ALiBi repeats 12
percent there, NoPE and forget gates none.
"""

from ml_collections import ConfigDict

from configs.shared import splits

WHOLE = ('nope', 'alibi', 'forget')


def get_config(size: str = 'quick') -> ConfigDict:
    config = splits.experiment('split_passkey', size)
    splits.add_whole(config, *WHOLE)
    half = splits.add_split(config, 'half_forget', splits.split(splits.FORGET))
    log = splits.add_log_length(config, half)
    same = 'the same, log-length lambda'
    labels = {name: splits.WHOLE[name][0] for name in WHOLE} | {
        half: 'half forget gates, half NoPE',
        log: same,
    }
    for name in labels:
        config.evals[f'{name}/'] = {'kind': 'passkey', 'run': name, 'lengths': splits.KEYS}
    four = {'kind': 'passkey', 'run': log, 'lengths': splits.KEYS, 'needles': 4}
    config.evals[f'{log}_four/'] = four
    labels[f'{log}_four'] = f'{same}, one of four keys'
    config.figure = {
        'kind': 'key_curves',
        'curves': tuple({'group': name, 'label': label} for name, label in labels.items()),
        'roles': {'split': log, 'split_four': f'{log}_four'},
    }
    return config
