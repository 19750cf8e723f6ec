"""Extension of a checkpoint to `length` tokens by a search of lambda.

    nope run extend --workdir=work/extend \\
        --config.init=hf:DIR --config.length=16384 --config.data.source=text:FOLDER

DIR is a Hugging Face directory (config.json, safetensors, a tokenizer); everything but lambda stays
as it is. The command measures loss and attention entropy by position, finds the best uniform
multiplier on a grid, and searches one multiplier per head at `length` from there (200 steps of 8
sequences). It draws a figure of before and after. WORKDIR/exports then has the same model with the
multipliers folded into its query weights, as stock `transformers` loads it.

`extend:log_length` searches a lambda that follows the length instead. It exports the
model for `length`, half and a quarter of it.

    --config.model.lam_layers=all         all layers, where only some lack a position encoding
    --config.nope=True                    Llama weights that were trained without rotation
    --config.exports.extended.lam=scale_param   multipliers as tensors: QK-norm does not fold
    --config.data.bos=True                BOS first (False: none), not as the tokenizer's files say
    --config.train.length=2048            training length, in place of that of config.json
    --config.model.dtype=bfloat16         dtype of the computation on accelerators
    --plan                                the least time, without running

The text should be of the kind the model was trained on. A text of one file is cut by position,
90/5/5, for search, grid and measurement: each part needs documents of `length` tokens.

A trial of minutes, of SmolLM2 (135 million parameters) on two cores:

    --config.length=1024 --config.train.length=512 --config.search.steps=10 \\
        --config.search.batch_size=2 --config.grid.windows=4 --config.evaluation.windows=8

Result on the NoPE model of the quick figures, extended to 256 bytes (two CPU cores, one minute):
its loss over the second half falls from 2.84 to 2.08 nats. PyTorch reads the export with the same
loss to 8e-7.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from configs.checkpoints import checkpoint
from configs.shared import base

LAWS = ('constant', 'log_length')
SHARES = (0.375, 0.5, 0.75, 1.0)  # of `length`, that a length-aware lambda is searched at


def get_config(law: str = 'constant') -> ConfigDict:
    if law not in LAWS:
        raise ValueError(
            f'extend: law {law!r} is unknown; accepted: extend:constant, extend:log_length'
        )
    config = base.experiment('extend', 'quick')
    config.name = 'extend' if law == 'constant' else f'extend_{law}'
    checkpoint.of_a_directory(config)
    config.length = placeholder(int)
    config.nope = False
    config.evaluation.windows = 64
    config.evaluation.batch_tokens = 8192
    config.grid.windows = 32
    config.compute.checkpoint_every = 200  # the model is large, the search short
    length = config.get_ref('length')
    position = {'init': config.get_ref('init'), 'nope': config.get_ref('nope')}
    config.runs = {'base': position, 'searched': {'init': 'base', 'search': _search(law, length)}}
    config.evals = {
        'grid': {'kind': 'multiplier_grid', 'run': 'base', 'target': length},
        'before': {'run': 'base', 'target': length},
        'uniform': {'run': 'base', 'target': length, 'multiplier_from': 'grid'},
        'after': {'run': 'searched', 'target': length},
    }
    exports = {'extended': 1.0}
    if law == 'log_length':  # folding fixes the length
        exports |= {'extended_half': 0.5, 'extended_quarter': 0.25}
    config.exports = {
        name: {'run': 'searched', 'target': length, 'share': share, 'lam': 'fold'}
        for name, share in exports.items()
    }
    curves = (
        {'record': 'before'},
        {'record': 'uniform', 'label': 'one multiplier for all heads'},
        {'record': 'after'},
    )
    config.figure = {'kind': 'entropy_loss', 'panels': ({'curves': curves},)}
    return config


def _search(law: str, length: object) -> dict:
    if law == 'constant':
        return {'law': law, 'target': length, 'start_from': 'grid'}
    return {**checkpoint.LAW, 'target': length, 'shares': SHARES}
