"""A checkpoint under recipes that let it read further, each measured to 8 L.

    nope run checkpoint --workdir=work/checkpoint \\
        --config.init=hf:DIR --config.data.source=text:FOLDER

DIR is a Hugging Face directory, FOLDER long texts of the kind it was trained on. Without an
argument it takes RECIPES and MEASURES; `checkpoint:nothing,yarn_4+headscale,loss,keys` names some.
Others are compared with the first recipe. A recipe is a change of the encoding, perhaps a training
at L, perhaps a search of lambda, joined by +:

    nothing             the model as it is
    ntk_4, yarn_4       dynamic NTK or YaRN, by any factor
    dropped             without rotation (DroPE, arXiv 2512.12167)
    global              without rotation in the layers that have no window
    split               windows in a part of each layer's heads, those that look nearest, and no
                        rotation in the others; needs a training
    +short, +long       all weights trained on at L, for 3 or 30 million tokens where L is 8,192
    +headscale          one multiplier a head, searched at 4 L
    +log, +log_one      1 + a ln(n / L), one a for each head or for all, searched up to 4 L

A search acts on the heads without position where there are others, else on all. A factor that is
chosen by its row is chosen on these windows; `--config.evaluation.split=validation` reads others.
LongPPL's key tokens are chosen by the model under YaRN 8.

WORKDIR/exports has each of them as stock `transformers` loads it, its lambda folded for 4 L. Those
that no such directory can say are named and left out.

    --config.lengths="(0.5,1.0,2.0)"      lengths of all measures, in L
    --config.searched="(2.0,)"            what lambda is searched for, in L
    --config.search.steps=20              and other numbers of search and finetune
    --config.short_steps=20               of 8 sequences of L, as long_steps
    --config.model.dtype=bfloat16         dtype of the computation on accelerators
    --plan-for=h100                       what is to be made, with its least time

Not run at these lengths.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from configs.shared import base, models, text

RECIPES = (
    'nothing', 'ntk_4', 'yarn_2', 'yarn_4', 'yarn_8', 'nothing+headscale', 'yarn_4+headscale',
    'nothing+log_one', 'nothing+log', 'dropped+short', 'dropped+short+headscale',
    'dropped+short+log',
)  # fmt: skip
MEASURES = ('loss', 'entropy', 'longppl', 'keys', 'text_keys', 'ruler')
SCALINGS = {'ntk': ('dynamic_ntk', 'dynamic NTK'), 'yarn': ('yarn', 'YaRN')}
FIRST: dict[str, tuple[str, dict]] = {
    'nothing': ('as it is', {}),
    'dropped': ('rotation dropped', {'nope': True}),
    'global': ('rotation dropped in global layers', {'nope': 'global'}),
}
SPLIT = 'split'
TRAINED = ('short', 'long')
LAW: dict = {
    'law': 'log_length',
    'shares': (0.375, 0.5, 0.75, 1.0),  # of 4 L
    'bound': 0.0,
    'start': 0.0,
}
SEARCHES: dict[str, tuple[str, dict]] = {
    'headscale': ('HeadScale', {'law': 'constant'}),
    'log': ('log-length law', LAW),
    'log_one': ('log-length law, one number', {**LAW, 'tied': True}),
}
KNOWN = (
    *FIRST, SPLIT, 'ntk_FACTOR', 'yarn_FACTOR', *(f'+{t}' for t in TRAINED),
    *(f'+{s}' for s in SEARCHES), *MEASURES,
)  # fmt: skip


def get_config(argument: str = '') -> ConfigDict:
    named = [word for word in argument.split(',') if word]
    measures = [word for word in MEASURES if word in named] or list(MEASURES)
    recipes = [word for word in named if word not in MEASURES] or list(RECIPES)
    config = text.add(base.experiment('checkpoint', 'quick'), 'quick')
    config.init = placeholder(str)
    config.lengths = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
    config.searched = (4.0,)
    config.entropy_at = 4.0
    config.short_steps, config.long_steps = 46, 458  # of 8 sequences of 8,192 tokens
    config.split_share, config.split_window = 0.5, 512
    as_its_files_say(config)
    for section in (config.ruler, config.passkey, config.longppl):
        section.bos = placeholder(bool)
    source = config.data.get_ref('source')
    config.corpora = {'text': {'source': source, 'field': 'text', 'split': 'test'}}
    config.passkey.template = 'paper'
    config.ruler.leave_out = True  # tasks that a length has no room for
    config.model = {**models.execution(), 'remat': 'full', 'unroll': 1, 'lam_layers': 'auto'}
    config.evaluation.windows = 16
    config.evaluation.batch_tokens = 16_384
    config.longppl.update(short=1024, stride=256, budget=524_288)
    config.search.update(steps=100, batch_size=4)
    config.finetune.learning_rate = 3e-4
    config.compute.checkpoint_every = 100
    rows = [_row(config, recipe, measures) for recipe in recipes]
    if len(set(recipes)) < len(recipes):
        raise ValueError(f'checkpoint: {argument!r} names a recipe twice')
    config.figure = {'kind': 'recipes', 'rows': tuple(rows)}
    return config


def as_its_files_say(config: ConfigDict) -> None:
    """Length, tokenizer and BOS of the checkpoint's directory, unless others are given."""
    config.train.length = placeholder(int)
    config.data.tokenizer = placeholder(str)
    config.data.bos = placeholder(bool)


def _row(config: ConfigDict, recipe: str, measures: list[str]) -> dict:
    """Adds the runs, evaluations and export of a recipe; returns its row of the figure."""
    run, label = _run(config, recipe)
    row = {'label': label}
    for measure in measures:
        row[measure] = f'{run}_{measure}'
        config.evals[row[measure]] = {'run': run, **_evaluation(config, measure)}
    if recipe != 'nothing':
        config.exports[run] = {'run': run, 'optional': True}
    return row


def _evaluation(config: ConfigDict, measure: str) -> dict:
    times = config.get_ref('lengths')
    if measure == 'loss':
        return {'kind': 'lengths', 'times': times}
    if measure == 'entropy':
        return {'kind': 'positions', 'times': config.get_ref('entropy_at')}
    if measure == 'longppl':
        judge = _run(config, 'yarn_8')[0]
        return {'kind': 'longppl', 'times': times, 'corpus': 'text', 'evaluator': judge}
    if measure == 'ruler':
        return {'kind': 'ruler', 'times': times}
    haystack = 'text' if measure == 'text_keys' else 'filler'
    return {'kind': 'passkey', 'lengths': times, 'haystack': haystack}


def _run(config: ConfigDict, recipe: str) -> tuple[str, str]:
    """Adds the runs of a recipe that are not there; returns the name of the last, and a label."""
    parts = recipe.split('+')
    init, nope = {'init': config.get_ref('init')}, {'nope': False}
    scaling, _, factor = parts[0].partition('_')
    if parts[0] == SPLIT and parts[1:2] and parts[1] in TRAINED:
        run, label = _add_split(config, parts.pop(1)), 'split later'
    elif parts[0] in FIRST:
        run, (label, changes) = parts[0], FIRST[parts[0]]
        config.runs[run] = {**init, **nope, **changes}
    elif scaling in SCALINGS and _is_number(factor):
        run, (kind, title) = parts[0].replace('.', '_'), SCALINGS[scaling]
        label = f'{title} {factor}'
        position = models.rope(kind, float(factor))
        config.runs[run] = {**init, **nope, 'model': {'position': position}}
    else:
        raise _unknown(recipe)
    for step, part in enumerate(parts[1:]):
        before, run = run, f'{run}_{part}'
        if part in TRAINED and step == 0:
            config.runs[run] = {'init': before, 'finetune': _training(config, part)}
            label += f', {part} training'
        elif part in SEARCHES and step == len(parts) - 2:
            title, search = SEARCHES[part]
            searched = {'times': config.get_ref('searched'), **search}
            config.runs[run] = {'init': before, 'search': searched}
            label += f', {title}'
        else:
            raise _unknown(recipe)
    return run, label


def _add_split(config: ConfigDict, part: str) -> str:
    """The model trained on with windows in the heads that look nearest; returns the run's name."""
    nothing, near = _run(config, 'nothing')[0], 'near'
    choice = {'split': config.grid.split, 'windows': config.grid.windows}
    config.evals[near] = {
        'kind': 'attention_shape', 'run': nothing, 'times': 1.0, 'span': 1 / 8,
        'evaluation': choice,
    }  # fmt: skip
    split = {name: config.get_ref(f'split_{name}') for name in ('share', 'window')}
    name = f'{SPLIT}_{part}'
    config.runs[name] = {
        'init': nothing,
        'model': {'position': {'kind': 'split', 'local': models.ROPE, **split}},
        'finetune': _training(config, part),
        'heads_from': near,
    }
    return name


def _training(config: ConfigDict, part: str) -> dict:
    return {'times': (1.0,), 'steps': config.get_ref(f'{part}_steps')}


def _is_number(text: str) -> bool:
    return text.replace('.', '', 1).isdigit()


def _unknown(recipe: str) -> ValueError:
    return ValueError(f'checkpoint: {recipe!r} is unknown; accepted: {", ".join(KNOWN)}')
