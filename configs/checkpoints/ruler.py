"""RULER: scores of a checkpoint on long prompts, by task and length, and its effective length.

    nope run ruler --workdir=work/ruler \\
        --config.init=hf:DIR --config.length=16384

DIR is a Hugging Face directory. Six tasks need no file of the user. Each has 500 samples at
`length` tokens and its halves down to 4,096 (`--config.ruler.lengths="(4096,8192)"` for others), as
in NVIDIA/RULER. `--config.ruler.folder=FOLDER --config.ruler.tasks=qa_1,niah_single_2` takes other
tasks (nope/evals/ruler/README.md).

`ruler:multiplier` measures the checkpoint under `--config.multiplier=1.2` for all heads
beside it. `ruler:log_length` searches a lambda that follows the length first, as
extend does. Loss by position, on `data.source`, gives the third rule of an effective
length, from `--config.evaluation.windows` windows.

The samples are resumed: a command that was killed goes on behind the last one.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from configs.shared import base, models, text

ROWS = ('alone', 'multiplier', 'log_length')
SHARES = (0.375, 0.5, 0.75, 1.0)  # of `length`, that a length-aware lambda is searched at


def get_config(row: str = 'alone') -> ConfigDict:
    if row not in ROWS:
        raise ValueError(
            f'ruler: {row!r} is unknown; accepted: ' + ', '.join(f'ruler:{known}' for known in ROWS)
        )
    config = text.add(base.experiment('ruler', 'quick'), 'quick')
    config.name = 'ruler' if row == 'alone' else f'ruler_{row}'
    config.ruler.bos = placeholder(bool)  # as the tokenizer of the directory says
    config.init = placeholder(str)
    config.length = placeholder(int)
    config.nope = False
    config.train.length = placeholder(int)
    config.data.tokenizer = placeholder(str)
    config.data.bos = placeholder(bool)  # as the tokenizer says
    config.model = {**models.execution(), 'remat': 'full', 'unroll': 1, 'lam_layers': 'auto'}
    config.evaluation.windows = 16
    config.evaluation.batch_tokens = 16_384
    length = config.get_ref('length')
    config.runs = {'base': {'init': config.get_ref('init'), 'nope': config.get_ref('nope')}}
    measured: dict[str, tuple[str, dict]] = {'base': ('as it is', {'run': 'base'})}
    if row == 'multiplier':
        config.multiplier = placeholder(float)
        changed = {'run': 'base', 'multiplier': config.get_ref('multiplier')}
        measured['scaled'] = ('one multiplier for all heads', changed)
    if row == 'log_length':
        law = {'law': row, 'bound': 0.0, 'start': 0.0}
        config.runs['searched'] = {
            'init': 'base',
            'search': {**law, 'target': length, 'shares': SHARES},
        }
        measured['searched'] = ('lambda by the length, searched', {'run': 'searched'})
    for name, (_, entry) in measured.items():
        config.evals[name] = {'kind': 'ruler', 'target': length, **entry}
        config.evals[f'{name}_loss'] = {'kind': 'positions', 'target': length, **entry}
    config.figure = {
        'kind': 'ruler_scores',
        'panels': tuple(
            {'record': name, 'label': label, 'loss': f'{name}_loss'}
            for name, (label, _) in measured.items()
        ),
    }
    return config
