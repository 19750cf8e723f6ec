"""Exact match on longer problems of models whose softmax temperature was searched.

    nope run b_lambda:quick --workdir=work/quick

Does a multiplier carry NoPE further on longer problems, as on longer text? The NoPE models of b_mrr
are compared on copying and reversal, beyond 1.5 L, where neither weights nor lambda have seen an
example:

- as trained, and at the temperature by entropy of Velickovic et al., which needs no search;
- with HeadScale from 1, and with a law of the position beyond L, both searched on examples of L + 1
  to 1.5 L with the weights frozen;
- with HeadScale searched on the examples of training, and searched without answers, by the entropy
  that each head has in prompts of L;
- with all weights tuned on the longer examples for as many steps.

RoPE stands beside them.

quick: the three tasks of b_mrr, three seeds; half a minute of one core a search after b_mrr with
three seeds in one work folder. Result: HeadScale gains 21 points, the law of the position 11,
HeadScale searched up to L none. Without answers it loses 36 points, and tuned weights get nearly
all right.

small, medium, paper: copying and reversal at that size. Not run.
"""

from ml_collections import ConfigDict

from configs.second_paper import b_mrr
from configs.shared import base

TASKS = ('rsc', 'rsc2x', 'rdc', 'cmc', 'cmc2x', 'mc', 'mc2x', 'mcrv')
LONGEST = 20  # of these tasks, where a size says no other
UNTIL = 1.5  # longest examples of a search, in longest ones of training
# Run -> label, and the run's entry; BASE stands for the task's NoPE model.
LAWS = {'headscale': ('HeadScale', 'constant'), 'position': ('by position', 'log_position')}


def get_config(argument: str = 'quick') -> ConfigDict:
    """argument: as of b_mrr, of the tasks that copy or reverse. ValueError for others."""
    config = b_mrr.named('b_lambda', argument)
    config.search.batch_size = config.finetune.batch_size = 64
    config.finetune.learning_rate = config.train.learning_rate
    # Sequences whole on each device: tuned weights train with dropout of attention's weights.
    config.compute.later_mesh = base.mesh_sizes(base.AXES, (None,) * len(base.AXES))
    trained = config.runs.to_dict()
    config.runs, config.evals = ConfigDict(), ConfigDict()
    chosen = [task for task in TASKS if f'{task}_nope' in trained]
    if not chosen:
        raise ValueError(f'b_lambda:{argument} names no task of {", ".join(TASKS)}')
    curves = [curve for task in chosen for curve in _add(config, trained, task)]
    config.figure = {'kind': 'task_lambda', 'curves': tuple(curves)}
    return config


def _add(config: ConfigDict, trained: dict, task: str) -> list[dict]:
    """Adds the runs and evaluations of one task; returns its curves."""
    base, rope = f'{task}_nope', f'{task}_rope'
    # Stated, since searches begin where training ends.
    longest = trained[base]['task'].get('longest', LONGEST)
    for run in (base, rope):
        config.runs[run] = trained[run] | {'task': trained[run]['task'] | {'longest': longest}}
    config.runs[f'{base}_entropy'] = {'init': base, 'model': {'temperature': 'entropy'}}
    labels = {base: ('NoPE', 'base'), f'{base}_entropy': ('temperature by entropy', 'other')}
    longer = _longer(config.runs[base].task.to_dict())
    for name, (label, law) in LAWS.items():
        search = {'law': law, 'times': (UNTIL,)}
        config.runs[f'{base}_{name}'] = {'init': base, 'task': longer, 'search': search}
        labels[f'{base}_{name}'] = (label, 'searched')
    unlabelled = {'law': 'constant', 'times': (UNTIL,), 'objective': 'entropy'}
    config.runs[f'{base}_prompts'] = {'init': base, 'task': longer, 'search': unlabelled}
    labels[f'{base}_prompts'] = ('HeadScale, without answers', 'searched')
    task = config.runs[base].task.to_dict()
    inside = {'law': 'constant', 'times': (1.0,)}
    config.runs[f'{base}_inside'] = {'init': base, 'task': task, 'search': inside}
    labels[f'{base}_inside'] = ('HeadScale, searched up to L', 'other')
    config.runs[f'{base}_tuned'] = {'init': base, 'task': longer, 'finetune': {'times': (UNTIL,)}}
    labels[f'{base}_tuned'] = ('weights tuned', 'other')
    labels[rope] = ('RoPE', 'other')
    for run in labels:
        config.evals[f'{run}/'] = {'kind': 'exact_match', 'run': run}
    return [{'group': run, 'label': label, 'role': role} for run, (label, role) in labels.items()]


def _longer(task: dict) -> dict:
    """The task at lengths beyond those of training, up to `UNTIL` times the longest. As many
    examples of each length as in training: rdc has as many symbols as these need."""
    longest = task['longest']
    until = round(UNTIL * longest)
    each = (task.get('train', 100_000) + task.get('validation', 15_000)) // (longest - 1)
    sizes = {
        'train': 4 * each * (until - longest) // 5,
        'validation': each * (until - longest) // 5,
    }
    return task | sizes | {'longest': until, 'shortest': longest + 1}
