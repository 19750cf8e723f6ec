"""Exact match of encoders, with and without positions, beside that of decoders, on copying.

    nope run b_encoder:quick --workdir=work/quick

The causal mask shows a NoPE decoder the order of tokens (arXiv 2305.19466). An encoder has no such
mask: every token sees every token, and without positions it reads a bag of words. It is given the
prompt and a masked place for each token of the answer, and predicts all of them in one pass.

Answers of rsc and rdc are one symbol repeated, which a bag of words tells; those of cmc have an
order. All masked places of an encoder without positions predict the same. It should solve rsc and
rdc at any length, and of cmc only answers that repeat one symbol. The places also tell an encoder
how long the answer is; a decoder has to stop by itself.

quick: L = 10, three seeds; 45 models, half a minute of one core each. Decoders on rsc and rdc are
those of b_mrr, in one work folder. cmc has 20 symbols. Result, five seeds: as expected. Beyond L an
encoder without positions has 100 and 98 percent of rsc and rdc, and none of cmc.
small, medium, paper: the tasks of the paper's lengths. Not run.
"""

from ml_collections import ConfigDict

from configs.second_paper import b_mrr
from configs.shared import tasks

QUICK: b_mrr.Chosen = {
    'rsc': b_mrr.QUICK['rsc'],
    'rdc': b_mrr.QUICK['rdc'],
    'cmc': ({'longest': 10, 'symbols': 20, 'train': 9000, 'validation': 900, 'test': 1000}, 24),
}
_SOME = {'train': 19_000, 'validation': 1900, 'test': 2000}
SMALL: b_mrr.Chosen = {'rsc': b_mrr.SMALL['rsc'], 'rdc': (_SOME, 46), 'cmc': (_SOME, 43)}
PAPER: b_mrr.Chosen = {task: b_mrr.PAPER[task] for task in QUICK}
# End of a run's name -> label, encoding, changes of the model.
MODELS: dict[str, tuple[str, str, dict]] = {
    'encoder_nope': ('encoder, NoPE', 'nope', {'causal': False}),
    'encoder_rope': ('encoder, RoPE', 'rope', {'causal': False}),
    'encoder_sinusoidal': ('encoder, sinusoidal', 'sinusoidal', {'causal': False}),
    'nope': ('decoder, NoPE', 'nope', {}),
    'rope': ('decoder, RoPE', 'rope', {}),
}


def get_config(argument: str = 'quick') -> ConfigDict:
    """argument: a size; after it the names of tasks, if not all."""
    size, *only = argument.split(',')
    config = tasks.experiment('b_encoder', size)
    config.seeds = tasks.seeds(argument)
    chosen = {'quick': QUICK, 'paper': PAPER}.get(size, SMALL)
    if unknown := [task for task in only if task not in chosen]:
        raise ValueError(
            f'b_encoder:{argument}: task {unknown[0]!r} is not drawn; accepted: {", ".join(chosen)}'
        )
    encodings = tasks.encodings(config)
    curves = []
    for task, (changes, length) in chosen.items():
        if only and task not in only:
            continue
        for name, (label, encoding, model) in MODELS.items():
            run = f'{task}_{name}'
            config.runs[run] = {
                'task': {'name': task, **changes},
                'train': {'length': length},
                'model': {'position': encodings[encoding][1], **model},
            }
            config.evals[f'{run}/'] = {'kind': 'exact_match', 'run': run}
            curves.append({'group': run, 'label': label})
    config.figure = {'kind': 'encoding_ranks', 'curves': tuple(curves)}
    return config
