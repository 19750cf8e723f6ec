"""Verdicts of summary.json are those that follow from the figure's CSV by another derivation: of
made-up numbers, which turn every verdict, and of the committed results."""

from __future__ import annotations

import dataclasses
import json
import pathlib

import numpy as np
import pytest

from experiments import config_files, figures
from experiments.figures import FigureInput, base, resampled, write
from nope.records import Measure, Records
from tests.experiments.figures import recomputed, synthetic
from tests.experiments.figures.synthetic import GRIDS, INPUTS, positions_records

L = 64
ROOT = pathlib.Path(__file__).parents[3]
FIGURES = ('fig1', 'fig4', 'fig5', 'fig7', 'fig_dynamic', 'laws')
COMMITTED = sorted(p for p in ROOT.glob('configs/results/*/*.csv') if p.stem in FIGURES)


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch):
    """Numbers alone are read here."""
    monkeypatch.setattr(base, 'rendered', lambda figure, kind: b'')


def drawn(kind: str, given: FigureInput, folder: pathlib.Path) -> tuple[recomputed.Rows, dict]:
    """The rows of a figure's CSV and the verdicts of its summary, by claim."""
    write(figures.draw(kind, given), folder)
    claims = json.loads((folder / 'summary.json').read_text())['claims']
    return recomputed.read(folder / f'{given.name}.csv'), {c['id']: c['verdict'] for c in claims}


def agree(found: dict[str, str], said: dict[str, str]) -> None:
    assert found == {name: said[name] for name in found}


# Bends of NoPE and RoPE, floors of NoPE and of NoPE with one multiplier, bends of that: each set
# turns some verdict.
SHAPES = {
    'as the paper says': ((78, 72), (1.5, 1.52), (120, 120)),
    'RoPE first': ((72, 78), (1.5, 1.52), (120, 120)),
    'apart inside L': ((78, 72), (1.7, 1.72), (120, 120)),
    'no harm inside L': ((78, 72), (1.5, 1.5), (120, 120)),
    'bends that stay': ((78, 72), (1.5, 1.52), (78, 120)),
    'late bends': ((150, 140), (1.5, 1.52), (200, 220)),
    'no bend': ((900, 900), (1.5, 1.52), (900, 900)),
    'between two thresholds': ((66, 60), (1.5, 1.52), (70, 70)),
}


@pytest.mark.parametrize('noise', [0.0, 0.02])
@pytest.mark.parametrize('shape', SHAPES)
def test_figure_1_is_decided_as_its_numbers_say(shape, noise, tmp_path):
    (nope, rope), (floor, raised), (loss, entropy) = SHAPES[shape]
    records = {
        'nope': positions_records(loss_bend=nope, entropy_bend=nope, floor=floor, noise=noise),
        'nope_uniform': positions_records(
            lam='1.5', multiplier=1.5, loss_bend=loss, entropy_bend=entropy, floor=raised
        ),
        'rope': positions_records(
            loss_bend=rope, entropy_bend=1.2 * rope, position='rope', noise=noise
        ),
        'rope_ntk': positions_records(loss_bend=150 + nope, entropy_bend=180, position='NTK'),
    }
    roles = {'base': 'nope', 'uniform': 'nope_uniform', 'rope': 'rope', 'ntk': 'rope_ntk'}
    options = {
        'panels': [{'curves': [{'record': name} for name in records]}],
        'roles': roles | {'uniform': ['nope_uniform']},
    }
    rows, said = drawn('entropy_loss', FigureInput('fig1', records, options), tmp_path)
    found, _ = recomputed.by_position(rows, L, roles)
    # Without the multiplied RoPE that the bends move can be refuted alone.
    assert set(found) - {'bends_move'} == {'parity', 'onset', 'bends_meet', 'uniform_hurts'}
    agree(found, said)


@pytest.mark.parametrize('entropy', [90, 110, 150])
@pytest.mark.parametrize('ahead', [-0.05, -0.005, 0.05])
@pytest.mark.parametrize('slope', [0.3, 1.0])
def test_figure_4_is_decided_as_its_numbers_say(entropy, ahead, slope, tmp_path):
    records = {
        'uniform': positions_records(lam='1.5', multiplier=1.5, loss_bend=100, entropy_bend=110),
        'headscale': positions_records(
            lam='HeadScale at 256',
            multiplier=None,
            loss_bend=100,
            loss_slope=slope,
            floor=1.5 + ahead,
            entropy_bend=entropy,
        ),
    }
    options = {
        'panels': [{'curves': [{'record': name} for name in records]}],
        'roles': {'uniform': ['uniform'], 'headscale': {4: 'headscale'}},
    }
    rows, said = drawn('entropy_loss', FigureInput('fig4', records, options), tmp_path)
    found, _ = recomputed.by_position(rows, L, {name: name for name in records})
    assert set(found) == {'headscale_beats_uniform', 'headscale_hurts_less', 'headscale_entropy'}
    agree(found, said)


@pytest.mark.parametrize('seed', range(6))
def test_figure_5_is_decided_as_its_numbers_say(seed, tmp_path):
    """Multipliers that follow the entropy of their heads, by a share that differs."""
    rng, given = np.random.default_rng(seed), INPUTS['multiplier_entropy']
    records = dict(given.records)
    bits = records['nope']['entropy'][..., -1]
    multiplier = 1.5 - 0.2 * (seed - 2) * (bits - bits.mean()) + rng.normal(size=bits.shape) * 0.3
    measure = Measure(np.maximum(multiplier, 1), ('layer', 'head'), '')
    searched = records['headscale']
    records['headscale'] = dataclasses.replace(
        searched, measures={**searched.measures, 'multiplier': measure}
    )
    given = dataclasses.replace(given, records=records)
    rows, said = drawn('multiplier_entropy', given, tmp_path)
    agree(recomputed.by_head(rows)[0], said)


@pytest.mark.parametrize(('early', 'late'), [(0.3, 0.4), (0.4, 0.3), (0.2, 0.4), (0.3, 0.6)])
@pytest.mark.parametrize('rise', [0.0, 0.105, 0.4])
def test_figure_7_is_decided_as_its_numbers_say(early, late, rise, tmp_path):
    records = {}
    for name, a in (('early', early), ('late', late)):
        made = synthetic.grid_records(a=a, train_tokens=GRIDS[name].attributes['train_tokens'])
        positions = made.coordinates['position']
        level = 1.5 + rise * np.clip((positions - L) / L, 0, 1)
        measures = {**made.measures, 'best_loss': Measure(level, ('position',), 'nats')}
        records[name] = dataclasses.replace(made, measures=measures)
    given = dataclasses.replace(INPUTS['uniform_fit'], records=records)
    rows, said = drawn('uniform_fit', given, tmp_path)
    agree(recomputed.by_multiplier(rows, L, ['early', 'late'])[0], said)


def decided(name: str, size: str, rows: recomputed.Rows) -> recomputed.Verdicts:
    """What follows from the CSV of a config's figure."""
    config = config_files.module(name).get_config(size)
    roles, L = config.figure.get('roles', {}), config.train.length
    if name == 'fig5':
        return recomputed.over_seeds(rows, recomputed.by_head)
    if name == 'fig7':
        ordered = [panel['record'] for panel in config.figure.panels]
        return recomputed.over_seeds(rows, lambda one: recomputed.by_multiplier(one, L, ordered))
    if name in ('fig1', 'fig4'):
        records = {role: _record(given) for role, given in roles.items() if role in PLAYERS}
        found = recomputed.over_seeds(rows, lambda one: recomputed.by_position(one, L, records))
        found.pop('bends_move', None)  # half of which is in these numbers
        return found
    return recomputed.by_length(rows, roles)


PLAYERS = ('base', 'uniform', 'headscale', 'rope', 'ntk')


def _record(given) -> str:
    """Of several multipliers the largest, which comes last."""
    if isinstance(given, str):
        return given
    by_length = getattr(given, 'values', None)  # of a mapping, as ConfigDict is one
    return list(by_length() if by_length else given)[-1]


def test_some_committed_result_has_its_numbers():
    assert COMMITTED


@pytest.mark.parametrize('path', COMMITTED, ids=lambda path: f'{path.parent.name}-{path.stem}')
def test_committed_verdicts_follow_from_the_committed_numbers(path):
    committed = json.loads(path.with_suffix('.json').read_text())['claims']
    # What resamples of the windows leave open follows from the records, not from these numbers.
    open_ = [c for c in committed if c['statement'].endswith(resampled.STATEMENT)]
    open_ = {c['id'] for c in open_ if c['verdict'] == 'undecided'}
    said = {c['id']: c['verdict'] for c in committed if c['id'] not in open_}
    found = decided(path.stem, path.parent.name, recomputed.read(path))
    found = {
        name: verdict
        for name, verdict in found.items()
        if name in said and said[name] != 'not measured'
    }
    assert found
    agree(found, said)


SEEDS = ('seed0', 'seed1', 'seed2')


def moved(made: Records, measure: str, by: float | np.ndarray) -> Records:
    """`made` with one of its measures changed."""
    found = made.measures[measure]
    found = dataclasses.replace(found, values=np.asarray(found.values) + by)
    return dataclasses.replace(made, measures={**made.measures, measure: found})


def of_seeds(records: dict[str, Records], measure: str, apart: float) -> dict[str, Records]:
    """Three records for each, of which `measure` differs by random numbers of the size `apart`."""
    rng, found = np.random.default_rng(7), {}
    for name, made in records.items():
        for seed in SEEDS:
            facts = {'seed': int(seed[-1]), 'run_id': f'{name}-{seed}'}
            changed = moved(made, measure, apart * rng.normal())
            attributes = {**made.attributes, **facts}
            found[f'{name}/{seed}'] = dataclasses.replace(changed, attributes=attributes)
    return found


@pytest.mark.parametrize('apart', [0.0, 0.003, 0.01, 0.03, 0.2])
@pytest.mark.parametrize('floor', [1.5, 1.52])
def test_several_seeds_of_curves_by_position_are_decided_as_their_numbers_say(
    floor, apart, tmp_path
):
    searched = {'lam': 'HeadScale at 256', 'multiplier': None}
    records = {
        'base': positions_records(),
        'rope': positions_records(loss_bend=72, entropy_bend=86, position='rope'),
        'uniform': positions_records(lam='1.5', multiplier=1.5, loss_bend=120, floor=floor),
        'headscale': positions_records(**searched, loss_bend=122, entropy_bend=90),
    }
    roles = {'base': 'base', 'rope': 'rope', 'uniform': ['uniform']}
    options = {
        'panels': [{'curves': [{'record': name} for name in records]}],
        'roles': roles | {'headscale': {4: 'headscale'}},
    }
    given = FigureInput('fig1', of_seeds(records, 'loss', apart), options)
    rows, said = drawn('entropy_loss', given, tmp_path)
    names = {name: name for name in records}
    found = recomputed.over_seeds(rows, lambda one: recomputed.by_position(one, L, names))
    found.pop('bends_move', None)  # found for one seed and not measured for another
    assert {'parity', 'uniform_hurts', 'headscale_hurts_less'} <= set(found)
    agree(found, said)


@pytest.mark.parametrize('scale', [0.0, 0.02, 0.2])
@pytest.mark.parametrize('shift', [-0.1, 0.0, 0.1])
def test_the_figure_by_length_is_decided_as_its_numbers_say(scale, shift, tmp_path):
    """Seeds that differ by more and more, and a log-length law ahead or behind."""
    rng, given = np.random.default_rng(3), INPUTS['length_curves']
    records = {}
    for name, made in given.records.items():
        moved = shift if name.startswith('log_length') else 0.0
        tail = made['loss_tail'] + (0.3 * shift) * np.log2(synthetic.MULTIPLES)
        measures = dict(made.measures)
        for measure, values in (('loss_window', made['loss_window'] + moved), ('loss_tail', tail)):
            noise = scale * rng.normal(size=len(values))
            measures[measure] = Measure(values + noise, ('length',), 'nats')
        records[name] = dataclasses.replace(made, measures=measures)
    given = dataclasses.replace(given, records=records)
    rows, said = drawn('length_curves', given, tmp_path)
    agree(recomputed.by_length(rows, given.options['roles']), said)
