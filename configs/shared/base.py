"""Sections of every config with their defaults, at five sizes.

quick: bytes of the Python standard library, L = 64, 228k parameters; minutes to hours of two CPU
    cores.
small: the same text, L = 128, 0.9M parameters; hours of two CPU cores, or one GPU.
medium: the same text, L = 256, 4.9M parameters; hours of two CPU cores, or one GPU.
large: 688 English books in 8,192 subwords, L = 512, 34M parameters; one GPU. configs/books says how
    to make the books and their tokenizer. Not run.
paper: TinyLlama 1.1B on SlimPajama and Starcoder, L = 2048; a TPU pod or a GPU cluster. Put
    token shards (nope prepare) and the Llama-2 tokenizer where `data` points.

Fields are documented where they are used: `model` in nope/model/fields.py, `train` and `search` in
nope/training/optim.py and nope/training/config.py, `compute` in the latter.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from configs.shared import data, models

AXES = ('data', 'fsdp', 'tensor', 'context')  # of a mesh of devices
SIZES = ('quick', 'small', 'medium', 'large', 'paper')


def check_size(name: str, size: str) -> None:
    if size not in SIZES:
        raise ValueError(
            f'{name}: size {size!r} is unknown; accepted: '
            + ', '.join(f'{name}:{known}' for known in SIZES)
        )


def experiment(name: str, size: str) -> ConfigDict:
    """A config without runs: the sections at `size`."""
    check_size(name, size)
    return ConfigDict(
        {
            'name': name if size == 'quick' else f'{name}_{size}',
            'seeds': (0,),
            'model': models.at(size),
            'data': data.at(size),
            'train': _train(size),
            'search': _search(),
            'finetune': _finetune(),
            'evaluation': _evaluation(size),
            'grid': _grid(size),
            'compute': _compute(size),
            'runs': {},
            'evals': {},
            'exports': {},
            'figure': {'kind': ''},
        }
        | ({'recipe': data.RECIPE} if size == 'large' else {})
    )


# Tokens of a sequence, steps, learning rate and steps of its warmup.
_PRE_TRAINING = {
    'quick': (64, 2400, 3e-3, 100),
    'small': (128, 2800, 2e-3, 100),
    'medium': (256, 3000, 1.5e-3, 100),
    'large': (512, 8000, 1e-3, 200),
    'paper': (2048, 50_000, 3.5e-4, 2000),
}


def _train(size: str) -> dict:
    """Pre-training. At paper size TinyLlama's recipe with the NoPE learning rate; the cosine
    ends at step 1,430,512, so the 50,000-step model is not annealed."""
    paper = size == 'paper'
    length, steps, learning_rate, warmup_steps = _PRE_TRAINING[size]
    return _adam() | {
        'length': length,
        'batch_size': 1024 if paper else 32,
        'steps': steps,
        'learning_rate': learning_rate,
        'warmup_steps': warmup_steps,
        'schedule': 'cosine' if paper else 'linear_tail',
        'decay_steps': 1_430_512 if paper else placeholder(int),
        'end_share': 0.1 if paper else 0.0,
        'weight_decay': 0.1,
        'decayed': 'all',
        'entropy_penalty': 0.0,  # of heads without position
        'random_positions': placeholder(float),  # below so many times L; None: 0, 1, 2 and so on
        'data_seed': 3407,
        'keep': (0.2,),  # shares of the steps whose checkpoint stays: fig7 measures there
    }


def _search() -> dict:
    """The search of lambda: 200 steps of 8 sequences, cosine to a tenth."""
    return _later() | {
        'law': 'constant',
        'objective': 'loss',  # or 'entropy': that of each head at L, without labels
        'learning_rate': 0.1,
        'warmup_steps': placeholder(int),  # None: a tenth of the steps
        'bound': placeholder(float),  # of the coefficients; None: the law's neutral one
        'straight_through': False,
        'tied': False,  # one coefficient for all heads
        'start': placeholder(float),  # None: the law's neutral coefficient
        # A grid among the evals, whose best multiplier takes the place of `start`.
        'start_from': placeholder(str),
        'data_seed': 314,
    }


def _finetune() -> dict:
    """Fine-tuning of all parameters at a longer length, as the paper's baselines are: 200 steps
    ("fair") of 8 sequences, cosine to a tenth."""
    return _later() | {
        'trains': placeholder(str),  # 'position': the learned positions alone; None: all parameters
        'learning_rate': 1e-4,
        'warmup_share': 0.1,
        'weight_decay': 0.0,
        'decayed': 'all',
        'data_seed': 42,
    }


def _later() -> dict:
    """Lengths, batch and schedule of a search of lambda and of fine-tuning."""
    return _adam() | {
        'times': (2.0,),
        'target': placeholder(int),  # tokens; `shares` of it take the place of `times`
        'shares': (1.0,),
        'batch_size': 8,
        'steps': 200,
        'schedule': 'cosine',
        'end_share': 0.1,
    }


def _adam() -> dict:
    return {
        'b1': 0.9,
        'b2': 0.95,
        'epsilon': 1e-8,
        'clip': 1.0,
        'on_bad': 'stop',
        'spike': placeholder(float),
        'tail_share': 0.25,
    }


def _evaluation(size: str) -> dict:
    """Windows that figures report: `cut` from within 'documents', or 'packed' one after the other,
    as the paper's 1,000 blocks of the validation split are, or the 'ends' of documents of
    `shortest` tokens or more and fewer than `longest` (None: of any number)."""
    windows = 1000 if size == 'paper' else 1024
    of_size = {'quick': 2048, 'small': 4096, 'medium': 8192, 'large': 32_768, 'paper': 16384}
    return {
        'windows': windows,
        'split': 'test',
        'cut': 'documents',
        'shortest': placeholder(int),
        'longest': placeholder(int),
        'seed': 0,
        'batch_tokens': of_size[size],
    }


def _grid(size: str) -> dict:
    """Uniform multipliers, chosen on windows of another split than the reported ones."""
    windows = 1000 if size == 'paper' else 256
    return {
        'low': 0.9,
        'high': 2.0,
        'increment': 0.05,
        'windows': windows,
        'split': 'validation',
        'cut': 'documents',
        'shortest': placeholder(int),
        'longest': placeholder(int),
        'seed': 0,
    }


def _compute(size: str) -> dict:
    paper = size == 'paper'
    every = 1000 if paper else 400
    # Sizes of None take the devices that are left. After pre-training data * fsdp has to divide the
    # search's 8 sequences, which are long: the context axis takes the others. All None: as `mesh`.
    mesh: tuple = (None, 1, 1, 1)
    later: tuple = (None,) * 4
    if paper:
        mesh, later = (1, None, 1, 1), (1, 8, 1, None)
    return {
        'mesh': mesh_sizes(AXES, mesh),
        'later_mesh': mesh_sizes(AXES, later),
        'checkpoints': placeholder(str),
        'accumulate': placeholder(int) if paper else 1,
        'shard_sequences': 4,
        'checkpoint_every': every,
        'log_every': 10,
        'keep': 2,
        'threads': 8 if paper else 1,
        'slow_step': 5.0,
        'hang_seconds': 600.0,
        'profile': 0,
        'monitor': 0,
        'wandb': placeholder(str),
    }


def mesh_sizes(axes: tuple[str, ...], sizes: tuple[int | None, ...]) -> dict:
    """A mesh's section; a size of None, which takes the devices that are left, can be set."""
    return {
        axis: placeholder(int) if size is None else size
        for axis, size in zip(axes, sizes, strict=True)
    }
