"""Verdicts of summary.json are those that follow from the figure's CSV by another derivation."""

from __future__ import annotations

import dataclasses
import json
import pathlib

import numpy as np
import pytest

from experiments.figures import KINDS, FigureInput, base, write
from nope.records import Measure
from tests.experiments.figures import recomputed, synthetic
from tests.experiments.figures.synthetic import GRIDS, INPUTS, positions_records

L = 64


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch):
    """Numbers alone are read here."""
    monkeypatch.setattr(base, 'rendered', lambda figure, kind: b'')


def drawn(kind: str, given: FigureInput, folder: pathlib.Path) -> tuple[pathlib.Path, dict]:
    """The CSV of a figure and the verdicts of its summary, by claim."""
    write(KINDS[kind].draw(given), folder)
    claims = json.loads((folder / 'summary.json').read_text())['claims']
    return folder / f'{given.name}.csv', {c['id']: c['verdict'] for c in claims}


def agree(found: dict[str, str], said: dict[str, str]) -> None:
    assert found == {name: said[name] for name in found}


# Bends of NoPE and rotary, floors of NoPE and of NoPE with one multiplier, bends of that: each set
# turns some verdict.
SHAPES = {
    'as the paper says': ((78, 72), (1.5, 1.52), (120, 120)),
    'rotary first': ((72, 78), (1.5, 1.52), (120, 120)),
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
    (nope, rotary), (floor, raised), (loss, entropy) = SHAPES[shape]
    records = {
        'nope': positions_records(loss_bend=nope, entropy_bend=nope, floor=floor, noise=noise),
        'nope_uniform': positions_records(
            lam='1.5', multiplier=1.5, loss_bend=loss, entropy_bend=entropy, floor=raised
        ),
        'rope': positions_records(
            loss_bend=rotary, entropy_bend=1.2 * rotary, position='rotary', noise=noise
        ),
        'rope_ntk': positions_records(loss_bend=150 + nope, entropy_bend=180, position='NTK'),
    }
    roles = {'base': 'nope', 'uniform': 'nope_uniform', 'rotary': 'rope', 'ntk': 'rope_ntk'}
    options = {
        'panels': [{'curves': [{'record': name} for name in records]}],
        'roles': roles | {'uniform': ['nope_uniform']},
    }
    path, said = drawn('entropy_loss', FigureInput('fig1', records, options), tmp_path)
    found = recomputed.by_position(path, L, roles)
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
    path, said = drawn('entropy_loss', FigureInput('fig4', records, options), tmp_path)
    found = recomputed.by_position(path, L, {name: name for name in records})
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
    path, said = drawn('multiplier_entropy', given, tmp_path)
    agree(recomputed.by_head(path), said)


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
    path, said = drawn('uniform_fit', given, tmp_path)
    agree(recomputed.by_multiplier(path, L, ['early', 'late']), said)


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
    path, said = drawn('length_curves', given, tmp_path)
    agree(recomputed.by_length(path, given.options['roles']), said)
