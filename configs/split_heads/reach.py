"""Passkey retrieval at 16 to 64 L against the loss at L, one dot a training.

    nope run reach:quick --workdir=work/quick

Eight trainings of every method at quick, three elsewhere, which differ in their seeds: half forget
gates, half NoPE; half RoPE in a window of L / 4, half NoPE; NAPE, half ALiBi, half NoPE under a law
trained in. They are asked for one key as trained and with 1 + a ln(n / L), an a for each NoPE head,
searched up to 8 L. For NAPE this multiplies the law that it was trained under, and a may be
negative. Models are those of split_seeds and split_window.

Quick: 24 trainings, about 2.5 hours of two CPU cores. Result: NAPE repeats every key at 64 L in
each of eight trainings. Half RoPE windows repeat 50 percent as trained and 75 with lambda on
average, at equal loss.
"""

from ml_collections import ConfigDict

from configs.shared import models, splits

TIMES = (16.0, 32.0, 64.0)
SEEDS = {'quick': 8, 'small': 3, 'medium': 3, 'large': 3, 'paper': 3}


def get_config(size: str = 'quick') -> ConfigDict:
    config = splits.experiment('reach', size)
    config.seeds = tuple(range(SEEDS[size]))
    labels = add_methods(config)
    draw(config, labels)
    config.figure.roles = {'split': labels['half_forget']}
    return config


def draw(config: ConfigDict, labels: dict[str, str]) -> None:
    """Draws the runs in `labels`, as trained and with a searched lambda."""
    points = []
    for run, label in labels.items():
        searched = splits.add_log_length(config, run)
        if 'data' in config.runs[run]:  # a search reads what the model was trained on
            config.runs[searched].data = config.runs[run].data
        config.evals[f'{run}_at_l/'] = {'kind': 'lengths', 'run': run, 'times': (1.0,)}
        for name in (run, searched):
            config.evals[f'{name}_far/'] = {'kind': 'passkey', 'run': name, 'lengths': TIMES}
        points.append(
            {
                'label': label,
                'loss': f'{run}_at_l',
                'keys': f'{run}_far',
                'searched': f'{searched}_far',
            }
        )
    config.figure = {'kind': 'reach', 'points': tuple(points)}


def add_methods(config: ConfigDict) -> dict[str, str]:
    """The models; returns run -> label."""
    window = splits.split(models.ROPE, window=config.train.length // 4)
    return {
        splits.add_split(config, 'half_forget', splits.split(splits.FORGET)): 'half forget gates',
        splits.add_split(config, 'half_rope_window', window): 'half RoPE windows',
        splits.add_nape(config): 'NAPE',
    }
