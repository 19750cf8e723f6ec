"""Searches and fine-tuning on synthetic tasks: what they read, and what is refused by name."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest
from ml_collections import ConfigDict

from experiments import execute
from experiments.bench import Bench
from experiments.build import Experiment, build
from experiments.evaluations import task_examples
from experiments.runs import RunSpec
from experiments.workspace import Workspace
from nope.data import TaskData
from nope.data import tasks as tasks_of
from nope.model.lam.log_position import LogPosition
from tests.experiments.task_configs import config, spec_of, with_run


def searched(**entry: Any) -> ConfigDict:
    """Lambda searched on cmc of lengths 5 and 6, of a model trained on 2 to 4."""
    task = {'name': 'cmc', 'longest': 6, 'shortest': 5, 'train': 40, 'validation': 4}
    found = {'init': 'one', 'task': task, 'search': {'law': 'constant', 'times': (1.5,)}}
    changed = with_run(two=found | entry)
    changed.evals['one/'].run = 'two'
    return changed


def test_lambda_is_searched_on_other_lengths_and_measured_on_the_model_s_own_task() -> None:
    spec = spec_of(build(searched()))
    run, base = spec.run, spec.run.init
    assert run.searches and isinstance(run.data, TaskData)
    assert (run.data.task.shortest, run.data.task.longest) == (5, 6)
    assert (run.train.lengths, run.train_length) == ((30,), 20)
    assert spec.task_data == base.data and spec.task_data.task.longest == 4
    assert (spec.known['longest'], spec.known['longest_read']) == (4, 6)
    assert spec_of(build(config())).known['longest_read'] == 4


@pytest.mark.parametrize('entry', [
    {'kind': 'attended_distance'}, {'kind': 'attention_distance', 'other': 'one'},
])  # fmt: skip
def test_attention_of_a_searched_model_is_read_on_its_own_task(entry: dict[str, str]) -> None:
    found = searched()
    found.evals['one/'] = entry | {'run': 'two'}
    found.figure = {'kind': entry['kind'], 'curves': ({'group': 'one', 'label': 'NoPE'},)}
    (spec,) = build(found).evals.values()
    assert spec.task_data.task.longest == 4 and spec.known['longest'] == 4
    assert spec.extent == task_examples.longest(spec.task_data).read


@pytest.mark.parametrize('symbols', [{'name': 'mc'}, {'name': 'cmc', 'symbols': 9}])
def test_a_search_on_other_words_is_refused(symbols: dict[str, Any]) -> None:
    message = r'runs\.two\.task has other words than runs\.one\.task \(cmc '
    with pytest.raises(ValueError, match=message):
        build(searched(task=symbols))


def check(experiment: Experiment, folder: pathlib.Path) -> None:
    bench = Bench(Workspace(folder), experiment.compute, experiment.batch_tokens)
    execute.check(bench, [spec.run for spec in experiment.evals.values()])


BY_ENTROPY = {'law': 'constant', 'times': (1.5,), 'objective': 'entropy'}


def test_a_search_by_entropy_compares_prompts_with_the_longest_of_training(
    tmp_path: pathlib.Path,
) -> None:
    """Also where lambda was searched before, on longer ones."""
    found = searched(search=BY_ENTROPY)
    found.runs.three = found.runs.two.to_dict() | {'init': 'two'}
    found.evals['three/'] = {'kind': 'exact_match', 'run': 'three'}
    experiment = build(found)
    longest = tasks_of.training_extents(spec_of(build(config())).task_data).longest_prompt
    for spec in experiment.evals.values():
        run = spec.run
        assert isinstance(run, RunSpec) and isinstance(run.data, TaskData)
        assert run.train.optimizer.entropy_length == longest == 4 + 3
        assert longest < tasks_of.training_extents(run.data).shortest_prompt
    check(experiment, tmp_path)


@pytest.mark.parametrize(('search', 'lengths', 'message'), [
    (BY_ENTROPY, (4, 6), r'task has prompts of 7 tokens; .* their first 7 tokens, .* raise its'),
    (BY_ENTROPY | {'law': 'log_position'}, (5, 6),
     r'task has prompts of up to 9 tokens, .* LogPosition is 1: '),
    ({'law': 'log_position', 'times': (1.5,)}, (3, 4),
     r'task has examples of up to 11 tokens, .* acts beyond 11; take '),
    ({'law': 'constant', 'times': (0.5, 1.5)}, (5, 6),
     r'search\.times makes sequences of 10 tokens; the longest .* has 15 tok'),
])  # fmt: skip
def test_a_search_that_reads_nothing_to_learn_from_is_refused(
    tmp_path: pathlib.Path, search: dict[str, Any], lengths: tuple[int, int], message: str
) -> None:
    """Prompts that training had; examples that lambda does not act in, however far their rows are
    padded (the longest of training has 7 tokens of a prompt and 4 that are read of the answer); a
    length that cuts examples."""
    found = searched(search=search)
    found.runs.two.task.update(dict(zip(('shortest', 'longest'), lengths, strict=True)))
    with pytest.raises(ValueError, match=rf'^runs\.two\.{message}'):
        check(build(found), tmp_path)


def test_a_law_counts_from_the_longest_example_of_training_however_it_comes(
    tmp_path: pathlib.Path,
) -> None:
    """Searched, given or trained in, at whatever width rows are padded to; a search at that width
    is one on longer examples all the same."""
    law = {'law': 'log_position', 'coefficient': 0.5}
    given = with_run(two={'init': 'one', 'lam': law})
    given.evals['one/'].run = 'two'
    by_search = build(searched(search={'law': 'log_position', 'times': (1.0,)}))
    for experiment in (by_search, build(given), build(config(lam=law))):
        form = spec_of(experiment).run.model.lam
        assert isinstance(form, LogPosition) and form.train_length == 11
    check(by_search, tmp_path)
    given.runs.two.lam.law = 'log_length'  # whose n counts the last token of an answer
    assert spec_of(build(given)).run.model.lam.train_length == 12  # type: ignore[attr-defined]


@pytest.mark.parametrize('entry', [
    {'lam': {'law': 'log_length', 'coefficient': 1.0}},
    {'model': {'position': {'kind': 'rope', 'scaling': {'kind': 'dynamic_ntk', 'factor': 2.0}}}},
])  # fmt: skip
def test_what_follows_the_length_of_padded_rows_is_refused(
    tmp_path: pathlib.Path, entry: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match=r'^runs\.one\.task: rows of a task are padded to one'):
        check(build(config(**entry)), tmp_path)


def test_all_weights_are_tuned_on_other_lengths_of_the_task() -> None:
    longer = {'name': 'cmc', 'shortest': 5, 'longest': 6}
    found = with_run(two={'init': 'one', 'task': longer, 'finetune': {'times': (1.5,)}})
    found.evals['one/'].run = 'two'
    spec = spec_of(build(found))
    run = spec.run
    assert isinstance(run, RunSpec) and run.fine_tunes and run.train.lengths == (30,)
    assert isinstance(run.data, TaskData) and run.data.task.shortest == 5
    assert spec.task_data == run.init.data and spec.known['longest_read'] == 6
    assert spec.known['tuning'].endswith('sequences of 30 of cmc of lengths 5 to 6, words')
    del found.runs.two.task
    with pytest.raises(ValueError, match=r'runs\.two\.task is missing: the task to read'):
        build(found)


def test_a_search_says_which_task_it_reads() -> None:
    found = searched()
    del found.runs.two['task']
    with pytest.raises(ValueError, match=r"runs\.two\.task is missing.*\{'name': 'cmc'"):
        build(found)
    found = with_run(text={}, two={'init': 'text', 'task': {'name': 'cmc'}, 'search': {}})
    found.evals = {'two/': {'kind': 'positions', 'run': 'two'}}
    with pytest.raises(ValueError, match=r'runs\.two\.task .*runs\.two\.init was trained on text'):
        build(found)
