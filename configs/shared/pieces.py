"""Runs and evaluations that several figures share, so that they are identical."""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

# Multipliers that searches at `paper` begin from, by length in multiples of L. Those of 4 L and 9 L
# are the paper's, that of 2 L is a uniform multiplier of its Figure 2, and 8 L takes that of 9 L.
# At other sizes the best one on validation windows takes their place.
PAPER_STARTS = {2.0: 1.2, 4.0: 1.6, 8.0: 1.7, 9.0: 1.7}


def base(position: dict | None = None) -> dict:
    """A pre-trained model: NoPE, or with another encoding.

    `init` may name a checkpoint in its place (hf:DIR, a Hugging Face directory);
    `train.length=None` then takes its length. `nope`: it was trained without the rotation that its
    files speak of.
    """
    if position is None:
        return {'init': placeholder(str), 'nope': False}
    return {'init': placeholder(str), 'model': {'position': position}}


def more_training(config: ConfigDict, share: float) -> dict:
    """Fine-tuning at L for `share` of the pre-training's steps, in its batches, from half of its
    learning rate down to 0."""
    return {
        'times': (1.0,),
        'batch_size': config.train.batch_size,
        'steps': round(share * config.train.steps),
        'learning_rate': config.train.learning_rate / 2,
        'schedule': 'linear_tail',
        'tail_share': 0.7,
        'end_share': 0.0,
        'warmup_share': 0.05,
        'weight_decay': config.train.weight_decay,
    }


def is_paper(config: ConfigDict) -> bool:
    return config.name.endswith('_paper')


def add_grid(config: ConfigDict, times: float) -> str:
    """A grid of uniform multipliers on `nope` at `times` L; returns its name (a record a seed)."""
    name = f'grid_{times:g}x/'
    config.evals[name] = {'kind': 'multiplier_grid', 'run': 'nope', 'times': times}
    return name


def uniform(config: ConfigDict, times: float) -> dict:
    """A uniform multiplier for `times` L, or the best of a grid on validation windows."""
    if is_paper(config):
        return {'multiplier': PAPER_STARTS[times]}
    return {'multiplier_from': add_grid(config, times)}


def add_headscale(config: ConfigDict, times: float) -> str:
    """The run that searches one constant multiplier per head at `times` L; returns its name."""
    name = f'headscale_{times:g}x'
    search: dict = {'law': 'constant', 'times': (times,)}
    if is_paper(config):
        search['start'] = PAPER_STARTS[times]
    else:
        search['start_from'] = add_grid(config, times)
    config.runs[name] = {'init': 'nope', 'search': search}
    return name


def add_log_length(config: ConfigDict, times: tuple[float, ...]) -> str:
    """The run that searches one coefficient of ln(n / L) per head, batches at several lengths."""
    config.runs['log_length'] = {
        'init': 'nope',
        'search': {'law': 'log_length', 'times': times, 'bound': 0.0, 'start': 0.0},
    }
    return 'log_length'
