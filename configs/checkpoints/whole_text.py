"""Layers by heads of a checkpoint over one long text: entropy, weight on the latest L / 16 tokens.

    nope run whole_text --workdir=work/whole_text \\
        --config.init=hf:DIR --config.length=131072 --config.data.source=jsonl:data/books
    nope run whole_text:yarn_4 ...        under a recipe of checkpoint

The text is one window of held-out text; `data.source` needs a document of so many tokens. Nothing
of T x T numbers is held: the records have 16 bytes for each token and head.

SmolLM2 (135M, L = 8,192) over 16,384 tokens: three minutes of two busy CPU cores. Result: at 2 L its
heads look away from the latest 512 tokens; under YaRN 4 they do not.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from configs.checkpoints import checkpoint


def get_config(recipe: str = 'nothing') -> ConfigDict:
    config = checkpoint.get_config(f'{recipe},entropy')
    (row,) = config.figure.rows
    run = config.evals[row['entropy']].run
    config.name = 'whole_text' if run == 'nothing' else f'whole_text_{run}'
    config.length = placeholder(int)
    config.evaluation.windows = 1
    config.evals = {
        'heads': {
            'kind': 'attention_shape', 'run': run, 'target': config.get_ref('length'),
            'span': 1 / 16,
        },
    }  # fmt: skip
    config.exports = {}
    config.figure = {'kind': 'head_maps', 'record': 'heads', 'label': row['label']}
    return config
