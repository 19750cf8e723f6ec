"""Keys in real text, several and alike, up to 64 L: what split heads lose first.

    python -m experiments.run --config=configs/split_text.py:quick --workdir=work/quick

Half of each layer's heads with forget gates, half without position, trained on records of one to
four keys: in filler alone, the model of configs/split_seeds.py, or in filler and in text of the
standard library, each as likely. Prompts hide one key in filler, or in text of the validation split
one key, one of four, or one of four that share four of their five digits; the last model also with
p_h(n) = 1 + a_h x + b_h x^2, x = ln(n / L), searched up to 8 L on the heads without position.
"""

from ml_collections import ConfigDict

from configs import splits

BOTH = ('filler', 'text')
IN_TEXT = {'haystack': 'text'}
ONE, FOUR = IN_TEXT, {**IN_TEXT, 'needles': 4}
ALIKE = {**FOUR, 'alike': True}


def get_config(size: str = 'quick') -> ConfigDict:
    config = splits.experiment('split_text', size)
    filler = splits.add_split(config, 'half_forget', splits.split(splits.FORGET))
    both = splits.add_split(config, 'half_forget_text', splits.split(splits.FORGET))
    config.runs[both]['data'] = {'haystacks': BOTH}
    scaled = splits.add_log_length(config, both, form='log_square')
    config.runs[scaled]['data'] = {'haystacks': BOTH}
    config.figure = {
        'kind': 'key_curves',
        'curves': (
            _add(config, filler, 'text', ONE, 'trained in filler: one key in text'),
            _add(config, both, 'one', {}, 'trained in both: one key in filler'),
            _add(config, both, 'text', ONE, 'trained in both: one key in text'),
            _add(config, both, 'four', FOUR, 'trained in both: one of four in text'),
            _add(config, both, 'alike', ALIKE, 'trained in both: one of four alike in text'),
            _add(config, scaled, 'text', ONE, '1 + a x + b x^2 as well: one key in text'),
            _add(config, scaled, 'four', FOUR, '1 + a x + b x^2 as well: one of four in text'),
        ),
        'roles': {'split': f'{both}_text', 'split_four': f'{both}_four'},
    }
    return config


def _add(config: ConfigDict, run: str, name: str, prompts: dict, label: str) -> dict:
    """Asks `run` for keys in such prompts; returns its curve."""
    entry = {'kind': 'passkey', 'run': run, 'lengths': splits.KEYS, **prompts}
    config.evals[f'{run}_{name}/'] = entry
    return {'group': f'{run}_{name}', 'label': label}
