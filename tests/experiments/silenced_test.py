"""Models with heads silenced, and models whose heads become local later."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

from experiments import execute, facts
from experiments.plan import make_plan
from experiments.runs import RunSpec, SilencedSpec
from experiments.runs.training import initial
from experiments.specs import identifier
from tests import tiny
from tests.experiments.execute_test import bench_of
from tests.experiments.laws_test import experiment

HALF = {'kind': 'split', 'local': {'kind': 'forget', 'start': 4.0}}
SPLIT = {'init': None, 'model': {'position': HALF, 'lam_layers': 'nope'}}
LATER = {'init': 'nope', 'model': {'position': HALF}, 'finetune': {'times': (1.0,)}}
MAMBA = {'mixer': {'kind': 'mamba2', 'heads': 2, 'head_dim': 8, 'state': 4}}
STATES = {'init': None, 'model': {'pattern': (MAMBA, {}), 'lam_layers': 'nope'}}
SHAPE = {'kind': 'attention_shape', 'run': 'nope', 'times': 1.0, 'span': 0.25}


def run_of(entry: dict[str, Any], **runs: Any) -> Any:
    return experiment(None, **runs, x=entry).evals['x/seed0'].run


def test_heads_are_silenced_by_kind_or_one_by_one() -> None:
    local, others, two = (
        run_of({'init': 'split', 'without': without}, split=SPLIT)
        for without in ('local', 'nope', ((3, 1), (0, 2)))
    )
    assert all(isinstance(run, SilencedSpec) for run in (local, others, two))
    assert local.heads[:3] == ((0, 0), (0, 1), (1, 0)) and len(local.heads) == 8
    assert set(local.heads).isdisjoint(others.heads) and len(others.heads) == 8
    assert two.heads == ((0, 2), (3, 1))
    assert len({identifier(run) for run in (local, others, two, two.init)}) == 4


@pytest.mark.parametrize(
    ('without', 'message'),
    [
        ('all', r"is 'all'; accepted: 'local' \(heads with a position encoding\)"),
        ('local', r"is 'local'; none has no such head"),
        ((), r'is \(\); accepted'),
        (((4, 0),), r'is \(\(4, 0\),\); accepted.*up to \(3, 3\)'),
        (((0, -1),), r'is .*accepted'),
        ((0, 1), r'is \(0, 1\); accepted'),
    ],
    ids=str,
)
def test_heads_that_there_are_not_are_refused(without: Any, message: str) -> None:
    with pytest.raises(ValueError, match=rf'^runs\.x\.without {message}'):
        run_of({'init': 'nope', 'without': without})


@pytest.mark.slow
def test_a_trained_model_gets_local_heads_where_it_was_local_already(
    tmp_path: pathlib.Path,
) -> None:
    """The most local heads come first and get fresh gates; all other arrays are the old ones."""
    runs = {'nope': {'init': None, 'model': {'heads': 4, 'kv_heads': 4}}}
    later = {**LATER, 'heads_from': 'shape'}
    found = experiment(tmp_path, evals={'shape': SHAPE}, x=later, **runs)
    run = found.evals['x/seed0'].run
    assert isinstance(run, RunSpec) and run.order_from == found.evals['shape']
    assert run.order_from.span == 4
    tuning = facts.of_evaluation(run, run, run.model, None, None)['tuning']
    assert tuning.endswith('local heads by their weight on the latest 4 tokens')
    bench = bench_of(found, tmp_path / 'work')
    plan = make_plan(bench.workspace, [found.evals['x/seed0']])
    assert [spec.room for spec in plan.missing] == ['runs', 'records', 'runs', 'records']
    execute.execute(bench, plan.missing[:2])  # the base model and its scores

    variables = (bench.variables(run.init), initial(bench, run))
    old, started = (v['params']['layers']['attention'] for v in variables)
    for layer, order in enumerate(np.argsort(-bench.head_scores(run.order_from), axis=1)):
        np.testing.assert_array_equal(started['query'][layer], old['query'][layer][:, order])
    np.testing.assert_array_equal(started['forget']['bias'], np.full((2, 2), 4.0))
    assert 'forget' not in old


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'heads_from': 'nope/'}, r"heads_from is 'nope/', not the name of an eval of"),
        ({'heads_from': 'y'}, r"heads_from is 'y'; the config has the evals"),
        ({'heads_from': 'other'}, r"heads_from is 'other'; it measures another run than runs\.x"),
        ({'model': {'position': {'kind': 'alibi'}}}, r'heads_from is .*position has no split'),
        ({'init': 'alibi'}, r'heads_from is .*have a lambda or a position encoding of their own'),
        ({'init': 'states'}, r'heads_from is .*layers of runs\.x\.init differ in their arrays'),
        ({'init': 'searched'}, r'heads_from is .*have a lambda or a position encoding of their'),
    ],
    ids=str,
)
def test_an_order_that_means_nothing_is_refused(changes: dict[str, Any], message: str) -> None:
    runs = {
        'alibi': {'init': None, 'model': {'position': {'kind': 'alibi'}}},
        'searched': {'init': 'nope', 'search': {'times': (2.0,)}},
        'states': STATES,
    }
    evals = {'shape': SHAPE, 'other': {**SHAPE, 'run': 'alibi'}}
    with pytest.raises(ValueError, match=rf'^runs\.x\.{message}'):
        experiment(None, evals=evals, **runs, x={**LATER, 'heads_from': 'shape', **changes})


def test_gates_are_not_exchanged() -> None:
    """A model gets them by fine-tuning alone, keeps them, and is measured with its own."""
    assert run_of(LATER).model.gate.heads == 2
    without = {**LATER, 'init': 'split', 'model': {'position': {'kind': 'none'}}}
    with pytest.raises(ValueError, match='differ in forget gates, which cannot be exchanged'):
        run_of(without, split=SPLIT)
    measured = {'kind': 'lengths', 'run': 'nope', 'times': (1.0,), 'position': HALF}
    with pytest.raises(ValueError, match='differ in forget gates, which cannot be exchanged'):
        experiment(None, evals={'with': measured})


def test_heads_silenced_in_turn_are_all_named() -> None:
    first = {'init': 'nope', 'without': ((0, 0),)}
    run = run_of({'init': 'first', 'without': ((0, 1), (0, 0))}, first=first)
    named = facts.of_evaluation(run, run.init.init, run.model, None, None)['silenced']
    assert named == [[0, 0], [0, 1]]


def test_layers_are_numbered_as_in_the_model() -> None:
    """The second is the first with attention."""
    silent = run_of({'init': 'a', 'without': ((1, 0),)}, a=STATES)
    found = silent.changed(tiny.variables(silent.model))['params']['layers']
    output_NHD = np.asarray(found['1']['attention']['output'])
    assert not output_NHD[0].any() and output_NHD[1:].any()
    with pytest.raises(ValueError, match=r'pairs up to \(\d, \d\) of layers with attention'):
        run_of({'init': 'a', 'without': ((0, 0),)}, a=STATES)


def test_a_folder_is_named_by_its_mixers() -> None:
    assert run_of(STATES).slug().startswith('nope-mamba2-')
