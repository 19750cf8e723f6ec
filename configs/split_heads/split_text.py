"""Keys in real text, several and alike, up to 64 L, trained in filler and in text.

    nope run split_text:quick --workdir=work/quick

Half forget gates, half NoPE, trained on records of one to four keys: in filler alone, the model of
split_seeds, or in filler and in text of the standard library, each as likely. Prompts
hide one key in filler, or one key, one of four, or one of four much alike in text of the validation
split. The last model also has 1 + a ln(n / L), searched up to 8 L on the NoPE half. At `paper` one
model is asked, as it was trained on text.

Quick: two CPU cores, 9 minutes a seed. Result, three seeds: trained in filler, models repeat no key
in text from 16 L on. Trained in both, they repeat 100, 90 and 100 percent at 64 L.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from configs.shared import splits

BOTH = ('filler', 'text')
IN_TEXT = {'haystack': 'text'}
ONE, FOUR = IN_TEXT, {**IN_TEXT, 'needles': 4}
ALIKE = {**FOUR, 'alike': True}


def get_config(size: str = 'quick') -> ConfigDict:
    config = splits.experiment('split_text', size)
    half = splits.add_split(config, 'half_forget', splits.split(splits.FORGET))
    model, how, curves = half, 'as trained', []
    if size not in ('large', 'paper'):  # text as hay is of bytes; `paper` sees no records
        curves = [_add(config, half, 'text', ONE, 'trained in filler: one key in text')]
        model, how = f'{half}_text', 'trained in both'
        untrained = {'init': placeholder(str), 'data': {'haystacks': BOTH}}
        config.runs[model] = {**config.runs[half].to_dict(), **untrained}
    law = splits.add_log_length(config, model)
    if model != half:
        config.runs[law]['data'] = {'haystacks': BOTH}
    curves += [
        _add(config, model, 'one', {}, f'{how}: one key in filler'),
        _add(config, model, 'text', ONE, f'{how}: one key in text'),
        _add(config, model, 'four', FOUR, f'{how}: one of four in text'),
        _add(config, model, 'alike', ALIKE, f'{how}: one of four alike in text'),
        _add(config, law, 'text', ONE, '1 + a x as well: one key in text'),
        _add(config, law, 'four', FOUR, '1 + a x as well: one of four in text'),
    ]
    roles = {'split': f'{model}_text', 'split_four': f'{model}_four'}
    config.figure = {'kind': 'key_curves', 'curves': tuple(curves), 'roles': roles}
    return config


def _add(config: ConfigDict, run: str, name: str, prompts: dict, label: str) -> dict:
    """Asks `run` for keys in such prompts; returns its curve."""
    entry = {'kind': 'passkey', 'run': run, 'lengths': splits.KEYS, **prompts}
    config.evals[f'{run}_{name}/'] = entry
    return {'group': f'{run}_{name}', 'label': label}
