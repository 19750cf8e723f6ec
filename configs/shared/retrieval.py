"""Models trained to retrieve: shared by the passkey figures, the frontier and the ablations.

Paper size takes the models of all other figures. The smaller sizes train their own, on equal parts
of the standard library and of synthetic records, which hide a key and ask for it. A small model
repeats no key after program text alone. Searches and fine-tuning read the same parts, with records
as long as their longest windows (`data.record_length`). Several records in a window, or text alone,
would undo what was learned. Shorter windows of a law's search are the beginnings of records, of
which a fifth (2 L) to a half (4 L) ask for a key. A prompt has one key, or with `data.needles`
above 1 several with names.
"""

from ml_collections import ConfigDict

from configs.shared import base, models, pieces, text

LENGTHS = {'quick': 128, 'small': 256, 'medium': 256, 'large': 512}


def experiment(name: str, size: str) -> ConfigDict:
    config = text.add(base.experiment(name, size), size)
    if size != 'paper':
        length = LENGTHS[size]
        config.train.length = length
        config.train.steps = {'quick': 1200, 'small': 2400, 'medium': 2400, 'large': 4000}[size]
        config.data.mixture = ((config.data.source, 0.5), ('retrieval', 0.5))
        config.data.source = 'stdlib'  # the default, beside which a mixture may stand
        config.evaluation.batch_tokens = 32_768 if size == 'large' else 8192
        config.grid.windows = 64
    return config


def yarn(config: ConfigDict, times: float) -> str:
    """The RoPE model fine-tuned under YaRN at `times` L, 200 steps; returns its name."""
    name = f'yarn_fair_{times:g}x'
    config.runs[name] = {
        'init': 'rope',
        'model': {'position': models.rope('yarn', times)},
        'finetune': {'times': (times,), 'warmup_share': 0.02},
    }
    if not pieces.is_paper(config):
        config.finetune.learning_rate = config.train.learning_rate / 4
    return name


def passkey(config: ConfigDict, run: str, times: float, window: float | None = None) -> str:
    """Measures `run` on prompts up to `times` L; returns the prefix of the records."""
    name = f'{run}_passkey/'
    config.evals[name] = {'kind': 'passkey', 'run': run, 'times': times}
    if window is not None:
        config.evals[name]['window'] = window
    return name
