"""Models of synthetic tasks, as in the second paper (arXiv 2305.19466): task, model, training.

task: what a run trains on: a task by name (nope/data/tasks), its longest and shortest training
    length, its number of symbols, a format of scratchpad, the folder of its files where it has
    them, and numbers of examples; None for the task's own.
tokenizer: 'words', the closed vocabulary of the task, or the path of t5-base's SentencePiece model.
train.length: tokens that examples are padded to.
exact_match: how many examples of each length are measured (None: all), of at most `limit` tokens
    with the answer, up to the length `reach`; `longer` ones are refused, or wrong. A further entry
    `{'kind': 'exact_match', 'run': RUN, 'exact_match': {'reach': 60}}` asks a trained model for
    more.

quick: the block of the other quick models, 4 layers of width 64, no dropout, a constant learning
    rate with a linear tail.
small, medium: T5's decoder, 4 layers of width 96 and 8 of width 256, with the released dropout of
    0.1. Attention trains with T x S numbers for each head, since no kernel drops weights
    (`--config.model.attention_dropout=0.0` trains with kernels).
paper: T5-base's decoder of 109.6 million parameters with its vocabulary. The model of the
    vocabulary (`--config.task.tokenizer=FILE`) and PCFG's files (`--config.task.path=FOLDER`) have
    to be given.

Every `train.validate_every` steps (None: never, as at quick) the model is scored on the first
`train.validation_share` of the validation examples (half, as in the released code), by the share
whose whole target it would write. The checkpoint with the best score, the earliest of equals, is
kept beside the last, and everything that stands on the run has its weights.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from configs.shared import base

SEEDS = (256788, 234054, 146317)  # of the released code
GENERATOR_SEED = 9842497

# The paper's 17 tasks.
SPLITS = (
    *('rsc', 'rsc2x', 'rdc', 'cmc', 'cmc2x', 'mc', 'mc2x', 'mcrv'),
    *('addition', 'polynomial', 'sort_single', 'sort_multi', 'summation', 'parity', 'lego'),
    *('scan', 'pcfg'),
)
# What the second paper calls an encoding.
PAPER = {'rope': 'RoPE', 'alibi': 'ALiBi', 't5': 'T5', 'sinusoidal': 'APE', 'nope': 'NoPE'}

_SHAPES: dict[str, dict] = {
    'quick': {'layers': 4, 'width': 64, 'heads': 4, 'mlp_width': 168},
    'small': {'layers': 4, 'width': 96, 'heads': 4, 'mlp_width': 384},
    'medium': {'layers': 8, 'width': 256, 'heads': 8, 'mlp_width': 1024},
    'large': {'layers': 8, 'width': 512, 'heads': 8, 'mlp_width': 2048},
    'paper': {'layers': 12, 'width': 768, 'heads': 12, 'mlp_width': 3072},
}
# One for all tasks, so that they share their programs; at quick each task has its own.
_VOCABULARY = {'small': 1200, 'medium': 1200, 'large': 1200, 'paper': 32_100}
# Training: steps, learning rate, share of the steps that warm up.
_TRAIN = {
    'quick': (400, 1e-3, 0.06),
    'small': (2500, 1e-3, 0.06),
    'medium': (20_000, 1e-4, 0.06),
    'large': (40_000, 1e-4, 0.06),
    'paper': (40_000, 3e-5, 0.06),
}
# Steps between two validations; at paper size as released, and as often elsewhere.
_VALIDATE = {'small': 250, 'medium': 1000, 'large': 1000, 'paper': 2000}


def seeds(argument: str, quick: tuple[int, ...] = (0, 1, 2)) -> tuple[int, ...]:
    """The seeds of a size, `quick` at quick, others' are those of the paper. argument: the size,
    and what stands behind it."""
    return quick if argument.split(',')[0] == 'quick' else SEEDS


def experiment(name: str, size: str) -> ConfigDict:
    """A config without runs: the sections at `size`."""
    config = base.experiment(name, size)
    config.model.update(_shape(size))
    if size != 'quick':
        config.model.update(_t5(config.model.width))
    steps, rate, warmup = _TRAIN[size]
    del config.train.decay_steps, config.train.warmup_steps
    config.train.update(
        {
            'decay_steps': placeholder(int),
            'length': 255,
            'batch_size': 64,
            'steps': steps,
            'learning_rate': rate,
            'warmup_share': warmup,  # of the steps, where warmup_steps is None
            'warmup_steps': placeholder(int),
            'schedule': 'linear_tail',
            'tail_share': 0.25 if size == 'quick' else 1 - warmup,
            'end_share': 0.0 if size == 'quick' else 1 / 300,
            'b2': 0.999,
            'weight_decay': 0.05,
            'keep': (),
            'validate_every': _VALIDATE.get(size, placeholder(int)),
            'validation_share': 0.5,
            'data_seed': 0,
        }
    )
    config.task = {
        'name': 'cmc',
        'longest': placeholder(int),
        'shortest': placeholder(int),
        'symbols': placeholder(int),
        'scratchpad': placeholder(str),
        'path': placeholder(str),
        'tokenizer': 'shards/spiece.model' if size == 'paper' else 'words',
        'train': placeholder(int),
        'validation': placeholder(int),
        'test': placeholder(int),
        'seed': GENERATOR_SEED,
    }
    config.exact_match = {
        'tests': placeholder(int),
        'limit': 256 if size == 'paper' else 128,
        'longer': 'wrong' if size == 'paper' else 'refused',
        'reach': placeholder(int),  # greatest length of the tests; None: that of the task, 2 L
    }
    # At paper size the float32 caches of 2^16 tokens a device take 16 to 20 GiB.
    config.evaluation.batch_tokens = 2**14 if size == 'paper' else 2**16
    config.compute.checkpoint_every = 2000 if size == 'paper' else 200
    return config


def _shape(size: str) -> dict:
    shape = _SHAPES[size]
    return shape | {
        'kv_heads': shape['heads'],
        'head_dim': shape['width'] // shape['heads'],
        'dtype': 'float32',
        'remat': 'none',
        'dropout': 0.0 if size == 'quick' else 0.1,
        'attention_dropout': 0.0 if size == 'quick' else 0.1,
        **({'vocab_size': _VOCABULARY[size]} if size in _VOCABULARY else {}),
        **({'unroll': 1} if size == 'paper' else {}),
    }


def _t5(width: int) -> dict:
    """T5's decoder: its norm, MLP, tied head and starts, and no 1 / sqrt(H)."""
    return {
        'norm_epsilon': 1e-6,
        'softmax_scale': 1.0,
        'mlp': 'plain',
        'activation': 'relu',
        'tied_head': True,
        'logit_multiplier': width**-0.5,
        'init': 't5',
    }


def encodings(config: ConfigDict) -> dict[str, tuple[str, dict]]:
    """Name -> label and position of the paper's five encodings, in the order that decides ties of
    its ranks. RoPE turns a quarter of a head's dimensions, in pairs of neighbours."""
    rope = {'kind': 'rope', 'dims': config.model.head_dim // 4, 'interleaved': True}
    return {
        'rope': ('RoPE', rope),
        'alibi': ('ALiBi', {'kind': 'alibi'}),
        't5': ('T5 bias', {'kind': 't5'}),
        'sinusoidal': ('sinusoidal', {'kind': 'sinusoidal'}),
        'nope': ('NoPE', {'kind': 'none'}),
    }
