"""Models of other libraries in configs: what is taken from their directory, and what is refused."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import shutil
from typing import Any

import pytest
from ml_collections import ConfigDict

from configs.checkpoints import checkpoint, extend
from configs.encodings import finetuned, learned_later, zero_shot
from configs.first_paper import fig4
from experiments.build import build
from experiments.evaluations.multiplier_grid import GridSpec
from experiments.runs import OWN, ImportSpec, RunSpec
from experiments.specs import identifier
from nope.interop import Described, Export, save
from nope.model import LayerKind, ModelConfig
from nope.positions import DynamicNTK, Learned, Linear, NoPE, RoPE
from tests import tiny

SMALL = ModelConfig(
    layers=4, width=16, heads=2, kv_heads=1, mlp_width=24, vocab_size=258, head_dim=8
)
MIXED = (*(LayerKind(RoPE()),) * 3, LayerKind(NoPE()))


@pytest.fixture(scope='module')
def directories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pathlib.Path]:
    """Random models of several kinds, as Hugging Face directories with a byte tokenizer."""
    folder = tmp_path_factory.mktemp('models')
    models = {
        'nope': SMALL,
        'rope': dataclasses.replace(SMALL, position=RoPE()),
        'mixed': dataclasses.replace(SMALL, pattern=MIXED),
    }
    for name, model in models.items():
        described = Described(model, 32, bos=257, eos=256)
        save(folder / name, tiny.varied_lam(model), described, tokenizer='bytes')
    return {name: folder / name for name in models}


def extending(directory: pathlib.Path, form: str = 'constant', **changes: Any) -> ConfigDict:
    config = extend.get_config(form)
    config.init, config.length = f'hf:{directory}', 128
    config.update_from_flattened_dict(changes)
    return config


def test_a_checkpoint_brings_its_model_its_length_and_its_tokenizer(directories) -> None:
    before = build(extending(directories['nope'])).evals['before'].run
    assert isinstance(before, ImportSpec)
    assert before.model == dataclasses.replace(SMALL, remat='full', unroll=1)
    assert before.train_length == 32 and before.origin == 'nope'
    assert before.data.tokenizer == str(directories['nope'] / 'tokenizer.json')


def test_extending_searches_on_the_checkpoint_at_the_target_length(directories) -> None:
    experiment = build(extending(directories['nope']))
    after = experiment.evals['after'].run
    assert isinstance(after, RunSpec) and after.searches
    assert after.init == experiment.evals['before'].run
    assert after.train.lengths == (128,) and isinstance(after.lam_start, GridSpec)
    assert {spec.windows.length for spec in experiment.evals.values()} == {128}
    (export,) = experiment.exports
    assert export.run == after and export.export.length == 128 and export.export.lam == 'fold'
    assert export.tokenizer == str(directories['nope'])


def test_every_end_of_a_text_is_exported(tmp_path: pathlib.Path) -> None:
    path = tmp_path / 'nope'
    save(path, tiny.variables(SMALL), Described(SMALL, 32, bos=257, eos=256), tokenizer='bytes')
    config = json.loads((path / 'config.json').read_text())
    (path / 'config.json').write_text(json.dumps(config | {'eos_token_id': [256, 65]}))
    (export,) = build(extending(path)).exports
    assert (export.described.eos, export.described.ends) == (256, (65,))


def test_a_length_aware_lambda_is_searched_up_to_the_target(directories) -> None:
    experiment = build(extending(directories['nope'], 'log_length'))
    after = experiment.evals['after'].run
    assert isinstance(after, RunSpec) and after.train.lengths == (48, 64, 96, 128)
    lengths = {export.name: export.export.length for export in experiment.exports}
    assert lengths == {'extended': 128, 'extended_half': 64, 'extended_quarter': 32}


def test_of_a_mixed_model_the_layers_without_positions_are_scaled(directories) -> None:
    def scaled(name: str, **changes: Any) -> str:
        return build(extending(directories[name], **changes)).evals['before'].run.model.lam_layers

    assert scaled('mixed') == 'nope'
    assert scaled('rope') == scaled('nope') == 'all'
    assert scaled('mixed', **{'model.lam_layers': 'all'}) == 'all'


def test_multipliers_of_its_own_act_in_all_heads_and_are_not_moved(directories, tmp_path) -> None:
    model = dataclasses.replace(SMALL, pattern=MIXED)
    scaled, described = Export(lam='scale_param'), Described(model, 32, bos=257, eos=256)
    path, variables = tmp_path / 'scaled', tiny.varied_lam(model)
    save(path, variables, described, export=scaled, tokenizer='bytes')
    config = checkpoint.get_config('nothing,loss')
    config.init = f'hf:{path}'
    (loss,) = build(config).evals.values()
    run = loss.run
    assert run.model.lam_layers == 'all' and run.searched
    assert not build(extending(directories['mixed'])).evals['before'].run.searched
    assert identifier(run) == identifier(dataclasses.replace(run, searched=False))
    config.runs.tuned = {'init': 'nothing', 'finetune': {'times': (1.0,)}}
    build(config)
    config.runs.searched = {'init': 'tuned', 'search': {'times': (4.0,)}}
    config.evals.searched = {'kind': 'lengths', 'run': 'searched', 'times': (1.0,)}
    with pytest.raises(ValueError, match='its weights were tuned under a searched lambda'):
        build(config)
    config.runs.searched.init = 'nothing'
    with pytest.raises(ValueError, match=f'{OWN}; name the directory that they were searched on'):
        build(config)
    with pytest.raises(ValueError, match=OWN):
        build(extending(path))
    with pytest.raises(ValueError, match=r"lam_layers is 'nope'; accepted: 'all'; the model in "):
        build(extending(path, **{'model.lam_layers': 'nope'}))


def test_an_export_is_of_the_tokenizer_files_too(directories, tmp_path) -> None:
    path = shutil.copytree(directories['nope'], tmp_path / 'nope')

    def name() -> str:
        return identifier(build(extending(path)).exports[0])

    first = name()
    assert first == name()
    (path / 'chat_template.jinja').write_text('{{ messages[0].content }}')
    assert name() != first


def test_a_figure_takes_a_checkpoint_in_place_of_its_base(directories) -> None:
    config = fig4.get_config('quick')
    config.runs.nope.init = f'hf:{directories["nope"]}'
    with config.train.ignore_type():
        config.train.length = None
    experiment = build(config)
    assert all(spec.run.train_length == 32 for spec in experiment.evals.values())
    assert isinstance(experiment.evals['uniform'].run, ImportSpec)
    searched = experiment.evals['headscale'].run
    assert isinstance(searched, RunSpec) and isinstance(searched.init, ImportSpec)


def test_another_scaling_keeps_the_base_of_the_checkpoint(tmp_path: pathlib.Path) -> None:
    own = RoPE(base=500_000.0)
    model = dataclasses.replace(SMALL, position=own)
    save(tmp_path / 'model', tiny.variables(model), Described(model, 32), tokenizer='bytes')
    config = zero_shot.get_config('quick')
    config.runs.rope.init = f'hf:{tmp_path / "model"}'
    evals = build(config).evals
    assert evals['rope/seed0'].run.model.position == own
    scaled = evals['dynamic_ntk_2/seed0'].model.position
    assert scaled == dataclasses.replace(own, scaling=DynamicNTK(2.0, 64))
    trained = dataclasses.replace(model, position=dataclasses.replace(own, scaling=Linear(8.0)))
    save(tmp_path / 'scaled', tiny.variables(trained), Described(trained, 32), tokenizer='bytes')
    config.runs.rope.init = f'hf:{tmp_path / "scaled"}'
    with pytest.raises(ValueError, match=r'position\.scaling, RoPE, .* that the model was trained'):
        build(config)


def test_weights_are_not_read_with_an_encoding_that_they_were_not_made_for(
    directories, caplog: pytest.LogCaptureFixture
) -> None:
    config = zero_shot.get_config('quick')
    config.runs.alibi.init = f'hf:{directories["rope"]}'
    with pytest.raises(ValueError, match=r'runs\.alibi\.model\.position is ALiBi; .* has RoPE'):
        build(config)
    config = fig4.get_config('quick')
    config.runs.nope.init = f'hf:{directories["rope"]}'
    with caplog.at_level('WARNING'):
        assert build(config).evals['uniform'].run.model.position == RoPE()
    assert 'has RoPE' in caplog.text
    config.runs.nope.nope = True
    assert build(config).evals['uniform'].run.model.position == NoPE()


def test_a_model_without_positions_can_get_a_learned_table() -> None:
    evals = build(learned_later.get_config('quick')).evals
    alone, learned = (evals[f'{name}/seed0'].run for name in ('learned_alone', 'learned'))
    assert isinstance(alone, RunSpec) and isinstance(learned, RunSpec)
    assert alone.model == learned.model and alone.model.position == Learned(512)
    assert alone.init is not None and alone.init.model.position == NoPE()
    assert alone.train.optimizer.trains == 'position'
    assert alone.train == dataclasses.replace(
        learned.train, optimizer=dataclasses.replace(learned.train.optimizer, trains='position')
    )


@pytest.mark.parametrize(
    ('entry', 'message'),
    [
        (
            {'init': 'nope', 'finetune': {'trains': 'lam'}},
            r"finetune\.trains is 'lam'; accepted: position, or None for all parameters",
        ),
        (
            {'init': 'nope', 'finetune': {'trains': 'position'}},
            r"finetune\.trains is 'position'; none positions have no learned table to train",
        ),
        (
            {'init': 'rope', 'model': {'position': {'kind': 'learned'}}, 'finetune': {}},
            r'model\.position is .*learned.*; it and the positions trained with, RoPE, differ in',
        ),
        (
            {'init': 'nope', 'model': {'position': {'kind': 'kerple'}}, 'finetune': {}},
            r'model\.position is .*kerple.* can get one of the kinds learned and t5',
        ),
        (
            {'init': 'learned', 'model': {'position': {'kind': 'none'}}, 'finetune': {}},
            r'model\.position is .*none.*; it and the positions trained with, learned, differ in',
        ),
    ],
)
def test_tables_that_a_run_cannot_get_are_named(entry: dict, message: str) -> None:
    config = learned_later.get_config('quick')
    config.runs.nope_more = entry
    with pytest.raises(ValueError, match=rf'^runs\.nope_more\.{message}'):
        build(config)


def test_fine_tuning_changes_the_encoding_and_all_weights() -> None:
    run = build(finetuned.get_config('quick')).evals['pi_raw_4x/seed0'].run
    assert isinstance(run, RunSpec) and run.fine_tunes and not run.searches
    assert run.model.position == RoPE(scaling=Linear(4.0))
    assert run.init is not None and run.init.model.position == RoPE()
    assert run.train.lengths == (256,) and run.train.steps == 1000
    optimizer = run.train.optimizer
    assert optimizer.trains == 'params' and optimizer.warmup_steps == 100
    assert optimizer.weight_decay == 0


def test_the_identity_is_that_of_the_weights_and_not_of_the_place(
    directories, tmp_path: pathlib.Path
) -> None:
    shutil.copytree(directories['nope'], tmp_path / 'moved')
    found = [
        build(extending(path)).evals['before'] for path in (directories['nope'], tmp_path / 'moved')
    ]
    assert identifier(found[0]) == identifier(found[1])


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'init': None}, r'runs\.base\.init is None; accepted is hf:DIR'),
        ({'init': 'later'}, r'only with search, finetune, lam, without or model\.temperature\)'),
        ({'init': 'checkpoint'}, r"runs\.base\.init is 'checkpoint'; accepted is hf:DIR"),
        ({'init': 'hf:'}, "init is 'hf:'"),
        ({'init': 'hf:/nowhere'}, '/nowhere'),
        ({'length': 0}, r'target is 0; .* \(it is what --config\.length gives\)'),
        ({'length': 32}, r'target is 32; it must be beyond the training length, 32'),
    ],
)
def test_bad_input_names_the_field(directories, changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(extending(directories['nope'], **changes))


@pytest.mark.parametrize(
    ('entry', 'message'),
    [
        (
            {'init': 'hf:DIR', 'model': {'width': 32}},
            r'runs\.nope\.model\.width: an imported model',
        ),
        ({'finetune': {'steps': 1}}, r'runs\.nope\.finetune needs runs\.nope\.init'),
        ({'init': 'hf:DIR', 'finetune': {}, 'search': {}}, 'both search and finetune'),
        (
            {'init': 'hf:DIR', 'finetune': {}, 'train': {'steps': 1}},
            r'runs\.nope\.train is unknown for fine-tuning',
        ),
        ({'init': 'nope'}, r"runs\.nope\.init is 'nope'; a run that starts from it takes one"),
        ({'init': 'hf:DIR', 'nope': 'no'}, r"runs\.nope\.nope is 'no'; accepted: True, False"),
        ({'init': 'hf:DIR', 'own_tokenizer': 1}, r'runs\.nope\.own_tokenizer is 1; accepted: True'),
    ],
)
def test_a_run_is_one_thing(directories, entry: dict, message: str) -> None:
    entry = {
        k: v.replace('DIR', str(directories['nope'])) if k == 'init' else v
        for k, v in entry.items()
    }
    config = fig4.get_config('quick')
    config.runs = {**config.runs.to_dict(), 'nope': entry}
    with pytest.raises(ValueError, match=message):
        build(config)


def test_a_tokenizer_with_more_tokens_than_the_model(tmp_path: pathlib.Path) -> None:
    small = dataclasses.replace(SMALL, vocab_size=100)
    save(tmp_path / 'small', tiny.variables(small), Described(small, 32), tokenizer='bytes')
    with pytest.raises(
        ValueError, match=r'data\.tokenizer has 258 tokens; the model in .* has 100'
    ):
        build(extending(tmp_path / 'small'))


@pytest.mark.parametrize(('field', 'value'), [('width', 2), ('norm', 'layer')])
def test_a_shape_that_was_typed_beside_a_checkpoint_is_refused(
    directories, field: str, value: object
) -> None:
    """The checkpoint has its own: the typed one would be ignored without a word."""
    config = fig4.get_config('quick')
    config.runs.nope.init = f'hf:{directories["nope"]}'
    with config.train.ignore_type():
        config.train.length = None
    config.model[field] = value
    message = rf'^model\.{field} is set, but nothing in this config reads it'
    with pytest.raises(ValueError, match=message):
        build(config, ['runs.nope.init', f'model.{field}'])
