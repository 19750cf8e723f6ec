"""Attention distance as a config asks for it, of tasks and of text: from entry to records."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest
from ml_collections import ConfigDict

from configs.encodings import encodings
from configs.second_paper import b_attention, b_mrr, b_scratchpad
from experiments import execute
from experiments.build import Experiment, build
from experiments.evaluations.base import most_rows
from experiments.plan import make_plan
from experiments.specs import identifier
from experiments.workspace import Workspace
from nope import records
from nope.records import Records
from tests.experiments import evaluations_test, execute_test

SHAPE = {'layers': 2, 'width': 16, 'heads': 2, 'kv_heads': 2, 'head_dim': 8, 'mlp_width': 16}


def of_task(**entry: Any) -> ConfigDict:
    """NoPE and ALiBi on a small task, and their distance."""
    found = b_mrr.get_config('quick')
    found.seeds = (0,)
    task = {'name': 'cmc', 'longest': 3, 'symbols': 8, 'train': 60, 'validation': 20, 'test': 40}
    found.runs, found.evals = ConfigDict(), ConfigDict()
    for name, kind in (('nope', 'none'), ('other', 'alibi')):
        model = {**SHAPE, 'position': {'kind': kind}}
        train = {'length': 16, 'steps': 2, 'warmup_steps': 1, 'batch_size': 8}
        found.runs[name] = {'task': task, 'train': train, 'model': model}
    found.evals['other/'] = {'kind': 'attention_distance', 'run': 'other', 'other': 'nope'} | entry
    found.figure = {
        'kind': 'attention_distance', 'curves': ({'group': 'other', 'label': 'ALiBi'},)
    }  # fmt: skip
    return found


def of_text(tmp_path: pathlib.Path, **entry: Any) -> ConfigDict:
    found = evaluations_test.config_of(tmp_path)
    found.evals = ConfigDict()
    found.runs = {'nope': found.runs.nope, 'rope': {'model': {'position': {'kind': 'rope'}}}}
    found.evaluation.windows = 3
    asked = {'kind': 'attention_distance', 'run': 'rope', 'other': 'nope', 'times': (1.0, 2.0)}
    found.evals['rope/'] = asked | entry
    found.figure = {
        'kind': 'attention_distance', 'curves': ({'group': 'rope', 'label': 'rope'},)
    }  # fmt: skip
    return found


def made(experiment: Experiment, work: pathlib.Path) -> dict[str, Records]:
    """Records by the name of their evaluation; the programs it announces can be traced."""
    bench = execute_test.bench_of(experiment, work)
    specs = list(experiment.evals.values())
    pieces = make_plan(Workspace(work), specs).missing
    execute.check(bench, pieces)
    execute.execute(bench, pieces)
    for spec in specs:
        assert all(p.trace(bench.mesh) for p in spec.programs(most_rows(256, bench.mesh)))
    return {n: records.load(bench.workspace.folder(s)) for n, s in experiment.evals.items()}


@pytest.mark.slow
def test_models_of_a_task_read_held_out_examples_of_each_length(tmp_path: pathlib.Path) -> None:
    (found,) = made(build(of_task(examples=4)), tmp_path).values()
    assert found.along('length', 0).tolist() == [2, 3, 4, 5, 6]
    assert found['examples'].tolist() == [4] * 5
    assert found['distance'].shape == (5, 2) and np.all(found['distance'] > 0)
    facts = found.attributes
    assert (facts['task'], facts['longest'], facts['other_seed']) == ('cmc', 3, 0)
    assert facts['other'].startswith('NoPE, 2 layers') and facts['position'] == 'ALiBi'
    said = {
        'what': 'cmc of lengths 2 to 6',
        'how': '20 examples, prompt and target, all queries',
        'own_text': False,
    }
    assert facts['measured_on'] == said


def test_models_of_text_read_windows_of_their_data(tmp_path: pathlib.Path) -> None:
    config = of_text(tmp_path, queries=4)
    config.data.bos = True
    (found,) = made(build(config), tmp_path / 'work').values()
    assert found.along('length', 0).tolist() == [16, 32]
    assert found['examples'].tolist() == [3, 3] and np.all(found['distance'] > 0)
    assert found.attributes['queries'] == 4
    measured = found.attributes['measured_on']
    assert measured['what'].startswith('3 windows of up to 32 bytes of')
    begun = 'each beginning with BOS'
    assert measured['how'] == f'test split, {begun}, 4 queries of each' and measured['own_text']


def test_another_seed_is_the_next_of_the_config(tmp_path: pathlib.Path) -> None:
    config = of_task(run='nope', other='nope', seeds_further=1)
    config.seeds = (3, 5, 4)
    specs = build(config).evals
    assert {name: (s.run.seed, s.other.seed) for name, s in specs.items()} == {
        'other/seed3': (3, 5), 'other/seed5': (5, 4), 'other/seed4': (4, 3)
    }  # fmt: skip
    runs = {identifier(spec.run) for spec in specs.values()}
    assert {identifier(spec.other) for spec in specs.values()} == runs


@pytest.mark.parametrize(
    ('entry', 'message'),
    [
        ({'other': 'nobody'}, r"evals\.other/\.other names 'nobody'"),
        ({'other': 'other'}, r'evals\.other/\.other .*it is the run itself; .*two or more'),
        ({'other': 'other', 'seeds_further': 1}, r'it is the run itself'),
        ({'other': 'deeper'}, r'\.other .*it has 3 layers with attention, the run has 2'),
        ({'other': 'longer'}, r'\.other .*it reads other data than the run'),
        ({'seeds_further': -1}, r'\.seeds_further is -1; it must be at least 0'),
        ({'examples': 0}, r'\.examples is 0; it must be at least 1'),
        ({'queries': 0}, r'\.queries is 0; it must be at least 1'),
        ({'times': (2.0,)}, r'\.times .*the run is that of a task'),
    ],
)
def test_entries_of_tasks_that_do_not_fit_are_refused(entry: Any, message: str) -> None:
    config = of_task(**entry)
    nope = config.runs.nope.to_dict()
    config.runs.deeper = {**nope, 'model': {**nope['model'], 'layers': 3}}
    config.runs.longer = {**nope, 'task': {**nope['task'], 'longest': 4}}
    with pytest.raises(ValueError, match=message):
        build(config)


def test_entries_of_text_that_do_not_fit_are_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ValueError, match=r'\.examples .*the run reads text'):
        build(of_text(tmp_path, examples=3))
    config = of_text(tmp_path)
    config.runs.rope = {'model': {'position': {'kind': 'learned', 'size': 24}}}
    with pytest.raises(ValueError, match=r'\.times: sequences of 32 tokens; learned .* end at 24'):
        build(config)


def test_examples_beyond_a_learned_table_are_refused_before_training(
    tmp_path: pathlib.Path,
) -> None:
    config = of_task()
    for run in config.runs.values():
        run.task.longest = 4
    config.runs.other.model.position = {'kind': 'learned', 'size': 16}
    experiment = build(config)
    bench = execute_test.bench_of(experiment, tmp_path)
    with pytest.raises(ValueError, match=r'tokens; learned positions end at 16'):
        execute.check(bench, list(experiment.evals.values()))


def test_the_figures_train_no_model_that_others_have() -> None:
    def ids(config: ConfigDict) -> set[str]:
        specs = build(config).evals.values()
        return {identifier(r) for s in specs for r in (s.run, getattr(s, 'other', s.run))}

    ranks = b_mrr.get_config('quick')
    ranks.seeds = (0, 1, 2)
    assert len(ids(b_attention.get_config('quick'))) == 30
    assert ids(b_attention.get_config('quick')) < ids(ranks)
    added = b_attention.get_config('quick,addition')
    scratchpads = b_scratchpad.get_config('quick')
    scratchpads.seeds = added.seeds
    assert len(ids(added)) == 15 and ids(added) < ids(scratchpads)
    text = b_attention.get_config('quick,text')
    assert len(ids(text)) == 4
    assert ids(text) < ids(encodings.get_config('quick'))
    with pytest.raises(ValueError, match="'texts' behind the size is unknown"):
        b_attention.get_config('quick,texts')
