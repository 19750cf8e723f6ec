"""A checkpoint under recipes that let it read further, each measured from L / 4 to 8 L.

    nope run checkpoint --workdir=work/checkpoint \\
        --config.init=hf:DIR --config.data.source=text:FOLDER

DIR is a Hugging Face directory, FOLDER texts of the kind it was trained on, with documents of more
than 8 L tokens. Without an argument it takes RECIPES and MEASURES. `checkpoint:nothing,yarn_4,loss`
names some of them, and is a figure of its own. Others are compared with the first recipe.

A recipe is ENCODING, ENCODING+TRAINING, ENCODING+SEARCH or ENCODING+TRAINING+SEARCH:

    nothing             the model as it is
    ntk_4, yarn_4       dynamic NTK or YaRN, by any factor
    dropped             without rotation (DroPE, arXiv 2512.12167)
    global              without rotation in the layers that have no window
    split               windows in a part of each layer's heads, those that look nearest, and no
                        rotation in the others; only with a training
    +short, +long       all weights trained on at L, for 3 or 30 million tokens where L is 8,192
    +headscale          one multiplier a head, searched at 4 L
    +log, +log_one      1 + a ln(n / L), one a for each head or for all, searched up to 4 L

A model that was trained with a scaling, as Llama 3.2, or without RoPE, as Nemotron-H and Granite 4
H, takes neither ntk_, yarn_ nor longppl. Without RoPE `dropped` is `nothing`:

    checkpoint:nothing,nothing+headscale,nothing+log,dropped+short,loss,entropy,keys,ruler

A search acts on the heads without position where there are others, else on all. In models whose
layers with a window turn by a RoPE of their own, as in Gemma 3, NTK and YaRN are for the others
alone. Every factor of YaRN has its row, to choose by --config.evaluation.split=validation. The key
tokens of LongPPL are chosen by the model under YaRN 8, with a short context of L. That bounds its
own LongPPL by 7.4: it is no rival there.

WORKDIR/exports has every recipe but `nothing` as stock `transformers` loads it, its lambda folded
for 4 L. Those that no such directory can say are named and left out.

    --config.lengths="(0.5,1.0,2.0)"      lengths of measures in L; of LongPPL longppl_lengths
    --config.searched="(2.0,)"            of HeadScale in L; of a law law_searched, above 1
    --config.search.steps=20              and other numbers of search and finetune
    --config.short_steps=20               of 8 sequences of L, as long_steps
    --config.split_share=0.25             of the heads, whole groups of a key; and split_window
    --config.ruler.samples=500            of each task, as RULER has
    --config.model.dtype=bfloat16         dtype of the computation on accelerators
    --plan-for=h100                       what is to be made, with its least time

SmolLM2 (135M, L = 8,192) to 2 L with nothing trained: 13 to 23 minutes a recipe, of two CPU cores
that train besides. Result: YaRN 2 has 3.342 nats at 2 L and costs 0.024 at L, where the model has
3.316; unchanged it has 5.652 at 2 L.
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
ENCODINGS: dict[str, tuple[str, dict]] = {
    'nothing': ('as it is', {'nope': False}),
    'dropped': ('rotation dropped', {'nope': True}),
    'global': ('rotation dropped in global layers', {'nope': 'global'}),
}
SPLIT = 'split'
TRAININGS = ('short', 'long')
LAW: dict = {'law': 'log_length', 'bound': 0.0, 'start': 0.0}
SEARCHES: dict[str, tuple[str, dict]] = {
    'headscale': ('HeadScale', {'law': 'constant'}),
    'log': ('log-length law', LAW),
    'log_one': ('log-length law, one number', {**LAW, 'tied': True}),
}


def get_config(argument: str = '') -> ConfigDict:
    named = [_normal(word) for word in argument.split(',') if word]
    measures = [word for word in MEASURES if word in named] or list(MEASURES)
    recipes = [word for word in named if word not in MEASURES] or list(RECIPES)
    if len(set(named)) < len(named):
        raise ValueError(f'checkpoint: {argument!r} names something twice')
    config = text.add(base.experiment('checkpoint', 'quick'), 'quick')
    config.name = '_'.join(['checkpoint', *named])
    of_a_directory(config)
    config.lengths = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
    config.longppl_lengths = (2.0, 4.0, 8.0)
    config.searched = (4.0,)
    config.law_searched = (1.5, 2.0, 3.0, 4.0)
    config.entropy_at = 4.0
    config.short_steps, config.long_steps = 46, 458  # of 8 sequences of 8,192 tokens
    config.split_share, config.split_window = 0.5, 512
    for section in (config.ruler, config.passkey, config.longppl):
        section.bos = placeholder(bool)
    config.passkey.template = 'paper'
    config.ruler.update(samples=50, leave_out=True)  # tasks that some length has no room for
    config.evaluation.windows = 16
    config.evaluation.batch_tokens = 16_384
    config.longppl.budget = 524_288
    config.search.update(steps=100, batch_size=4)
    config.finetune.learning_rate = 3e-4
    config.compute.checkpoint_every = 100
    rows = [_row(config, recipe, measures) for recipe in recipes]
    config.figure = {'kind': 'recipes', 'rows': tuple(rows)}
    return config


def of_a_directory(config: ConfigDict) -> None:
    """The model of `init`, hf:DIR, read as its files say: its length, its tokenizer, BOS."""
    config.init = placeholder(str)
    config.train.length = placeholder(int)
    config.data.tokenizer = placeholder(str)
    config.data.bos = placeholder(bool)
    config.model = {**models.execution(), 'remat': 'full', 'unroll': 1, 'lam_layers': 'auto'}


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
        times, judge = config.get_ref('longppl_lengths'), _run(config, 'yarn_8')[0]
        return {'kind': 'longppl', 'times': times, 'evaluator': judge}
    if measure == 'ruler':
        return {'kind': 'ruler', 'times': times}
    haystack = 'text' if measure == 'text_keys' else 'filler'
    return {'kind': 'passkey', 'lengths': times, 'haystack': haystack}


def _run(config: ConfigDict, recipe: str) -> tuple[str, str]:
    """Adds the runs of a recipe that are not there; returns the name of the last, and a label."""
    encoding, *later = recipe.split('+')
    trained = later.pop(0) if later and later[0] in TRAININGS else None
    searched = later.pop(0) if later and later[0] in SEARCHES else None
    if later or (encoding == SPLIT and not trained):
        raise _unknown(recipe)
    if encoding == SPLIT:
        run, label = SPLIT, 'split later'
    else:
        run, label = _add_encoding(config, recipe, encoding)
    if trained:
        before, run, label = run, f'{run}_{trained}', f'{label}, {trained} training'
        changes = _split(config) if encoding == SPLIT else {'init': before}
        steps = config.get_ref(f'{trained}_steps')
        config.runs[run] = {**changes, 'finetune': {'times': (1.0,), 'steps': steps}}
    if searched:
        title, search = SEARCHES[searched]
        lengths = config.get_ref('searched' if searched == 'headscale' else 'law_searched')
        before, run, label = run, f'{run}_{searched}', f'{label}, {title}'
        config.runs[run] = {'init': before, 'search': {'times': lengths, **search}}
        if encoding == SPLIT:  # or it acts on all heads, as in the model that was imported
            config.runs[run].model = {'lam_layers': 'nope'}
    return run, label


def _add_encoding(config: ConfigDict, recipe: str, encoding: str) -> tuple[str, str]:
    """Adds the imported model under an encoding; returns the run's name and its label."""
    init = {'init': config.get_ref('init')}
    if encoding in ENCODINGS:
        label, changes = ENCODINGS[encoding]
        config.runs[encoding] = {**init, **changes}
        return encoding, label
    scaling, _, factor = encoding.partition('_')
    if scaling not in SCALINGS or not _is_number(factor):
        raise _unknown(recipe)
    run, (kind, title) = encoding.replace('.', '_'), SCALINGS[scaling]
    position = models.rope(kind, float(factor))
    config.runs[run] = {**init, 'nope': False, 'model': {'position': position}}
    return run, f'{title} {factor}'


def _split(config: ConfigDict) -> dict:
    """The model as it is, with windows in the heads that look nearest."""
    nothing, near = _add_encoding(config, 'nothing', 'nothing')[0], 'near'
    choice = {name: config.grid.get_ref(name) for name in ('split', 'windows')}
    config.evals[near] = {
        'kind': 'attention_shape', 'run': nothing, 'times': 1.0, 'span': 1 / 8,
        'evaluation': choice,
    }  # fmt: skip
    split = {name: config.get_ref(f'split_{name}') for name in ('share', 'window')}
    position = {'kind': 'split', 'local': models.ROPE, **split}
    return {'init': nothing, 'model': {'position': position}, 'heads_from': near}


def _is_number(text: str) -> bool:
    return text.replace('.', '', 1).isdigit()


def _normal(word: str) -> str:
    """yarn_4.0 is yarn_4."""
    encoding, *later = word.split('+')
    scaling, _, factor = encoding.partition('_')
    if scaling in SCALINGS and _is_number(factor):
        encoding = f'{scaling}_{float(factor):g}'
    return '+'.join([encoding, *later])


def _unknown(recipe: str) -> ValueError:
    encodings = ', '.join((*ENCODINGS, SPLIT, *(f'{name}_FACTOR' for name in SCALINGS)))
    return ValueError(
        f'checkpoint: {recipe!r} is no recipe; accepted: ENCODING[+TRAINING][+SEARCH] with the '
        f'encodings {encodings}, the trainings {", ".join(TRAININGS)} ({SPLIT} needs one) and the '
        f'searches {", ".join(SEARCHES)}; or the measures {", ".join(MEASURES)}'
    )
