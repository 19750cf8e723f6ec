"""Extension of a checkpoint to `length` tokens by a search of lambda.

    nope run extend --workdir=work/extend \\
        --config.init=hf:DIR --config.length=8192 --config.data.source=text:FOLDER

DIR is a Hugging Face directory (config.json, safetensors, a tokenizer); everything but lambda
stays as it is. Measures loss and attention entropy by position, finds the best uniform multiplier
on a grid, searches one multiplier per head at `length` (200 steps of 8 sequences) from there, and
leaves a figure of before and after, a summary, and in WORKDIR/exports the same model with the
multipliers folded into its query weights, which stock `transformers` loads.
`extend:log_length` searches a lambda that follows the length of the sequence instead,
the base model itself up to its training length, and exports it for `length`, half and a quarter of
it.

Where only some layers of a model lack a position encoding, those are scaled
(`--config.model.lam_layers=all` for all). `--config.nope=True` reads weights of the Llama shape
that were trained without rotation, which their files do not say. Multipliers cannot be folded into
a model with QK-norm: `--config.exports.extended.lam=scale_param` keeps them as tensors. The text
should be of the kind the model was trained on; every sequence begins as the tokenizer's own files
begin a text (`--config.data.bos=True` or `False` says otherwise).
`--config.train.length` is the training length, in place of that of config.json;
`--config.model.dtype=bfloat16` the dtype of the computation on accelerators. A text of one file is
cut by position, 90/5/5, for search, grid and measurement: each part needs documents of `length`
tokens. `--plan` prints the least time. A trial of minutes, of SmolLM2 (135 million parameters) on
two cores:

    --config.length=1024 --config.train.length=512 --config.search.steps=10 \\
        --config.search.batch_size=2 --config.grid.windows=4 --config.evaluation.windows=8

The NoPE model of the quick figures, extended to 4 L = 256 bytes: two CPU cores, one minute. Its
loss goes from 1.45 to 1.56 nats over (0, L], from 1.80 to 1.69 over (L, 2L] and from 2.84 to 2.08
over (2L, 4L]; PyTorch reads the exported directory with the same loss at every position to 8e-7.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from configs.shared import base, models

FORMS = ('constant', 'log_length')
SHARES = (0.375, 0.5, 0.75, 1.0)  # of `length`, that a length-aware lambda is searched at


def get_config(form: str = 'constant') -> ConfigDict:
    if form not in FORMS:
        raise ValueError(
            f'extend: form {form!r} is unknown; accepted: extend:constant, extend:log_length'
        )
    config = base.experiment('extend', 'quick')
    config.name = 'extend' if form == 'constant' else f'extend_{form}'
    config.init = placeholder(str)
    config.length = placeholder(int)
    config.nope = False
    config.train.length = placeholder(int)
    config.data.tokenizer = placeholder(str)
    config.data.bos = placeholder(bool)  # as the tokenizer says
    # The model is what its directory says; this is how it is computed, and what is scaled.
    config.model = {**models.execution(), 'remat': 'full', 'unroll': 1, 'lam_layers': 'auto'}
    config.evaluation.windows = 64
    config.evaluation.batch_tokens = 8192
    config.grid.windows = 32
    config.compute.checkpoint_every = 200  # the model is large, the search short
    length = config.get_ref('length')
    position = {'init': config.get_ref('init'), 'nope': config.get_ref('nope')}
    config.runs = {'base': position, 'searched': {'init': 'base', 'search': _search(form, length)}}
    config.evals = {
        'grid': {'kind': 'multiplier_grid', 'run': 'base', 'target': length},
        'before': {'run': 'base', 'target': length},
        'uniform': {'run': 'base', 'target': length, 'multiplier_from': 'grid'},
        'after': {'run': 'searched', 'target': length},
    }
    exports = {'extended': 1.0}
    if form == 'log_length':  # folding fixes the length
        exports |= {'extended_half': 0.5, 'extended_quarter': 0.25}
    config.exports = {
        name: {'run': 'searched', 'target': length, 'share': share, 'lam': 'fold'}
        for name, share in exports.items()
    }
    config.figure = {
        'kind': 'extension',
        'before': 'before',
        'uniform': 'uniform',
        'after': 'after',
    }
    return config


def _search(form: str, length: object) -> dict:
    if form == 'constant':
        return {'form': form, 'target': length, 'start_from': 'grid'}
    return {'form': form, 'target': length, 'shares': SHARES, 'bound': 0.0, 'start': 0.0}
