"""Jensen-Shannon distance of attention patterns under four position encodings from those of NoPE.

    nope run b_attention:quick --workdir=work/quick
    nope run b_attention:quick,addition --workdir=work/quick
    nope run b_attention:quick,text --workdir=work/quick

Figures 4 and F.7 of the second paper (arXiv 2305.19466). Two models read the same ten examples of
each length; each layer gives its least distance over pairs of heads. NoPE of the next seed stands
beside the four. The models are those of b_mrr. `addition` compares those that add without
scratchpad in b_scratchpad, and `text` the models of encodings in windows of L to 8 L.

quick: rsc and rdc, three seeds; a minute of one core a task after b_mrr with three seeds in one
work folder. Result: sinusoidal positions attend least like NoPE. T5's bias is as near as NoPE of
another seed.

quick,addition: three seeds, 15 models of 4,000 steps, a minute of one core each. Numbers of up to 5
digits are trained, of up to 10 read. Result: ALiBi and T5's bias attend as NoPE of another seed
does, RoPE and sinusoidal positions less so.

quick,text: one seed, a minute of one core after encodings. Result of models of a sixteenth of the
steps, which this does not repeat: T5's bias is nearest and RoPE farthest, as in the paper.

small, medium, paper: rsc and scan, or addition, three seeds. Not run.
"""

from ml_collections import ConfigDict

from configs.encodings import encodings
from configs.second_paper import b_mrr, b_scratchpad
from configs.shared import base, tasks

TASKS = ('rsc', 'scan')  # the paper's figures are of SCAN
QUICK = ('rsc', 'rdc')
ADDITION = 'addition_none'  # runs of b_scratchpad without scratchpad
TIMES = (1.0, 2.0, 4.0, 8.0)
QUERIES = 64  # of each window
TEXTS = {'t5': 'T5', 'alibi': 'ALiBi', 'rope': 'RoPE'}


def get_config(argument: str = 'quick') -> ConfigDict:
    size, _, part = argument.partition(',')
    if part not in ('', 'addition', 'text'):
        raise ValueError(
            f'b_attention: {part!r} behind the size is unknown; accepted: nothing, addition or text'
        )
    base.check_size('b_attention', size)
    if part == 'text':
        return _of_text(size)
    if part:
        return _of_tasks(b_scratchpad.named('b_attention_addition', size), (ADDITION,))
    return _of_tasks(b_mrr.named('b_attention', size), QUICK if size == 'quick' else TASKS)


def _of_tasks(config: ConfigDict, names: tuple[str, ...]) -> ConfigDict:
    """The distances of models whose runs are called TASK_ENCODING, of these tasks."""
    trained, others = config.runs.to_dict(), tasks.encodings(config)
    config.runs, config.evals = ConfigDict(), ConfigDict()
    curves = []
    for task in names:
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
