"""Jensen-Shannon distance of attention patterns under four position encodings from those of NoPE.

    nope run b_attention:quick --workdir=work/quick
    nope run b_attention:quick,text --workdir=work/quick

Figures 4 and F.7 of the second paper (arXiv 2305.19466): the Jensen-Shannon distance between the
attention of an encoding's model and of NoPE's on the same examples, of each layer the least over
pairs of heads, on ten examples of each length; beside them NoPE of the next seed. The models are
those of b_mrr. `text` compares models of text instead, those of encodings, in windows of L to 8 L.

quick: copying of one symbol (rsc) and replacement (rdc), three seeds; half a minute of one core a
model where b_mrr and b_lambda have not trained it yet, and 40 seconds for the distances of a task.
small, medium: rsc and scan, three seeds. Not run.
paper: the same, with the twelve layers of Figure F.7. Not run.
quick,text: one seed; beside the models of encodings a minute of one core.

Result at quick: sinusoidal positions, second to rotary in the paper, attend least like NoPE; rotary
is nearest on rsc and T5's bias on rdc, which over both is as near as NoPE of another seed. On text,
after a sixteenth of the training of encodings, T5's bias is nearest and rotary farthest, as in the
paper.
"""

from ml_collections import ConfigDict

from configs.encodings import encodings
from configs.second_paper import b_mrr
from configs.shared import base, tasks

TASKS = ('rsc', 'scan')  # the paper's figures are of SCAN
QUICK = ('rsc', 'rdc')
TIMES = (1.0, 2.0, 4.0, 8.0)
QUERIES = 64  # of each window
TEXTS = {'t5': 'T5', 'alibi': 'ALiBi', 'rotary': 'Rotary'}


def get_config(argument: str = 'quick') -> ConfigDict:
    size, _, part = argument.partition(',')
    if part not in ('', 'text'):
        raise ValueError(
            f'b_attention: {part!r} behind the size is unknown; accepted: nothing, or text'
        )
    return _of_text(size) if part else _of_tasks(size)


def _of_tasks(size: str) -> ConfigDict:
    config = b_mrr.named('b_attention', size)
    trained, others = config.runs.to_dict(), tasks.encodings(config)
    config.runs, config.evals = ConfigDict(), ConfigDict()
    curves = []
    for task in QUICK if size == 'quick' else TASKS:
        nope = f'{task}_nope'
        for name, (label, _) in others.items():
            run = f'{task}_{name}'
            config.runs[run] = trained[run]
            entry: dict = {'kind': 'attention_distance', 'run': run, 'other': nope}
            if run == nope:
                entry, label = entry | {'seeds_further': 1}, 'NoPE, another seed'
            config.evals[f'{run}/'] = entry
            curves.append({'group': run, 'label': label, 'paper': tasks.PAPER[name]})
    config.figure = {'kind': 'attention_distance', 'curves': tuple(curves)}
    return config


def _of_text(size: str) -> ConfigDict:
    base.check_size('b_attention', size)
    config = encodings.get_config(size)
    config.name = config.name.replace('encodings', 'b_attention_text')
    config.evaluation.windows = min(config.evaluation.windows, 64)
    trained = config.runs.to_dict()
    config.runs = ConfigDict({name: trained[name] for name in ('none', *TEXTS)})
    config.evals = ConfigDict()
    for name in TEXTS:
        config.evals[f'{name}/'] = {
            'kind': 'attention_distance',
            'run': name,
            'other': 'none',
            'times': TIMES,
            'queries': QUERIES,
        }
    config.figure = {
        'kind': 'attention_distance',
        'curves': tuple(
            {'group': name, 'label': encodings.ENCODINGS[name][0], 'paper': paper}
            for name, paper in TEXTS.items()
        ),
    }
    return config
