"""Table 2: perplexity in sliding windows of L to 8 L.

    nope run table2:quick --workdir=work/quick

Models as trained; RoPE extended without training (the best factor of a grid) and by fine-tuning;
NoPE with one multiplier for all heads and with one per head. BLOOM and MPT take part where
directories are given: table2:paper,bloom=DIR,mpt=DIR. Paper size reads PG19 through
TensorFlow Datasets and proof-pile from a folder of JSON lines (`corpora`); the smaller sizes read
held-out files of the standard library, 20 windows of each that end at the same bytes for every
length. Documents come in the order in which the data set was prepared, which decides the ones that
the budget reaches.

table2:quick,longppl adds LongPPL (nope/evals/README.md) in columns of its own. The YaRN
model tuned at 8 L in 1,000 steps gives the key tokens. They are carried over to the tokenizers of
published models by their characters, which takes Hugging Face tokenizer files.

Quick: two CPU cores, 20 minutes a seed. Result, five seeds: HeadScale for 4 L has 0.09 nats less
there than one multiplier for 4 L; at 2 L which is ahead is open. At 8 L it is behind dynamic NTK
and YaRN in every seed.
"""

from ml_collections import ConfigDict

from configs.encodings import finetuned, zero_shot
from configs.shared import base, models, pieces, published, released, text

WINDOWS = (1.0, 2.0, 4.0, 8.0)
LABELS = {'dynamic_ntk': 'dynamic NTK', 'yarn': 'YaRN'}
ZERO = {'dynamic_ntk': 'NTK_zero', 'yarn': 'YaRN_zero'}
UNIFORM = {2.0: 1.2, 4.0: 1.5, 8.0: 1.8}  # the paper's, by the length they are for
SEARCHED = {2.0: '4K', 4.0: '8K', 9.0: '18K'}
TUNED = {2.0: '4K', 4.0: '8K', 8.0: '16K'}
LONGPPL = 'longppl'
ADDITIONS = (LONGPPL,)  # accepted after the size
EVALUATOR = 'yarn', 'raw', 8.0  # a RoPE model tuned at the longest window
BASE, ROPE, EXTENDED = 'As trained', 'RoPE, extended', 'NoPE, extended'


@released.also
def get_config(argument: str = 'quick') -> ConfigDict:
    parts = argument.split(',')
    size, directories = published.parse(
        ','.join(part for part in parts if part != LONGPPL), LONGPPL
    )
    config = text.add(base.experiment('table2', size), size)
    if size != 'paper':
        config.finetune.learning_rate = config.train.learning_rate / 4
        config.evaluation.batch_tokens = max(config.evaluation.batch_tokens, 8192)
    config.runs = {'rope': pieces.base(models.ROPE), 'nope': pieces.base()}
    published.add(config, directories)
    config.figure = {
        'kind': 'perplexity_table',
        'windows': tuple(int(w) for w in WINDOWS),
        'corpora': text.corpora(config),
        'rows': (
            *_trained(config, directories),
            *_zero_shot(config),
            *_fine_tuned(config),
            *_uniform(config),
            *_headscale(config),
        ),
        'roles': {
            'base': 'NoPE',
            'rope': 'RoPE',
            'ntk': 'dynamic NTK',
            'yarn': 'YaRN',
            'uniform': {int(times): _uniform_label(config, times) for times in UNIFORM},
            'headscale': {int(times): f'HeadScale at {times:g} L' for times in SEARCHED},
        },
    }
    if LONGPPL in parts:
        _add_longppl(config)
    return config


def _measure(config: ConfigDict, name: str, entry: dict) -> str:
    """Evaluates on every corpus; returns the prefix of the records."""
    for corpus in config.corpora:
        found = {'kind': 'perplexity', 'corpus': corpus, 'times': WINDOWS, **entry}
        config.evals[f'{name}@{corpus}/'] = found
    return f'{name}/'


def _add_longppl(config: ConfigDict) -> None:
    """Adds LongPPL of every row, in columns of its own."""
    config.name += f'_{LONGPPL}'
    evaluator = finetuned.add(config, *EVALUATOR)
    short = config.longppl.short or config.train.length
    times = tuple(t for t in WINDOWS if t * config.train.length > short)
    measured = [(name, entry) for name, entry in config.evals.items() if 'corpus' in entry]
    for name, entry in measured:
        asked = {key: entry[key] for key in entry if key not in ('kind', 'perplexity')}
        asked |= {'kind': LONGPPL, 'times': times, 'evaluator': evaluator}
        if 'perplexity' in entry:
            asked[LONGPPL] = entry['perplexity']
        config.evals[f'{name.removesuffix("/")}_{LONGPPL}/'] = asked
    config.figure.corpora += tuple(
        {
            'key': f'{corpus["key"]}_{LONGPPL}',
            'label': f'{corpus["label"]}, LongPPL',
            'paper': '',
            'measure': LONGPPL,
            'windows': tuple(int(t) for t in times),
        }
        for corpus in config.figure.corpora
    )


def _trained(config: ConfigDict, directories: dict[str, str]) -> list[dict]:
    rows = [
        {'label': label, 'paper': paper, 'record': _measure(config, run, {'run': run})}
        for run, label, paper in (('rope', 'RoPE', 'RoPE'), ('nope', 'NoPE', 'NoPE'))
    ]
    if not pieces.is_paper(config):
        config.runs['alibi'] = pieces.base(models.ALIBI)
        record = _measure(config, 'alibi', {'run': 'alibi'})
        rows.append({'label': 'ALiBi', 'paper': '', 'record': record})
    for name, (label, paper) in published.LABELS.items():
        row = {'label': label, 'paper': paper}
        if name in directories:
            entry = {'run': name, 'perplexity': published.TEXT}
            rows.append(row | {'record': _measure(config, name, entry)})
        else:
            rows.append(row | {'missing': published.missing(name)})
    return [{'group': BASE, **row} for row in rows]


def _zero_shot(config: ConfigDict) -> list[dict]:
    rows = []
    for scaling, factors in zero_shot.FACTORS.items():
        choices = []
        for factor in factors:
            position = {'position': models.rope(scaling, factor)}
            record = _measure(config, f'{scaling}_{factor:g}', {'run': 'rope', **position})
            choices.append({'factor': factor, 'record': record})
        row = {'label': LABELS[scaling], 'paper': ZERO[scaling], 'choices': tuple(choices)}
        rows.append({'group': ROPE, **row})
    return rows


def _fine_tuned(config: ConfigDict) -> list[dict]:
    rows = []
    for budget, steps in finetuned.BUDGETS.items():
        for method, (title, _, _) in finetuned.METHODS.items():
            for times, paper in TUNED.items():
                run = finetuned.add(config, method, budget, times)
                rows.append(
                    {
                        'group': ROPE,
                        'label': f'{title} at {times:g} L, {budget}',
                        'paper': f'{title}_{budget}_{paper}',
                        'record': _measure(config, run, {'run': run}),
                        'tuned': int(times),
                        'tokens': _tokens(config, times, config.finetune.batch_size * steps),
                    }
                )
    return rows


def _uniform(config: ConfigDict) -> list[dict]:
    rows = []
    for times, multiplier in UNIFORM.items():
        chosen: dict = {'multiplier': multiplier}
        if not pieces.is_paper(config):
            chosen = {'multiplier_from': pieces.add_grid(config, times)}
        record = _measure(config, f'uniform_{times:g}x', {'run': 'nope', **chosen})
        row = {
            'label': _uniform_label(config, times),
            'paper': f'uniform_{multiplier:g}',
            'record': record,
        }
        rows.append({'group': EXTENDED, **row})
    return rows


def _headscale(config: ConfigDict) -> list[dict]:
    rows = []
    for times, paper in SEARCHED.items():
        run = pieces.add_headscale(config, times)
        rows.append(
            {
                'group': EXTENDED,
                'label': f'HeadScale at {times:g} L',
                'paper': f'headscale_{paper}',
                'record': _measure(config, run, {'run': run}),
                'tuned': int(times),
                'tokens': _tokens(config, times, config.search.batch_size * config.search.steps),
            }
        )
    return rows


def _uniform_label(config: ConfigDict, times: float) -> str:
    if pieces.is_paper(config):
        return f'one multiplier, {UNIFORM[times]:g}'
    return f'one multiplier, best at {times:g} L'


def _tokens(config: ConfigDict, times: float, sequences: int) -> int:
    return round(times * config.train.length) * sequences
