"""Models whose heads are split between local ones and ones without position: shared runs.

A split of a layer gives its first heads an encoding that carries the order of nearby tokens; the
others have none (nope/positions/split.py). Lambda acts on the NoPE heads alone.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from configs.shared import models, pieces, retrieval

# Of the models trained to retrieve, in L: windows of all losses, which end at the same tokens, and
# prompts that hide a key.
TIMES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
KEYS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
DRAWN = (1.0, 8.0)  # what a frontier shows: a seventh of the tokens of TIMES
# Prompts of each length and depth.
TESTS = {'quick': 4, 'small': 8, 'medium': 8, 'large': 4, 'paper': 10}
SEARCHED = (2.0, 4.0, 8.0)  # lengths of the searches of a lambda that follows the length, in L
FORGET = {'kind': 'forget'}
# Two local heads of four have the slopes 1/4 and 1/16.
HALF_ALIBI = {'kind': 'alibi', 'max_exponent': 4.0}
# NAPE: half ALiBi with slopes 1 / h, half NoPE, here under s_h ln i, trained from s = 1: one of
# the laws of ASEntmax's code.
HALF_NAPE = {'kind': 'alibi', 'harmonic': True}
NAPE_LAW = {'law': 'scalable_softmax', 'coefficient': 1.0, 'trained': True}
# HypeNet's ln(i + a) / ln a: one a for the model, searched from e^3 + 1 at 8 L.
HYPENET: dict = {'law': 'searched_offset', 'times': (8.0,), 'tied': True, 'start': 3.0}
# Name of a run -> label, encoding.
WHOLE: dict[str, tuple[str, dict]] = {
    'nope': ('NoPE', models.NOPE),
    'rope': ('RoPE', models.ROPE),
    'alibi': ('ALiBi', models.ALIBI),
    'forget': ('forget gates', FORGET),
}


def experiment(name: str, size: str) -> ConfigDict:
    """A config of models trained to retrieve, from records of one to four keys; below paper size on
    twice the tokens that one key takes."""
    config = retrieval.experiment(name, size)
    if size != 'paper':
        config.train.steps *= 2
    config.data.needles = 4
    config.passkey.tests = TESTS[size]
    config.evaluation.windows = min(config.evaluation.windows, 512)  # that long there are few
    return config


def add_point(
    config: ConfigDict,
    run: str,
    label: str,
    reach: float = 8.0,
    *,
    four: bool = False,
    times: tuple[float, ...] = TIMES,
) -> dict:
    """Measures losses of `run` at `times` L, and keys up to `reach` L, with `four` one of four keys
    too; returns its point in a frontier."""
    lengths = tuple(length for length in KEYS if length <= reach)
    config.evals[f'{run}_loss/'] = {'kind': 'lengths', 'run': run, 'times': times}
    config.evals[f'{run}_keys/'] = {'kind': 'passkey', 'run': run, 'lengths': lengths}
    point = {'label': label, 'loss': f'{run}_loss', 'keys': f'{run}_keys'}
    if four:
        entry = {'kind': 'passkey', 'run': run, 'lengths': lengths, 'needles': 4}
        config.evals[f'{run}_four/'] = entry
        point['four'] = f'{run}_four'
    return point


def draw_frontier(config: ConfigDict, labels: dict[str, str]) -> None:
    """Draws a frontier of the runs in `labels`, each a point; it decides no claim."""
    points = tuple(add_point(config, run, label, times=DRAWN) for run, label in labels.items())
    config.figure = {'kind': 'frontier', 'points': points}


def draw_reach(
    config: ConfigDict, labels: dict[str, str], split: str, roles: dict | None = None
) -> None:
    """Draws a frontier of a RoPE model and the runs in `labels`, these asked for keys up to 64 L,
    one alone and one of four; claims speak of the run `split`, as trained, and of `roles`."""
    config.runs['rope'] = pieces.base(models.ROPE)
    points = [add_point(config, 'rope', 'RoPE')]
    for run, label in labels.items():
        points.append(add_point(config, run, label, reach=64.0, four=True))
    roles = {'split': labels[split], 'rope': 'RoPE', **(roles or {})}
    config.figure = {'kind': 'frontier', 'points': tuple(points), 'roles': roles}


def split(local: dict, share: float = 0.5, window: int | None = None) -> dict:
    """The encoding of which `share` of the heads have `local`."""
    section = {'kind': 'split', 'share': share, 'local': local}
    return section if window is None else {**section, 'window': window}


def add_split(config: ConfigDict, name: str, position: dict) -> str:
    """A model pre-trained with that split; returns its name."""
    config.runs[name] = {
        'init': placeholder(str),
        'model': {'position': position, 'lam_layers': 'nope'},
    }
    return name


def add_nape(config: ConfigDict, name: str = 'nape', weights: str = 'softmax') -> str:
    """A model of NAPE's heads, pre-trained under NAPE_LAW; returns its name."""
    config.runs[name] = {
        'init': placeholder(str),
        'model': {'position': split(HALF_NAPE), 'lam_layers': 'nope', 'weights': weights},
        'lam': NAPE_LAW,
    }
    return name


def add_whole(config: ConfigDict, *names: str) -> None:
    """The models of WHOLE with these names, all of whose heads are alike."""
    for name in names:
        config.runs[name] = pieces.base(None if name == 'nope' else WHOLE[name][1])


def add_search(config: ConfigDict, run: str, name: str, search: dict) -> str:
    """A search of lambda on `run`, at SEARCHED unless it says other lengths; returns its name."""
    name = f'{run}_{name}'
    config.runs[name] = {'init': run, 'search': {'times': SEARCHED, **search}}
    return name


def add_log_length(
    config: ConfigDict, run: str, heads: str | None = None, law: str = 'log_length'
) -> str:
    """The search of one coefficient of ln(n / L) a head on `run`; returns its name.

    heads: 'all' or 'nope', where lambda acts; None for where it does in `run`. law: 'log_square'
    for a second coefficient, of ln^2(n / L).
    """
    name = law.removesuffix('_length') + ('' if heads is None else f'_{heads}')
    name = add_search(config, run, name, {'law': law})
    if heads is not None:
        config.runs[name]['model'] = {'lam_layers': heads}
    return name
