"""Every config builds at every size; what does not fit is refused by name."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import tempfile

import jax
import pytest
from ml_collections import ConfigDict

from experiments import config_files
from experiments.build import build
from experiments.evaluations.lengths import LengthsSpec
from experiments.runs import RunSpec
from experiments.specs import check_unchanged, identifier
from nope import sharding
from nope.evals.longbench import DATASETS
from nope.model import ModelConfig, counts
from nope.positions import NoPE, RoPE
from nope.sharding import MeshConfig, make_mesh
from nope.training import tracker
from nope.training.config import Earlier
from nope.variables import abstract_variables
from tests.evals.longbench import files
from tests.experiments import task_configs

FOLDER = pathlib.Path(__file__).parents[2] / 'configs'
CONFIGS = sorted(
    path.stem for kind in ('fig*.py', 'table*.py') for path in FOLDER.glob(f'*/{kind}')
)
# Those and every other one that has sizes.
EVERY = sorted(p.stem for p in FOLDER.glob('*/*.py') if 'def get_config(size:' in p.read_text())
# Whose models are trained to retrieve at the smaller sizes.
RETRIEVAL = {'fig6', 'fig8', 'fig9', 'table4'}
ENDS, BETWEEN = ('quick', 'paper'), ('small', 'medium', 'large')


def config_of(name: str, size: str = 'quick'):
    config = config_files.module(name).get_config(size)
    if size.startswith(('paper', 'large')):  # their data and tokenizer are not in the project
        config.data.mixture = ()
        config.data.source = 'stdlib'
        config.data.tokenizer = 'bytes'
        if 'task' in config:
            config.task.tokenizer = 'words'
        for corpus in config.get('corpora', {}):
            config.corpora[corpus] = {'source': 'stdlib'}
    if name == 'table1':
        pytest.importorskip('lm_eval')
        config.harness.files = 'hub'
    if name == 'table3' or size.endswith(',longbench'):
        config.longbench.folder = str(longbench_files())
    return config


@functools.cache
def longbench_files() -> pathlib.Path:
    """One sample of every data set."""
    folder = pathlib.Path(tempfile.mkdtemp())
    for name, dataset in DATASETS.items():
        files.write(folder, name, [files.row(dataset.metric)])
    return folder


def runs_below(spec) -> set[RunSpec]:
    found = {spec} if isinstance(spec, RunSpec) else set()
    return found.union(*(runs_below(part) for part in spec.needs))


def test_there_is_a_config_for_every_figure():
    wanted = {*(f'fig{number}' for number in range(1, 11)), 'fig_dynamic'}
    wanted |= {f'table{number}' for number in range(1, 5)}
    assert wanted <= set(CONFIGS)


@pytest.mark.parametrize(
    'size', [*ENDS, *(pytest.param(s, marks=pytest.mark.slow) for s in BETWEEN)]
)
@pytest.mark.parametrize('name', EVERY)
def test_config_builds_and_its_models_have_shapes(name, size):
    experiment = build(config_of(name, size))
    models = {run.model for spec in experiment.evals.values() for run in runs_below(spec)}
    for model in models:
        count, lam = shapes_of(model)
        assert count == counts.parameters(model)
        assert lam[:2] == (model.attention_layers, model.heads)
        if size == 'paper' and name in CONFIGS:
            assert count == 1_100_048_384


def test_the_models_of_a_size_have_its_parameters() -> None:
    """As configs/README.md has them."""
    found = {}
    for size in ('quick', 'small', 'medium', 'large'):
        config = config_of('fig1', size)
        config.model.vocab_size = 8192 if size == 'large' else None
        found[size] = shapes_of(build(config).evals['nope'].run.model)[0]
    assert found == {'quick': 228_160, 'small': 857_728, 'medium': 4_878_592, 'large': 33_694_208}


def without_type(config: ConfigDict, path: str = '') -> list[str]:
    """Fields that a command line cannot set: None, and not a `placeholder`."""
    found = []
    for name in config:
        if isinstance(config[name], ConfigDict):
            found += without_type(config[name], f'{path}{name}.')
        elif config.get_type(name) is type(None):
            found.append(path + name)
    return found


@pytest.mark.parametrize('size', ['quick', 'paper'])
@pytest.mark.parametrize('name', EVERY)
def test_every_field_can_be_set_on_the_command_line(name: str, size: str) -> None:
    module = config_files.module(name)
    assert not without_type(module.get_config(size))


@pytest.mark.parametrize('name', ['extend', 'checkpoint', 'whole_text'])
def test_every_field_for_a_checkpoint_can_be_set_on_the_command_line(name: str) -> None:
    assert not without_type(config_files.module(name).get_config())


def test_every_field_for_published_models_can_be_set_on_the_command_line(tmp_path) -> None:
    given = f'released,nope={tmp_path},rope={tmp_path}'
    assert not without_type(config_files.module('fig1').get_config(given))


@functools.cache
def shapes_of(model: ModelConfig) -> tuple[int, tuple[int, ...]]:
    """Number of its parameters, shape of lambda."""
    mesh = sharding.make_mesh(sharding.MeshConfig(), jax.devices()[:1])
    variables = abstract_variables(model, mesh)
    count = sum(leaf.size for leaf in jax.tree.leaves(variables['params']))
    return count, variables['lam']['head'].shape


@pytest.mark.parametrize('shared', [RETRIEVAL, set(CONFIGS) - RETRIEVAL - {'table1'}])
def test_figures_share_their_base_model(shared):
    base = {
        run
        for name in shared
        for spec in build(config_of(name)).evals.values()
        for run in runs_below(spec)
        if run.seed == 0 and not run.searches and run.model.position.describe() == 'none'
    }
    assert len(base) == 1


def test_a_corpus_that_changes_under_a_command_is_refused(tmp_path):
    (tmp_path / 'a.txt').write_text('words ' * 99)
    config = config_of('fig4')
    config.data.source = f'text:{tmp_path}'
    spec = build(config).evals['headscale']
    check_unchanged(spec)
    (tmp_path / 'b.txt').write_text('others')
    with pytest.raises(ValueError, match='have changed since this command began: put them back'):
        check_unchanged(spec)


def test_figures_share_headscale_at_four_times():
    ids = {
        identifier(build(config_of(name)).evals['headscale']) for name in ('fig4', 'fig5', 'fig10')
    }
    assert len(ids) == 1


def test_lengths_follow_the_training_length():
    config = config_of('fig1')
    config.train.length = 32
    experiment = build(config)
    assert {spec.windows.length for spec in experiment.evals.values()} == {128}


def test_seeds_multiply_runs_and_names():
    experiment = build(config_of('fig_dynamic'))
    assert {f'base/seed{k}' for k in range(3)} <= set(experiment.evals)
    assert isinstance(experiment.evals['uniform/seed1'], LengthsSpec)
    assert len(experiment.evals['uniform/seed1'].grids) == 7
    assert len({identifier(experiment.evals[f'base/seed{k}']) for k in range(3)}) == 3


def test_every_figure_takes_several_seeds():
    config = config_of('fig4')
    alone = {name.removesuffix('/seed0'): spec for name, spec in build(config).evals.items()}
    config.seeds = (0, 1)
    evals = build(config).evals
    assert set(evals) == {f'{name}/seed{k}' for name in alone for k in range(2)}
    for name, spec in alone.items():
        assert identifier(evals[f'{name}/seed0']) == identifier(spec)
        assert identifier(evals[f'{name}/seed1']) != identifier(spec)
    config.evals['headscale'].times = 2.0
    with pytest.raises(ValueError, match=r'it is 128 by evals.headscale.times, 256 by evals.uni'):
        build(config)


def test_one_seed_alone_is_exported():
    config = config_of('fig1')
    config.exports = {'out': {'run': 'nope'}}
    assert len(build(config).exports) == 1
    config.seeds = (0, 1)
    with pytest.raises(ValueError, match=r'^seeds is \(0, 1\); one seed alone is exported'):
        build(config)


def test_training_goes_on_in_micro_batches_that_fit_and_a_given_number_is_pre_trainings():
    experiment = build(config_of('drope'))
    later = experiment.evals['drope_25/seed0'].run
    mesh = make_mesh(MeshConfig(), jax.devices()[:1])
    found = dataclasses.replace(experiment.compute, accumulate=None, shard_sequences=4)
    assert later.fine_tunes and later.train.batch_size == 32
    assert later.compute(found).micro_batches(32, mesh) == 8
    given = dataclasses.replace(found, accumulate=2)
    assert later.compute(given).micro_batches(32, mesh) == 8
    assert later.init.compute(given).micro_batches(32, mesh) == 2


def test_compute_does_not_change_identity(monkeypatch):
    monkeypatch.setattr(tracker, 'refusal', lambda project: '')  # its package may be missing
    one, other = config_of('fig4'), config_of('fig4')
    other.compute.checkpoint_every = 7
    other.compute.threads = 3
    other.compute.monitor, other.compute.wandb = 5, 'mine'
    other.model.remat = 'full'
    for name, spec in build(one).evals.items():
        assert identifier(spec) == identifier(build(other).evals[name])


@pytest.mark.parametrize(
    ('field', 'value', 'message'),
    [
        ('model.heads', 5, 'model.width'),
        ('model.vocab_size', 300.5, r'model.vocab_size is 300.5; it must be a whole number'),
        ('model.head_dim', 16.5, r'model.head_dim is 16.5; it must be a whole number'),
        ('model.pattern', ((1, 2),), r'model.pattern\[0\] is .*; it takes named values'),
        ('train.keep', (None,), 'train.keep is None; a share of the training steps'),
        ('train.length', 0, 'train.length'),
        ('train.learning_rate', 0.0, 'learning_rate'),
        ('search.times', ('x',), r"search.times is 'x'; it must be a number"),
        ('search.times', (1e300,), r'search.times is 1e\+300: more than 2147483647 tokens'),
        ('grid.low', 0.0, 'grid.low'),
        ('evaluation.windows', 0, 'evaluation.windows'),
        ('compute.accumulate', -1, 'compute.accumulate'),
        ('data.source', 'nosuch:thing', 'nosuch'),
        ('seeds', (), 'seeds'),
        ('seeds', (1, 2**32 + 1), r'^seeds is \(1, 4294967297\); accepted: whole numbers from 0'),
        ('figure.kind', 'pie', 'figure.kind'),
    ],
)
def test_bad_fields_are_named(field, value, message):
    config = config_of('fig3')
    if field == 'search.times':
        del config.runs['headscale_2x'].search['times']
    *sections, last = field.split('.')
    section = config
    for name in sections:
        section = section[name]
    with config.ignore_type():
        section[last] = value
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        build(config, [field])


ROPE = {'kind': 'rope'}
LATER_HEADS = {'position': {'kind': 'split', 'local': ROPE}, 'lam_layers': 'nope'}


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'window': 0}, r'window is 0; accepted: 1 to 2\*\*30, or None for all keys'),
        (
            {'law': {'kind': 'log_floor', 'coefficient': 1, 'first': 3}},
            r'law\.first is 3; accepted: 0, 1',
        ),
        ({'heads': 5}, None),
        (
            {'position': {'kind': 'split', 'local': ROPE | {'dims': 5}}},
            r'position\.local\.dims is 5; accepted: an even number',
        ),
        (
            {'pattern': ({}, {'windows': 4})},
            r'pattern\[1\]\.windows is unknown; accepted: chunk, mixer',
        ),
        (
            {'pattern': ({}, {'position': ROPE | {'dims': 5}})},
            r'pattern\[1\]\.position\.dims is 5; accepted: an even number',
        ),
    ],
    ids=str,
)
def test_fields_of_a_runs_model_are_named_as_they_were_typed(changes: dict, message: str | None):
    config = config_of('fig1')
    if message is None:
        message = r'width is 64; it must be a multiple of runs\.nope\.model\.heads = 5, or give'
        where = r'model'
    else:
        where = r'runs\.nope\.model'
    with config.unlocked():
        config.runs.nope = {'model': changes}
    with pytest.raises(ValueError, match=rf'^{where}\.{message}'):
        build(config, [f'runs.nope.model.{name}' for name in changes])


def test_a_run_can_drop_its_positions_on_the_way():
    run = build(config_of('drope')).evals['dropped/seed0'].run
    assert run.model.position == NoPE() and run.train.steps == 2400
    assert run.earlier == Earlier(dataclasses.replace(run.model, position=RoPE()), 1800)
    assert run.slug().startswith('rope-dropped-nope-64-')


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'drop_at': 1.0}, r'drop_at is 1\.0; a share of the training steps lies in \(0, 1\)'),
        ({'drop_at': '0.5'}, r"drop_at is '0\.5'; accepted: a share of the steps"),
        ({'model': {'position': {'kind': 'none'}}}, r'drop_at is 0\.75; the model has no position'),
        ({'train': {'random_positions': 4.0}}, r'drop_at is 0\.75; RoPE, random .* or a range'),
        ({'init': 'rope', 'finetune': {}}, 'drop_at is unknown for fine-tuning'),
        (
            {'model': {**LATER_HEADS, 'temperature': 'adaptive'}},
            r"drop_at is 0\.75; lam_layers of the model is 'nope': .* 'adaptive', would begin in",
        ),
        (
            {'model': LATER_HEADS, 'lam': {'law': 'log_length'}},
            r"drop_at is 0\.75; lam_layers of the model is 'nope': its lambda and its temperature",
        ),
    ],
)
def test_drops_that_cannot_be_are_named(changes: dict, message: str):
    config = config_of('drope')
    entry = {'init': None, 'model': {'position': ROPE}, 'drop_at': 0.75}
    if 'finetune' in changes:
        del entry['model']
    config.runs.dropped = entry | changes
    with pytest.raises(ValueError, match=rf'^runs\.dropped\.{message}'):
        build(config)


def test_an_entropy_penalty_needs_heads_without_position() -> None:
    changes: dict = {'train': {'entropy_penalty': 0.1}, 'init': None}
    run = {**changes, 'model': {'position': ROPE}}
    message = r'entropy_penalty is 0\.1; it is of heads without position, and the model has RoPE'
    for more in ({}, {'drop_at': 0.75}):
        config = config_of('fig1')
        config.runs.rope = {**run, **more}
        with pytest.raises(ValueError, match=message):
            build(config)
    config = config_of('fig1')
    config.runs.nope = changes
    made = build(config).evals['nope'].run
    assert made.train.optimizer.entropy_penalty == 0.1
    config = task_configs.config(train={'length': 20, 'entropy_penalty': 0.1})
    with pytest.raises(ValueError, match=r'entropy_penalty is 0\.1; rows of a task are padded'):
        build(config)


@pytest.mark.parametrize(
    'changes',
    [
        {'model': LATER_HEADS},
        {'model': {**LATER_HEADS, 'lam_layers': 'all', 'temperature': 'adaptive'}},
        {'model': {'position': ROPE, 'temperature': 'adaptive'}},
    ],
    ids=['neither', 'all', 'whole'],
)
def test_a_drop_that_moves_neither_lambda_nor_the_temperature_is_accepted(changes: dict):
    config = config_of('drope')
    config.runs.dropped = {'init': None, 'drop_at': 0.75, **changes}
    assert build(config).evals['dropped/seed0'].run.earlier.steps == 1800


def test_earlier_steps_than_a_drop_are_not_measured():
    config = config_of('drope')
    config.evals['dropped/'] = {'kind': 'positions', 'run': 'dropped', 'step_share': 0.2}
    with pytest.raises(
        ValueError, match=r'step_share is 0\.2; the run drops its position encoding'
    ):
        build(config)


def test_random_positions_are_below_a_multiple_of_the_length():
    config = config_of('encodings')
    config.runs.rope = {'model': {'position': ROPE}, 'train': {'random_positions': 4.0}}
    run = build(config).evals['rope/seed0'].run
    assert run.model.position_range == 4 * run.train_length
    assert run.model.describe_position() == 'RoPE, random positions below 256'


@pytest.mark.parametrize(
    ('position', 'value', 'message'),
    [
        ({'kind': 'none'}, 4.0, 'is 4.0; the model has no position encoding'),
        ({'kind': 'alibi'}, 4.0, 'is 4.0; ALiBi does not follow given positions alone; accepted'),
        (ROPE, 0.5, 'is 0.5; 32 positions are fewer than the 64 tokens'),
        (ROPE, '4', "is '4'; accepted: a multiple of L, or None"),
    ],
)
def test_random_positions_that_cannot_be_are_named(position: dict, value: object, message: str):
    config = config_of('encodings')
    config.runs.rope = {'model': {'position': position}, 'train': {'random_positions': value}}
    with pytest.raises(ValueError, match=rf'^runs\.rope\.train\.random_positions {message}'):
        build(config)


def test_encodings_that_do_not_fit_random_positions_are_named_where_they_were_typed():
    config = config_of('encodings')
    config.runs.rope = {'model': {'position': ROPE}, 'train': {'random_positions': 4.0}}
    alibi = {'position': {'kind': 'alibi'}}
    rule = r"position is {'kind': 'alibi'}; the model's position_range is 256: ALiBi does not fol"
    with config.unlocked():
        config.runs.tuned = {'init': 'rope', 'model': alibi, 'finetune': {}}
        config.evals['tuned/'] = {'kind': 'lengths', 'run': 'tuned', 'times': (2.0,)}
    with pytest.raises(ValueError, match=rf'^runs\.tuned\.model\.{rule}'):
        build(config)
    with config.unlocked():
        del config.runs.tuned, config.evals['tuned/']
        config.evals['rope/'] = {'kind': 'lengths', 'run': 'rope', 'times': (2.0,), **alibi}
    with pytest.raises(ValueError, match=rf'^evals\.rope/\.{rule}'):
        build(config)


def test_random_positions_and_documents_apart_are_refused():
    config = config_of('encodings')
    config.data.documents = 'apart'
    config.runs.rope = {'model': {'position': ROPE}, 'train': {'random_positions': 4.0}}
    with pytest.raises(ValueError, match=r"random_positions is 4\.0; data\.documents is 'apart'"):
        build(config)


@pytest.mark.parametrize('dims', [5, 18])
def test_another_encoding_for_a_trained_model_is_named_as_it_was_typed(dims: int):
    position = {**ROPE, 'dims': dims}
    config = config_of('zero_shot')
    name = next(name for name, entry in config.evals.items() if 'position' in entry)
    config.evals[name] = config.evals[name].to_dict() | {'position': position}
    with pytest.raises(
        ValueError, match=rf'^evals\.{name}\.position\.dims is {dims}; accepted: an'
    ):
        build(config)
    config = config_of('finetuned')
    name = next(name for name, entry in config.runs.items() if 'finetune' in entry)
    config.runs[name] = config.runs[name].to_dict() | {'model': {'position': position}}
    with pytest.raises(ValueError, match=rf'^runs\.{name}\.model\.position\.dims is {dims}; acc'):
        build(config)


def with_eval(position, **model):
    """fig1 with the losses of its NoPE model, changed, under another encoding."""
    config = config_of('fig1')
    config.runs.changed = {'model': model} if model else {}
    config.evals.changed = {'run': 'changed', 'times': 2.0, 'position': position}
    return config


def test_an_encoding_that_is_no_section_is_named():
    with pytest.raises(ValueError, match=r'^evals\.changed\.position is .*it takes named values'):
        build(with_eval('none'))


def test_what_rope_layers_differ_in_is_given_for_all():
    """Layers of two bases, as of Gemma 3: a scaling alone would lose one of them."""
    pattern = tuple({'position': {'kind': 'rope', 'base': base}} for base in (1e4, 1e6))
    scaling = {'kind': 'rope', 'scaling': {'kind': 'linear', 'factor': 2.0}}
    with pytest.raises(
        ValueError, match=r'^evals\.changed\.position leaves out base, in which .*1000'
    ):
        build(with_eval(scaling, pattern=pattern))
    found = build(with_eval(scaling | {'base': 1e6}, pattern=pattern)).evals['changed']
    assert {kind.position.base for kind in found.model.kinds} == {1e6}


def test_lambda_acts_on_no_other_heads_than_it_was_searched_for_or_trained_with():
    """With `position` every layer is without one, where `lam_layers` says 'nope'."""
    pattern = ({'position': ROPE}, {'position': {'kind': 'none'}})
    tuned = {'model': {'position': {'kind': 'none'}}, 'finetune': {'times': (1.0,)}}
    search = {'init': 'changed', 'search': {'times': (2.0,), 'start': 1.5}}
    moved = r"lambda would act in other heads than before, since lam_layers is 'nope'"

    config = with_eval({'kind': 'none'}, pattern=pattern, lam_layers='nope')
    config.runs.searched = search
    config.runs.tuned = {'init': 'changed', **tuned}
    config.evals.changed.run = 'tuned'
    build(config)
    config.runs.tuned.init = 'searched'
    with pytest.raises(ValueError, match=rf'^runs\.tuned\.model\.position .*{moved}'):
        build(config)
    config.evals.changed.run = 'changed'
    build(config)
    config.evals.changed.run = 'searched'
    with pytest.raises(ValueError, match=rf'^evals\.changed\.position .*{moved}'):
        build(config)

    config = with_eval({'kind': 'none'}, pattern=pattern, lam_layers='nope')
    config.runs.changed.lam = {'law': 'scalable_softmax'}
    with pytest.raises(ValueError, match=rf'^evals\.changed\.position .*{moved}'):
        build(config)


def test_a_law_of_heads_without_positions_moves_to_no_other_heads():
    pattern = ({'position': ROPE}, {'position': {'kind': 'none'}})
    law = {'kind': 'log_floor', 'coefficient': 0.1, 'heads': 'nope'}
    config = with_eval({'kind': 'none'}, pattern=pattern, law=law)
    moved = "the model's law acts in heads without a position encoding, 'nope', and these would be "
    with pytest.raises(ValueError, match=rf'^evals\.changed\.position .*{moved}others$'):
        build(config)
    del config.evals.changed.position
    build(config)
    config.runs.changed.drop_at = 0.75
    with pytest.raises(ValueError, match=rf'^runs\.changed\.drop_at .*{moved}others after the'):
        build(config)


def test_the_share_of_steps_that_warm_up_is_named():
    config = config_of('finetuned')
    name = next(name for name, entry in config.runs.items() if 'finetune' in entry)
    config.runs[name].finetune.warmup_share = 1.0
    with pytest.raises(ValueError, match=rf'^runs\.{name}\.finetune\.warmup_share is '):
        build(config)


@pytest.mark.parametrize(('name', 'path', 'value', 'message'), [
    ('fig5', 'figure.layers', (9,), r"'fig5': layers must lie in 0\.\.3, got 9"),
    ('fig3', 'figure.layers', (0, -1), r"'fig3': layers must lie in 0\.\.3, got -1"),
    ('fig7', 'evals.late.times', 1.0, r"'late.*' has windows of 64 tokens; it needs positions"),
    ('fig1', 'evals.nope.times', 0.5, r'is 32|32 tokens|compares records of one length'),
])  # fmt: skip
def test_a_figure_that_its_records_cannot_bear_is_refused_before_any(name, path, value, message):
    config = config_of(name)
    *outer, last = path.split('.')
    section = config
    for part in outer:
        section = section[part]
    with section.unlocked():
        section[last] = value
    with pytest.raises(ValueError, match=message):
        build(config)


def test_a_stride_is_shorter_than_every_window():
    config = config_of('table2')
    config.perplexity.stride = 64
    with pytest.raises(
        ValueError, match=r'perplexity\.stride is 64; windows of 64 tokens are to be'
    ):
        build(config)
    config = config_of('table2')
    for entry in config.evals.values():
        if entry.get('kind') == 'perplexity':
            entry.times = (0.1,)
    with pytest.raises(
        ValueError, match=r'\.times is \(0\.1,\); windows of 6 tokens .* stride, 8, a'
    ):
        build(config)


@pytest.mark.parametrize(
    ('field', 'message'),
    [
        ('runs.nope.init', r"^runs\.nope\.init is ''; accepted: a run, hf:DIR, or None"),
        ('search.start_from', r"^search\.start_from is ''; accepted: a grid .*, or None"),
        ('model.attention', r"^model\.attention is ''; accepted: reference, .*, or None"),
        ('data.tokenizer', r'^data\.tokenizer is empty'),
    ],
)
def test_an_empty_name_is_no_choice(field: str, message: str):
    config = config_of('fig3')
    del config.runs['headscale_2x'].search['start_from']
    config.update_from_flattened_dict({field: ''})
    with pytest.raises(ValueError, match=message):
        build(config)


def test_a_section_or_field_that_a_config_has_not_is_named():
    config = config_of('fig1')
    del config.evaluation.cut
    with pytest.raises(ValueError, match=r'^evaluation\.cut is missing$'):
        build(config)
    del config.seeds
    with pytest.raises(ValueError, match=r'^seeds is missing; a config has name, seeds, '):
        build(config)


def test_bound_above_the_start_is_refused():
    config = config_of('fig3')
    config.runs['headscale_2x'].search = {'start': 1.2, 'start_from': None, 'bound': 1.5}
    run = r'runs\.headscale_2x\.search'
    with pytest.raises(ValueError, match=rf'{run}\.start is 1\.2; it is below {run}\.bound, 1\.5'):
        build(config)


@pytest.mark.parametrize(('field', 'value'), [
    ('bound', 'low'), ('times', ()), ('warmup_steps', 'many'), ('data_seed', -1),
])  # fmt: skip
def test_a_value_of_another_kind_is_named_by_its_field(field: str, value: object):
    config = config_of('fig3')
    config.runs['headscale_2x'].search = {'start': 1.2, 'start_from': None, field: value}
    with pytest.raises(ValueError, match=rf'^runs\.headscale_2x\.search\.{field} is '):
        build(config)


def test_bound_above_a_whole_grid_of_starts_is_refused():
    config = config_of('fig4')
    config.search.bound = config.grid.high
    build(config)
    config.search.bound = config.grid.high + 0.5
    with pytest.raises(ValueError, match=r'search\.bound is 2\.5; it is above every multiplier'):
        build(config)


def test_missing_run_and_missing_eval_are_named():
    config = config_of('fig1')
    del config.runs['rope']
    with pytest.raises(ValueError, match=r"evals\.rope\.run names 'rope'"):
        build(config)
    config = config_of('fig1')
    del config.evals['rope_ntk']
    with pytest.raises(ValueError, match="'rope_ntk', which is missing"):
        build(config)
    config.evals.rope_ntk = {'run': 'nope', 'kind': 'lengths', 'times': (1.0, 2.0)}
    message = r"^figure \(\w+\) needs evals\.rope_ntk of kind 'positions', it is 'lengths'"
    with pytest.raises(ValueError, match=message):
        build(config)


def test_a_search_may_act_on_other_heads_than_its_model():
    config = config_of('split')
    runs = {name: build(config).evals[f'{name}/seed0'].run for name in config.runs}
    base, own, everywhere = (runs[f'half_forget{end}'] for end in ('', '_log', '_log_all'))
    assert own.init == everywhere.init == base
    assert (own.model.lam_layers, everywhere.model.lam_layers) == ('nope', 'all')
    config.runs.half_forget_log_all.model.lam_layers = 'local'
    where = r'runs\.half_forget_log_all\.model\.lam_layers'
    with pytest.raises(ValueError, match=rf"^{where} is 'local'; accepted: all, nope"):
        build(config)


def test_a_later_run_reads_bos_as_the_model_that_it_starts_from() -> None:
    config = config_of('fig4')
    (search,) = [name for name, run in config.runs.items() if run.get('init')]
    base = config.runs[search].init
    with config.unlocked():
        config.runs[base].data = {'bos': True}
    experiment = build(config)
    assert {spec.run.data.bos for spec in experiment.evals.values()} == {True}
    settings = {k: v for k, v in experiment.settings.items() if k.endswith('data.bos')}
    assert settings == {f'runs.{base}.data.bos': True}
    with config.unlocked():
        config.runs[search].data = {'bos': False}
    found = {spec.run.data.bos for spec in build(config).evals.values()}
    assert found == {True, False}
