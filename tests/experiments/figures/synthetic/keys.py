"""Keys repeated by depth and length, frontiers of loss and keys, heads taken away."""

from __future__ import annotations

import numpy as np

from nope.records import Measure, Records
from tests.experiments.figures.synthetic.lengths import MULTIPLES, ROPE, length_records
from tests.experiments.figures.synthetic.making import TEXT, attributes, measuring, saying


def grid_accuracy(lengths, reach, share=1.0, depths=10) -> np.ndarray:
    """[length, depth], in tenths: `share` up to `reach` tokens, falling to none at twice that."""
    beyond = np.clip(2 - np.array(lengths) / reach, 0, 1)
    return np.repeat(np.round(share * beyond, 1)[:, None], depths, axis=1)


@saying
def passkey_records(
    max_length=4096, *, window=2048, reach=None, share=1.0, accuracy=None, **changed
) -> Records:
    """Lengths in 16 equal steps up to `max_length`, without those that have no room for a prompt.

    accuracy: [length, depth]; where it is not given, `grid_accuracy` with the `reach` (default:
    the window) and the `share` found inside it.
    """
    lengths = np.array([n for n in max_length * np.arange(1, 17) // 16 if n > 120])
    if accuracy is None:
        accuracy = grid_accuracy(lengths, reach or window, share)
    depth = np.arange(10) / 10
    facts = {
        'evaluation': 'passkey',
        'max_length': max_length,
        'window': window,
        'template': 'paper',
        'tests': 10,
        'bos': True,
    }
    return Records(
        attributes(**TEXT | changed) | facts,
        {
            'accuracy': Measure(np.asarray(accuracy), ('length', 'depth'), ''),
            'tokens': Measure(71 + 24 * ((lengths - 80) // 25), ('length',), ''),
        },
        {'length': lengths, 'depth': depth},
    )


PASSKEY_PANELS = [
    {'record': 'rope', 'label': 'RoPE'},
    {'record': 'full/', 'label': 'HeadScale at 2 L', 'paper': 81},
    {'record': 'no_init/', 'label': 'without initialisation'},
    {'label': 'MPT-7B', 'missing': 'there are no weights'},
]
PASSKEY_ROLES = {
    'full': 'HeadScale at 2 L',
    'no_init': 'without initialisation',
    'nope': ['HeadScale at 2 L'],
}


def passkey_runs(seeds=2) -> dict[str, Records]:
    """RoPE up to its window, and HeadScale at 2 L with an ablation."""
    runs = {'rope': passkey_records(reach=1100, **ROPE)}
    for name, share in (('full', 1.0), ('no_init', 0.3)):
        for seed in range(seeds):
            runs[f'{name}/seed{seed}'] = passkey_records(
                8192, window=4096, share=share - 0.1 * seed, lam='HeadScale at 4096', seed=seed
            )
    return runs


# Share of keys at multiples of L, as measured in a first look.
KEY_MULTIPLES = (1, 2, 4, 8, 16, 32, 64)
KEYS = {
    'nope': (1.0, 0.23, 0.0, 0.0, 0.0, 0.0, 0.0),
    'forget': (1.0, 0.59, 0.26, 0.08, 0.0, 0.0, 0.0),
    'half': (1.0, 1.0, 1.0, 0.98, 0.91, 0.55, 0.2),
    'half_log': (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0),
    'half_log_four': (1.0, 0.97, 0.97, 0.95, 0.93),
}
FOUR = {'needles': 4, 'alike': False, 'haystack': 'filler', 'template': 'brief_named'}
KEY_CURVES = [
    {'group': 'nope', 'label': 'NoPE'},
    {'group': 'forget', 'label': 'forget gates'},
    {'group': 'half', 'label': 'half forget gates, half NoPE'},
    {'group': 'half_log', 'label': 'the same, log-length lambda'},
    {'group': 'half_log_four', 'label': 'the same, one of four keys'},
]
KEY_ROLES = {'split': 'half_log', 'split_four': 'half_log_four'}


@saying
def key_records(shares, seed: int = 0, *, multiples=KEY_MULTIPLES, **changed) -> Records:
    """shares: at the first of `multiples` L, the same at every depth."""
    lengths = np.array(multiples[: len(shares)]) * 128
    facts = attributes(seed=seed, train_length=128)
    facts |= {'evaluation': 'passkey', 'max_length': int(lengths[-1]), 'window': 128}
    facts |= {'template': 'brief', 'tests': 10, 'bos': False}
    accuracy = np.repeat(np.array(shares, dtype=np.float64)[:, None], 10, axis=1)
    return Records(
        facts | changed,
        {
            'accuracy': Measure(accuracy, ('length', 'depth'), ''),
            'tokens': Measure(lengths - 14.0, ('length',), ''),
        },
        {'length': lengths, 'depth': np.arange(10) / 10},
    )


def key_runs(seeds: int) -> dict[str, Records]:
    """Seeds differ where keys are neither all repeated nor all lost."""
    return {
        f'{group}/seed{seed}': key_records(
            [s if s in (0, 1) else min(s + 0.02 * seed, 1) for s in shares],
            seed,
            **(FOUR if group.endswith('_four') else {}),
        )
        for group, shares in KEYS.items()
        for seed in range(seeds)
    }


FAR = (*MULTIPLES, 16, 32)  # of L
# Loss at L and at 8 L and share of keys at 8 L; a first look's.
FRONTIER = {
    'NoPE': (1.873, 2.407, 0.0),
    'RoPE': (1.341, 3.153, 0.0),
    'ALiBi': (1.401, 1.395, 0.1),
    'T5 bias': (1.360, 2.720, 0.05),
    'sinusoidal': (1.430, 3.800, 0.0),
    'RoPE, YaRN': (1.345, 1.620, 0.2),
    'NoPE, HeadScale searched at 8 L': (2.021, 2.037, 0.15),
    'forget gates': (1.335, 1.323, 0.08),
    'half forget gates, half NoPE': (1.343, 1.326, 0.98),
    'half forget gates, half NoPE, log-length lambda': (1.343, 1.345, 1.0),
    'half ALiBi, half NoPE': (1.408, 1.395, 0.99),
    'half ALiBi, half NoPE, log-length lambda': (1.408, 1.415, 1.0),
    'scale-invariant, p-RoPE': (1.334, 1.319, 0.85),
    'scale-invariant, p-RoPE, log-length lambda': (1.334, 1.321, 0.98),
}
FRONTIER_POINTS = [
    {
        'label': label,
        'loss': f'p{i}_loss',
        'keys': f'p{i}_keys',
        **({'four': f'p{i}_four'} if label.endswith('NoPE, log-length lambda') else {}),
    }
    for i, label in enumerate(FRONTIER)
]
FRONTIER_ROLES = {'split': 'half forget gates, half NoPE, log-length lambda', 'rope': 'RoPE'}


def frontier_runs(seeds: int) -> dict[str, Records]:
    """Losses of a straight line in ln(n / L) up to 8 L and level from there to 32 L; keys that are
    lost on the way to 8 L stay lost."""
    runs = {}
    for point, (first, last, share) in zip(FRONTIER_POINTS, FRONTIER.values(), strict=True):
        for seed in range(seeds):
            window = first + (last - first) * np.minimum(np.log2(FAR), 3) / 3
            facts = {'seed': seed, 'train_length': 128, 'run_id': f'{point["loss"]}-{seed}'}
            runs[f'{point["loss"]}/seed{seed}'] = length_records(window, multiples=FAR, **facts)
            end = share if share == 1 else 0.0
            shares = (1.0, 1.0, 1.0, share, end, end, end)
            runs[f'{point["keys"]}/seed{seed}'] = key_records(shares, **facts)
            if 'four' in point:
                facts |= FOUR
                runs[f'{point["four"]}/seed{seed}'] = key_records((1.0, 1, 1, 0.95, 0.9), **facts)
    return runs


REACH_POINTS = [
    {'label': 'gates', 'loss': 'gates_loss', 'keys': 'gates_keys', 'searched': 'gates_searched'},
    {'label': 'ALiBi', 'loss': 'alibi_loss', 'keys': 'alibi_keys'},
]
REACH_ROLES = {'split': 'gates'}


def reach_runs(seeds: int) -> dict[str, Records]:
    """Each seed further than the one before, and with lambda to the end."""
    runs = {}
    for seed in range(seeds):
        for name, loss in (('gates', 1.25), ('alibi', 1.3)):
            facts = {'seed': seed, 'train_length': 128}
            of_run = facts | {'run_id': f'{name}-{seed}'}
            runs[f'{name}_loss/seed{seed}'] = length_records((loss + seed / 100,), **of_run)
            shares = (*(1.0,) * 4, 1.0, 0.2 * (seed + 1), 0.1 * (seed + 1))
            runs[f'{name}_keys/seed{seed}'] = key_records(shares, **of_run)
        of_run = facts | {'run_id': f'gates-searched-{seed}'}
        runs[f'gates_searched/seed{seed}'] = key_records((1.0,) * 7, **of_run)
    return runs


PREDICTOR_POINTS = [
    {'label': name, 'attention': f'{name}_look', 'keys': f'{name}_far'}
    for name in ('gates', 'windows')
]


def predictor_runs(seeds: int) -> dict[str, Records]:
    """Margins at L that rise with the reach over every second seed, and fall over the others."""
    runs = {}
    for point in PREDICTOR_POINTS:
        for seed in range(seeds):
            look = look_records(seed, finder=(2, seed % 4), multiples=(0.5, 1, 2, 4))
            lead = seed if seed % 2 == 0 else -seed
            margin = np.full(look['margin'].shape, 2.0 + 0.1 * lead)
            look = measuring(look, margin=margin)
            runs[f'{point["attention"]}/seed{seed}'] = look
            far = key_records((1.0,) * 6 + (0.1 * seed,), seed)
            runs[f'{point["keys"]}/seed{seed}'] = far
    return runs


# Of four layers of four heads the first two are local. Without head (layer, head) -> rise of the
# loss at every length, keys left at L and at 8 L.
HEADS = {(i, j): (0.1 - 0.05 * (j // 2), 1.0, 1.0) for i in range(4) for j in range(4)}
HEADS[2, 3] = (0.02, 0.9, 0.25)
HEAD_GROUPS = {
    'local': ([(i, j) for i in range(4) for j in (0, 1)], (2.0, 0.0, 0.0)),
    'nope': ([(i, j) for i in range(4) for j in (2, 3)], (0.4, 0.0, 0.0)),
}


def effect_point(name: str) -> dict[str, str]:
    return {'label': f'without {name}', 'loss': f'{name}_loss', 'keys': f'{name}_keys'}


def effect_options() -> dict:
    return {
        'base': effect_point('nothing'),
        'heads': [effect_point(f'{i}.{j}') for i, j in HEADS],
        'groups': [effect_point(name) for name in HEAD_GROUPS],
        'roles': {name: f'without {name}' for name in HEAD_GROUPS},
    }


def effect_runs(
    seeds: int, heads: dict = HEADS, groups: dict = HEAD_GROUPS, whole: tuple = (0.0, 1.0, 1.0)
) -> dict[str, Records]:
    runs = {}
    silenced = {'nothing': ([], whole)}
    silenced |= {f'{i}.{j}': ([(i, j)], lost) for (i, j), lost in heads.items()}
    for name, (gone, (rise, near, far)) in {**silenced, **groups}.items():
        for seed in range(seeds):
            facts = {'seed': seed, 'train_length': 128, 'run_id': f'{name}-{seed}'}
            facts |= {'silenced': [list(head) for head in gone]} if gone else {}
            loss = length_records(np.full(len(MULTIPLES), 1.4 + rise), **facts)
            runs[f'{name}_loss/seed{seed}'] = loss
            keys = key_records((near, far, far, far), **facts)
            for shape in ('n_layers', 'n_heads'):  # which passkey records do not have
                del keys.attributes[shape]
            runs[f'{name}_keys/seed{seed}'] = keys
    return runs


FINDER, LEAD, SLACK = (2, 1), 7.0, 1.5
LOOK_MULTIPLES = (0.5, 1, 4, 16)
LOOK_CURVES = [
    {'group': 'nope', 'label': 'NoPE'},
    {'group': 'headscale', 'label': 'HeadScale', 'base': 'nope'},
]


@saying
def look_records(
    seed: int = 0, *, multiplier=1.0, finder=FINDER, multiples=LOOK_MULTIPLES, **changed
) -> Records:
    """Attention on keys of heads whose logits are equal, but for `finder`: it puts one key
    LEAD times its multiplier above the others, SLACK above a few that are lower."""
    answered = key_records((1.0, 1, 0.5, 0), seed, multiples=multiples, **changed)
    seen = 128 * np.array(multiples)
    lead = np.zeros((len(seen), 4, 4))
    lead[:, *finder] = LEAD * multiplier
    largest = 1 / (1 + (seen[:, None, None] - 1) * np.exp(-lead))
    values = {
        'key': largest,
        'first': (1 - largest) / 2,
        'latest': (1 - largest) / 8,
        'largest': largest,
        'range': lead + SLACK * multiplier,
        'multiplier': np.full_like(lead, multiplier),
        'margin': lead - 2.0,
        'margin_spread': np.full_like(lead, 0.5),
        'margin_by_depth': np.full_like(lead, 0.1),
        'values': np.full_like(lead, 1.2),
    }
    axes = ('length', 'layer', 'head')
    measures = {name: Measure(array, axes, '') for name, array in values.items()}
    return Records(
        {**answered.attributes, 'evaluation': 'key_attention', 'span': 32},
        {**answered.measures, **measures, 'keys': Measure(seen, ('length',), 'tokens')},
        answered.coordinates,
    )


def look_runs(seeds: int) -> dict[str, Records]:
    """Each seed finds the key by another head."""
    return {
        f'{group}/seed{seed}': look_records(seed, multiplier=p, finder=(2, 1 + seed))
        for group, p in (('nope', 1.0), ('headscale', 1.5))
        for seed in range(seeds)
    }
