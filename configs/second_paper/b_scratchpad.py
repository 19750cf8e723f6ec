"""Exact match by format of scratchpad and by encoding on longer problems.

    nope run b_scratchpad:quick --workdir=work/quick

Figures 6 and F.8 to F.15 of the second paper (arXiv 2305.19466): a model for every task, format,
encoding and seed, trained on short examples. It writes its scratchpad greedily, and its final
answer alone counts. The share of scratchpads that parse and are right stands beside it. Formats are
none, full, full without one of its five parts, and minimal (computation and output). Sorting and
LEGO have no intermediate variables, and no format without them.

quick: sorting of up to 4 of 10 symbols in three formats, NoPE and ALiBi. Addition of up to 5 digits
with a full scratchpad and without, five encodings. One seed (`--config.seeds="(0,1,2)"` for three):
16 models, half an hour of one core. Addition without scratchpad has as many tokens as with it,
sorting in every format as many steps. Result, three seeds: the minimal format carries sorting
furthest, NoPE to 0.55 beyond L (0.33 without scratchpad). On addition nothing reads far beyond L.
small, medium: addition, sorting and summation at the paper's lengths, five encodings, three seeds;
three formats at small, all at medium. Not run.
paper: seven tasks, all formats, 795 runs. Answers end at 256 tokens, with a scratchpad at 1,500 as
in the paper, of polynomials at 2,048, since the longest have more than 1,500 words. Not run.
"""

from ml_collections import ConfigDict

from configs.shared import tasks

FORMATS = (
    *('none', 'full', 'no_input', 'no_computation', 'no_output', 'no_variables'),
    *('no_remaining', 'minimal'),
)
FEW = ('none', 'full', 'minimal')
WITHOUT_VARIABLES = ('sort_single', 'sort_multi', 'lego')

# Task -> changes of the section `task`, and tokens of the longest training example that are read,
# by format; '' stands for the other formats.
Chosen = dict[str, tuple[dict, dict[str, int]]]

_SORTING = {'longest': 4, 'symbols': 10, 'train': 4000, 'validation': 240, 'test': 240}
_ADDITION = {'longest': 5, 'train': 6000, 'validation': 300, 'test': 450}
QUICK: Chosen = {
    'sort_single': (_SORTING, {'none': 32, 'full': 108, 'minimal': 80}),
    'addition': (_ADDITION, {'none': 24, 'full': 208}),
}
# Of each task at quick: formats, encodings, and the most tokens of an answer with its prompt.
QUICK_PARTS: dict[str, tuple[tuple[str, ...], tuple[str, ...], int]] = {
    'sort_single': (FEW, ('alibi', 'nope'), 288),
    'addition': (('none', 'full'), tuple(tasks.PAPER), 576),
}
# As many tokens as with the scratchpad: in as many steps nothing of it would be learned.
QUICK_STEPS = {('addition', 'none'): 4000}
_SOME = {'train': 19_000, 'validation': 1900, 'test': 2000}
SMALL: Chosen = {
    'addition': (_SOME, {'none': 33, '': 352}),
    'sort_single': (_SOME, {'none': 44, '': 220}),
    'summation': (_SOME, {'none': 24, '': 272}),
}
# Padded to the paper's limit, and with a scratchpad to far more than words have.
PAPER: Chosen = {
    task: ({}, {'none': 255, '': 1023})
    for task in (
        *('addition', 'polynomial', 'sort_single', 'sort_multi', 'summation', 'parity', 'lego'),
    )
}
LIMITS = {'small': 1024, 'medium': 1024, 'large': 1024, 'paper': 1500}
POLYNOMIAL_LIMIT = 2048


def get_config(size: str = 'quick') -> ConfigDict:
    config = named('b_scratchpad', size)
    config.seeds = tasks.seeds(size, quick=(0,))
    return config


def named(name: str, size: str) -> ConfigDict:
    """The experiment under the name of a config that is built on it."""
    config = tasks.experiment(name, size)
    config.seeds = tasks.seeds(size)
    if size == 'quick':
        config.train.update(
            {'steps': 500, 'batch_size': 24, 'learning_rate': 2e-3, 'warmup_steps': 30}
        )
    chosen = {'quick': QUICK, 'paper': PAPER}.get(size, SMALL)
    encodings = tasks.encodings(config)
    curves = []
    for task, (changes, lengths) in chosen.items():
        formats: tuple[str, ...] = FEW if size == 'small' else FORMATS
        names = tuple(encodings)
        if size == 'quick':
            formats, names, limit = QUICK_PARTS[task]
        else:
            limit = POLYNOMIAL_LIMIT if task == 'polynomial' else LIMITS[size]
        for style in formats:
            if style == 'no_variables' and task in WITHOUT_VARIABLES:
                continue
            for name in names:
                label, position = encodings[name]
                run = f'{task}_{style}_{name}'
                train = {'length': lengths.get(style) or lengths['']}
                if size == 'quick' and (task, style) in QUICK_STEPS:
                    train['steps'] = QUICK_STEPS[task, style]
                config.runs[run] = {
                    'task': {'name': task, 'scratchpad': style, **changes},
                    'train': train,
                    'model': {'position': position},
                }
                more = {} if style == 'none' else {'exact_match': {'limit': limit}}
                config.evals[f'{run}/'] = {'kind': 'exact_match', 'run': run, **more}
                curves.append({'group': run, 'label': label, 'paper': tasks.PAPER[name]})
    config.figure = {'kind': 'scratchpad_bars', 'curves': tuple(curves)}
    return config
