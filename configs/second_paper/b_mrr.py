"""Mean reciprocal ranks of five position encodings by length generalization on synthetic tasks.

    nope run b_mrr:quick --workdir=work/quick

Figures 1 to 3 of the second paper (arXiv 2305.19466). A model for every task, encoding and seed is
trained on short examples and tested by exact match on ones of up to twice the length. The released
ranks stand beside ours.

quick: copying of one symbol (rsc), twice as often (rsc2x), and replacement (rdc), L = 10, two
seeds. That is 30 models, half a minute of one core each; `--config.seeds="(0,1,2,3,4)"` takes five.
Result, five seeds: NoPE is first and sinusoidal last on every task and seed, as in the paper (once
T5's bias is last with it). In mean rank RoPE is second.

small, medium: five tasks at the paper's lengths, three seeds. One of them
(`b_mrr:small,rsc`) is 15 models, 15 minutes of one core each, less than one on a GPU.
Result of rsc at small: mean ranks have the paper's order, which three seeds do not decide.
paper: all 17 tasks, three seeds, 255 runs. Not run.
"""

from ml_collections import ConfigDict

from configs.shared import tasks

# Task -> changes of the section `task`, and the tokens of its longest training example.
Chosen = dict[str, tuple[dict, int]]

_EACH = {'longest': 10, 'symbols': 50, 'train': 360, 'validation': 90, 'test': 500}
QUICK: Chosen = {
    'rsc': (_EACH, 24),
    'rsc2x': (_EACH, 36),
    'rdc': (_EACH | {'train': 4000, 'validation': 500}, 32),
}
_SOME = {'train': 19_000, 'validation': 1900, 'test': 2000}
SMALL: Chosen = {
    'rsc': (_SOME | {'symbols': 1100}, 43),
    'rsc2x': (_SOME | {'symbols': 1100}, 63),
    'mc2x': (_SOME, 64),
    'sort_single': (_SOME, 44),
    'scan': ({}, 37),
}
# Padded to the paper's limit: how many tokens t5-base makes of an example its model says. PCFG has
# longer ones, of which the paper reads 256 tokens of the source and 256 of the target.
PAPER: Chosen = {name: ({}, 511 if name == 'pcfg' else 255) for name in tasks.SPLITS}


def get_config(argument: str = 'quick') -> ConfigDict:
    """argument: a size; after it the names of tasks, if not all."""
    config = named('b_mrr', argument)
    config.seeds = tasks.seeds(argument, quick=(0, 1))
    return config


def named(name: str, argument: str) -> ConfigDict:
    """The experiment under the name of a config that is built on it."""
    size, *only = argument.split(',')
    config = tasks.experiment(name, size)
    config.seeds = tasks.seeds(argument)
    chosen = {'quick': QUICK, 'paper': PAPER}.get(size, SMALL)
    if unknown := [task for task in only if task not in chosen]:
        raise ValueError(
            f'{name}:{argument}: task {unknown[0]!r} is not drawn at this size; '
            f'accepted: {", ".join(chosen)}'
        )
    chosen = {task: changes for task, changes in chosen.items() if not only or task in only}
    encodings = tasks.encodings(config)
    for task, (changes, length) in chosen.items():
        for encoding, (_, position) in encodings.items():
            run = f'{task}_{encoding}'
            config.runs[run] = {
                'task': {'name': task, **changes},
                'train': {'length': length},
                'model': {'position': position},
            }
            config.evals[f'{run}/'] = {'kind': 'exact_match', 'run': run}
    config.figure = {
        'kind': 'encoding_ranks',
        'curves': tuple(
            {'group': f'{task}_{encoding}', 'label': label, 'paper': tasks.PAPER[encoding]}
            for task in chosen
            for encoding, (label, _) in encodings.items()
        ),
    }
    return config
