"""Layers by heads of a checkpoint over one long text: entropy, weight on the latest L / 16 tokens.

    nope run whole_text --workdir=work/whole_text \\
        --config.init=hf:DIR --config.length=131072 --config.data.source=jsonl:data/books

The text is one window of held-out text; `data.source` needs a document of so many tokens. Nothing
of T x T numbers is held: the records have 16 bytes for each token and head. `nope=True` and
`model.lam_layers` are as in extend.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from configs.checkpoints import checkpoint
from configs.shared import base, models


def get_config() -> ConfigDict:
    config = base.experiment('whole_text', 'quick')
    config.init = placeholder(str)
    config.length = placeholder(int)
    config.nope = False
    checkpoint.as_its_files_say(config)
    config.model = {**models.execution(), 'remat': 'full', 'unroll': 1, 'lam_layers': 'auto'}
    config.evaluation.windows = 1
    config.runs = {'base': {'init': config.get_ref('init'), 'nope': config.get_ref('nope')}}
    config.evals = {
        'base': {
            'kind': 'attention_shape', 'run': 'base', 'target': config.get_ref('length'),
            'span': 1 / 16,
        },
    }  # fmt: skip
    config.figure = {'kind': 'head_maps', 'record': 'base', 'label': 'as it is'}
    return config
