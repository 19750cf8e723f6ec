"""Size `released`: figures and tables of the first paper from its published models.

    nope run --workdir=work/released \\
        --config=fig1:released,rope=DIR,nope=DIR,headscale8k=DIR

Nothing is pre-trained: `rope`, `nope` and, where it is given, `headscale8k`, one multiplier per
head for 4 L, are Hugging Face directories, fetched by

    hf download TinyLlama/tinyLlama-intermediate-checkpoints \\
        --revision step-50k-token-105B --local-dir DIR
    hf download AntNLP/TinyLlama-NoPE-1.1B --local-dir DIR
    hf download AntNLP/TinyLlama-NoPE-HeadScale8k --local-dir DIR

All else is as at `paper`, on one GPU or more. Windows, searches and fine-tuning read the standard
library of the Python that runs, until `data.source` names another text: the paper's is SlimPajama.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from configs.shared import base, data

SIZE = 'released'
NAMES = {
    'rope': 'TinyLlama/tinyLlama-intermediate-checkpoints, revision step-50k-token-105B',
    'nope': 'AntNLP/TinyLlama-NoPE-1.1B',
    'headscale8k': 'AntNLP/TinyLlama-NoPE-HeadScale8k',
}
HEADSCALE = 'headscale_4x'  # the run in whose place `headscale8k` may come


def also(get_config):
    """`get_config` of a config whose models were published, with the size `released` besides."""

    def with_released(argument: str = 'quick') -> ConfigDict:
        size, *more = argument.split(',')
        if size != SIZE:
            return get_config(argument)
        given = {name: path for name, path in map(_pair, more) if name in NAMES}
        others = [part for part in more if _pair(part)[0] not in NAMES]
        config = get_config(','.join(['paper', *others]))
        name = config.name.removesuffix('_paper')
        config.name = f'{name}_{SIZE}'
        _take(config, name, given)
        return config

    return with_released


def _leave_out_training(config: ConfigDict) -> None:
    """Leaves out what is measured in the midst of training: the end of it was published."""
    early = [name for name, entry in config.evals.items() if 'step_share' in entry]
    for name in early:
        del config.evals[name]
    if early:
        panels = config.figure.panels
        config.figure.panels = tuple(p for p in panels if p['record'] not in early)


def _pair(part: str) -> tuple[str, str]:
    name, _, path = part.partition('=')
    return name, path


def _take(config: ConfigDict, figure: str, given: dict[str, str]) -> None:
    """Puts the directories in the place of what would be trained, and the text that every machine
    has in that of the paper's. Directories that a figure has no use for are left alone, so that one
    line goes for all figures. ValueError for one that is missing."""
    places = {name: name for name, run in config.runs.items() if run.get('init') is None}
    if HEADSCALE in config.runs and 'headscale8k' in given:
        places[HEADSCALE] = 'headscale8k'
    missing = [name for name in places.values() if not given.get(name)]
    if missing:
        wanted = '; '.join(f'{name}=DIR, the directory of {NAMES[name]}' for name in missing)
        example = ','.join(f'{name}=DIR' for name in places.values())
        raise ValueError(
            f'{figure}: {wanted}: missing. Accepted: {figure}:{SIZE},{example}; '
            'shared/released.py has the commands that fetch them'
        )
    for run, name in places.items():
        config.runs[run] = {'init': f'hf:{given[name]}', 'nope': name != 'rope'}
    _leave_out_training(config)
    config.train.length = placeholder(int)
    config.data = {**data.at('quick'), 'tokenizer': placeholder(str)}
    mesh = config.compute.mesh
    config.compute.later_mesh = base.mesh_sizes(tuple(mesh.keys()), tuple(mesh.values()))
