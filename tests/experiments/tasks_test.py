"""Runs on synthetic tasks: what a config says of them, and what is refused by name."""

from __future__ import annotations

import collections
import dataclasses
import pathlib
from typing import Any, cast

import jax
import numpy as np
import pytest

from configs.second_paper import b_attended, b_lambda, b_mrr, b_scratchpad
from configs.shared import tasks
from experiments import config_files
from experiments.bench import Bench
from experiments.build import Experiment, build
from experiments.evaluations import task_examples
from experiments.evaluations.attended_distance import AttendedDistanceSpec
from experiments.evaluations.exact_match import ExactMatchSpec
from experiments.programs import Continuing, Program, Scoring, Step
from experiments.runs import text_of, training
from experiments.specs import identifier, identity
from experiments.workspace import Workspace
from nope import sharding
from nope.data import TaskData
from nope.data.tasks import Sizes, named, scratchpad, tokenised, training_extents
from nope.identity import plain
from nope.training.config import Validation
from tests.experiments.task_configs import config, spec_of, with_run


def test_tasks_by_name_are_drawn_alone() -> None:
    whole, one = b_mrr.get_config('small'), b_mrr.get_config('small,rsc')
    assert set(one.runs) == {name for name in whole.runs if name.startswith('rsc_')} and one.runs
    assert all(one.runs[name] == whole.runs[name] for name in one.runs)
    assert {curve['group'] for curve in one.figure.curves} == set(one.runs)
    with pytest.raises(ValueError, match=r"'addition' is not drawn at this size; accepted: rsc,"):
        b_mrr.get_config('quick,addition')


def test_a_run_reads_the_task_that_it_names() -> None:
    given = {'name': 'addition', 'longest': 3, 'scratchpad': 'full', 'train': 500}
    spec = spec_of(build(config(task=given)))
    data = spec.run.data
    assert isinstance(data, TaskData)
    assert (data.task.name, data.task.longest) == ('addition', 3)
    assert data.task.scratchpad == scratchpad.FULL
    assert data.sizes is not None
    assert (data.sizes.train, data.sizes.validation, data.seed) == (500, 15_000, 9842497)
    assert spec.run.model.vocab_size == data.load_tokenizer().vocab_size
    assert spec.run.train.block == 20
    assert spec.run.slug().startswith('addition-nope-20-4x64-seed0')


def test_answers_that_one_pass_leaves_open_have_a_program_of_their_own() -> None:
    def programs(task: dict[str, Any]) -> list[Program]:
        return list(spec_of(build(config(task=task))).programs(lambda length, rules: 4))

    copying, summing = programs({'name': 'cmc', 'longest': 4}), programs({'name': 'summation'})
    assert [type(program) for program in copying] == [Scoring]
    assert [type(program) for program in summing] == [Scoring, Continuing]
    assert isinstance(summing[1], Continuing)
    prompt = 16 + 15 + 4  # numbers, signs, `Compute`, `:`, `.` and the separator
    assert summing[1].options.new_tokens == 128 - prompt


def test_the_order_of_examples_follows_the_seed_and_the_examples_do_not() -> None:
    found = config()
    found.seeds = (0, 1)
    first, second = (spec.run for spec in build(found).evals.values())
    assert first.data == second.data and first.data_seed != second.data_seed


MATCH = {'kind': 'exact_match', 'run': 'one'}


@pytest.mark.parametrize(
    'entry, message',
    [
        ({'task': {'name': 'cpy'}}, r"runs\.one\.task\.name is 'cpy'; accepted: rsc, rsc2x"),
        ({'task': {'name': 'cmc', 'longest': 1}}, r'cmc: shortest=2 and longest=1; accepted'),
        ({'task': {'name': 'cmc', 'scratchpad': 'full'}}, r"task 'cmc' has no such field"),
        ({'task': {'name': 'parity', 'scratchpad': 'all'}}, r"is 'all'; accepted: none, full"),
        ({'task': {'name': 'cmc', 'seed': -1}}, r'\.task\.seed is -1; it must be at least 0'),
        ({'task': {'name': 'cmc', 'train': 0}}, r'runs\.one\.task\.train is 0; at least 1'),
        ({'task': {'name': 'cmc', 'tokenizer': 'none.model'}}, r'tokenizer is .*no such file'),
        ({'task': {'name': 'cmc', 'length': 4}}, r'length is unknown; accepted: longest'),
        ({'data': {'source': 'stdlib'}}, r'runs\.one\.data is .*runs\.one\.task says'),
        ({'model': {'vocab_size': 9}}, r'runs\.one\.model\.vocab_size is 9; task\.tokenizer has'),
        ({'train': {'random_positions': 4.0}}, r'random_positions is 4\.0; a task takes none'),
        ({'train': {'warmup_share': 1.5}}, r'^runs\.one\.train\.warmup_share is 1\.5'),
    ],
)
def test_what_a_run_on_a_task_has_not_is_refused(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(config(**entry))


@pytest.mark.parametrize(
    ('section', 'changes', 'message'),
    [
        ('evals', {'one/': {'kind': 'lengths', 'run': 'one'}}, 'lengths measures .* on text'),
        ('evals', {'one/': MATCH | {'run': 'text'}}, 'exact_match measures models .* on a task'),
        ('evals', {'one/': MATCH | {'run': 'longer'}}, "init is 'one'; .*takes one of search"),
        ('exports', {'out': {'run': 'one'}}, r'exports\.out\.run is .one.; .* no tokenizer files'),
        ('exact_match', {'tests': 0}, r'exact_match\.tests is 0; it must be at least 1'),
        ('exact_match', {'longer': 'cut'}, r"^exact_match\.longer is 'cut'; .*refused.*wrong"),
    ],
)
def test_what_is_not_made_of_a_model_of_a_task_is_refused(
    section: str, changes: dict[str, Any], message: str
) -> None:
    found = with_run(text={}, longer={'init': 'one', 'task': {'name': 'cmc', 'longest': 8}})
    found[section].update(changes)
    with pytest.raises(ValueError, match=message):
        build(found)


def test_the_text_of_a_task_s_model_is_asked_for_in_vain() -> None:
    with pytest.raises(ValueError, match='was trained on cmc of lengths 2 to 4'):
        text_of(spec_of(build(config())).run)


def test_an_example_beyond_the_limit_names_the_field() -> None:
    found = config()
    found.exact_match.limit = 5
    with pytest.raises(ValueError, match=r'^exact_match\.limit is 5; the \w+ example 0 of length'):
        spec_of(build(found))._asked()
    found.evals['one/'].exact_match = {'limit': 6}
    with pytest.raises(ValueError, match=r'^evals\.one/\.exact_match\.limit is 6; the \w+ example'):
        spec_of(build(found))._asked()


@pytest.mark.parametrize(
    ('name', 'longest', 'sizes', 'message'),
    [
        ('cmc', 4, (60, 0, 30), r'^task\.validation is 0; accepted: at least 1'),
        ('addition', 8, (960, 50, 400), r'^task\.validation: addition has no .* is 50'),
    ],
)
def test_validation_that_reads_nothing_is_refused_before_training(
    name: str, longest: int, sizes: tuple[int, int, int], message: str
) -> None:
    spec = spec_of(build(config(task={'name': name, 'longest': longest, **sized(sizes)})))
    with pytest.raises(ValueError, match=message):
        spec.check(cast(Bench, None))


def sized(sizes: tuple[int, int, int]) -> dict[str, int]:
    return dict(zip(('train', 'validation', 'test'), sizes, strict=True))


@pytest.mark.parametrize(
    ('name', 'longest', 'sizes', 'message'),
    [
        ('addition', 8, (1000, 100, 100), r'^task\.test: addition has no test example'),
        ('lego', 4, (60, 20, 4), r'^task\.test: 1 test examples of each length make no'),
    ],
)
def test_the_longest_of_too_few_tests_names_their_number(
    name: str, longest: int, sizes: tuple[int, int, int], message: str
) -> None:
    data = TaskData(named(name, longest=longest), Sizes(**sized(sizes)))
    with pytest.raises(ValueError, match=message):
        task_examples.longest(data)


def test_encodings_that_differ_by_task_are_refused_before_any_training() -> None:
    found = b_mrr.get_config()
    found.figure.curves = found.figure.curves[:-1]
    with pytest.raises(ValueError, match="figure 'b_mrr': 'rdc' has the curves"):
        build(found)
    found = b_mrr.get_config()
    found.figure.curves = tuple(c | {'label': 'x'} for c in found.figure.curves)
    with pytest.raises(ValueError, match=r"'rsc' has the curves .*accepted: none twice"):
        build(found)


@pytest.mark.parametrize('name', [
    'b_mrr', 'b_hybrids', 'b_positions', 'b_lambda', 'b_scratchpad', 'b_attention', 'b_attended',
    'b_encoder',
])  # fmt: skip
def test_a_config_names_itself_where_its_argument_is_unknown(name: str) -> None:
    module = config_files.module(name)
    with pytest.raises(ValueError, match=f"^{name}: size 'tiny' is unknown"):
        module.get_config('tiny')
    assert module.get_config('small').seeds == tasks.SEEDS
    if name in ('b_mrr', 'b_hybrids', 'b_positions', 'b_lambda', 'b_encoder'):
        assert module.get_config('quick,rsc').seeds == module.get_config().seeds != tasks.SEEDS
        with pytest.raises(ValueError, match=f"{name}:quick,mc: task 'mc' is not drawn"):
            module.get_config('quick,mc')


def test_searches_on_longer_examples_follow_the_longest_of_training_that_is_stated() -> None:
    found = b_lambda.get_config('small,mc2x')
    found.task.longest = 16
    with pytest.raises(ValueError, match=r'task\.longest is set, but nothing .* reads it'):
        build(found, changed=['task.longest'])
    runs = b_lambda.get_config('small,mc2x').runs
    assert runs.mc2x_nope.task.longest == 20 == runs.mc2x_nope_headscale.task.shortest - 1


def test_the_longest_examples_are_of_those_that_there_are() -> None:
    """Of one symbol repeated there are as many of a length as symbols: 50 here."""
    data = build(b_mrr.get_config()).evals['rsc_nope/seed0'].task_data
    assert task_examples.longest(data) == (23, 43)


def test_examples_that_cannot_be_drawn_name_their_task(tmp_path: pathlib.Path) -> None:
    found = b_mrr.get_config()
    found.runs.rsc_rope.task.symbols = 3
    built = build(found)
    bench = Bench(Workspace(tmp_path), built.compute, built.batch_tokens)
    with pytest.raises(ValueError, match=r'^runs\.rsc_rope\.task: rsc: symbols has 3, and 50'):
        training.check(bench, built.evals['rsc_rope/seed0'].run)


def test_the_identity_has_no_list_of_symbols() -> None:
    symbols = identity(spec_of(build(config())))['run']['data']['task']['symbols']
    assert isinstance(symbols, str)


def test_dropout_at_quick_is_none_and_leaves_runs_what_they_were() -> None:
    model = spec_of(build(config())).run.model
    assert not model.drops and 'dropout' not in str(plain(model))
    dropping = spec_of(build(config(model={'dropout': 0.1}))).run.model
    assert dropping.drops and dropping.attention_dropout == 0


def test_a_task_in_a_config_without_its_section_is_named() -> None:
    found = config()
    del found['task']
    message = r"^runs\.one\.task changes a section: the config has no section 'task'; it has"
    with pytest.raises(ValueError, match=message):
        build(found)


def test_an_attention_without_dropout_is_refused_by_its_name() -> None:
    found = b_mrr.get_config('small')
    found.model.attention = 'chunked'
    message = r"^model\.attention is 'chunked'; attention_dropout is 0\.1, which 'reference' alone"
    with pytest.raises(ValueError, match=message):
        build(found)
    found.model.attention_dropout = 0.0
    assert next(iter(build(found).evals.values())).run.model.attention == 'chunked'


def test_a_step_with_dropout_is_traced_ahead_on_a_mesh() -> None:
    run = next(iter(build(b_mrr.get_config('small')).evals.values())).run
    model = dataclasses.replace(run.model, layers=2, unroll=1)
    step = Step(model, run.train.optimizer, 32, 8, 2, arrays=('weights',))
    placed = sharding.make_mesh(sharding.MeshConfig(2, 2, 2, 1), jax.devices())
    with sharding.use(placed):
        assert 'threefry2x32' in str(step.trace(placed).jaxpr)


def test_at_paper_size_runs_are_the_paper_s() -> None:
    found = b_mrr.get_config('paper')
    found.task.tokenizer = 'words'  # t5-base's model is not part of the project
    experiment = build(found)
    runs = [spec.run for spec in experiment.evals.values()]
    assert len(set(runs)) == 17 * 5 * 3
    assert {run.seed for run in runs} == {256788, 234054, 146317}
    assert runs[0].train.validation == Validation(2000, 0.5)
    model = runs[0].model
    assert (model.dropout, model.attention_dropout, model.attention) == (0.1, 0.1, None)
    optimizer = runs[0].train.optimizer
    assert (optimizer.learning_rate, optimizer.warmup_steps, optimizer.b2) == (3e-5, 2400, 0.999)


def test_the_warm_up_is_a_share_of_the_steps_unless_it_is_given() -> None:
    def warm_up(**train: int) -> int:
        return spec_of(build(config(train={'length': 20} | train))).run.train.optimizer.warmup_steps

    assert (warm_up(), warm_up(steps=1000), warm_up(steps=1000, warmup_steps=3)) == (24, 60, 3)


def test_scaled_positions_of_a_task_s_model_are_of_the_longest_example_it_read() -> None:
    """Rows are padded: their length says nothing of what the model has seen."""
    found = config(
        task={'name': 'cmc', 'longest': 4, 'train': 60, 'validation': 20, 'test': 40},
        model={'position': {'kind': 'rope'}},
    )
    found.evals['one/'].position = {'scaling': {'kind': 'dynamic_ntk', 'factor': 1.0}}
    spec = spec_of(build(found))
    longest = training_extents(spec.task_data).longest
    assert spec.position.scaling.train_length == longest < spec.run.train_length == 20
    tuned = {'init': 'one', 'task': found.runs.one.task.to_dict(), 'finetune': {'times': (1.0,)}}
    tuned['model'] = {'position': {'scaling': {'kind': 'yarn', 'factor': 2.0}}}
    found.runs.tuned = tuned
    found.evals = {'one/': {'kind': 'exact_match', 'run': 'tuned'}}
    run = spec_of(build(found)).run
    assert run.model.position.scaling.train_length == longest


def test_a_trained_model_is_asked_for_longer_examples_than_twice_its_own() -> None:
    """By another evaluation of the same run, whose examples up to 2 L are the same ones."""
    found = config(task={'name': 'cmc', 'longest': 4, 'train': 60, 'validation': 20, 'test': 40})
    found.evals['far/'] = {'kind': 'exact_match', 'run': 'one', 'exact_match': {'reach': 14}}
    near, far = (build(found).evals[f'{name}/seed0'] for name in ('one', 'far'))
    assert near.run == far.run and identifier(near) != identifier(far)
    asked = [collections.Counter(e.length for e in s.task_data.dataset().test) for s in (near, far)]
    assert set(asked[0]) == set(range(5, 9)) and set(asked[1]) == set(range(5, 15))
    assert len({*asked[0].values(), *asked[1].values()}) == 1
    short = [{e for e in s.task_data.dataset().test if e.length <= 8} for s in (near, far)]
    assert short[0] == short[1]
    assert far.known['reach'] == 14 and 'reach' not in near.known


@pytest.mark.parametrize(
    ('task', 'reach', 'rule'),
    [
        ('cmc', 4, 'accepted: more than longest=4'),
        ('scan', 60, 'the tests of scan end where they do'),
        ('lego', 40, 'at most 26, one a letter'),
    ],
)
def test_lengths_that_a_task_has_no_tests_of_are_refused(task: str, reach: int, rule: str) -> None:
    found = config(task={'name': task, 'longest': 4})
    found.evals['one/'].exact_match = {'reach': reach}
    with pytest.raises(ValueError, match=rf'^evals\.one/\.exact_match\.reach is {reach}.*{rule}'):
        build(found)


def scratchpads(size: str) -> Experiment:
    found = b_scratchpad.get_config(size)
    found.task.tokenizer = 'words'
    return build(found)


def test_at_paper_size_eight_formats_of_seven_tasks_share_the_models_of_b_mrr() -> None:
    padded = {spec.run for spec in scratchpads('paper').evals.values()}
    # Sorting and LEGO, three of the seven, have no variables.
    assert len(padded) == (7 * 8 - 3) * 5 * 3
    found = b_mrr.get_config('paper')
    found.task.tokenizer = 'words'
    assert len(padded & {spec.run for spec in build(found).evals.values()}) == 7 * 5 * 3


@pytest.mark.parametrize('size', ['quick', 'paper'])
def test_rows_and_limits_have_room_for_scratchpads(size: str) -> None:
    seen = set()
    for spec in scratchpads(size).evals.values():
        assert isinstance(spec, ExactMatchSpec)
        data = spec.task_data
        if data in seen:
            continue
        seen.add(data)
        assert longest_of(data, 'train') <= spec.run.train.block
        assert longest_of(data, 'test') < spec.limit


def longest_of(data: TaskData, split: str) -> int:
    """Tokens that are read of the longest of some examples of the longest bin."""
    task, tokenizer = data.task, data.load_tokenizer()
    some = task.examples(task.bins(split)[-1], np.random.default_rng(0), 100)
    return max(tokenised(task, tokenizer, example).length for example in some)


def test_attended_distances_are_of_targets_beyond_the_lengths_of_training() -> None:
    """Queries are the tokens of scratchpad and answer, on additions of L + 1 to 2 L digits."""
    spec = next(iter(build(b_attended.get_config('quick')).evals.values()))
    assert isinstance(spec, AttendedDistanceSpec)
    parts, lengths = spec._parts()
    assert lengths == [6, 7, 8, 9, 10] and len(parts) == 5 * 10
    data = spec.task_data
    example = next(x for split, x in data.held_out() if split == 'test' and x.length == 6)
    ids = tokenised(data.task, data.load_tokenizer(), example)
    assert parts[0].first == len(ids.prompt)
    np.testing.assert_array_equal(parts[0].tokens, [*ids.prompt, *ids.target[:-1]])
    assert max(len(part.tokens) for part in parts) <= spec.extent
    assert spec.extent > spec.run.train_length
    found = b_attended.get_config('quick')
    found.evals[next(iter(found.evals))].examples = 0
    with pytest.raises(ValueError, match='examples is 0; it must be at least 1'):
        build(found)
