"""The size `released`: published models in the place of pre-training."""

from __future__ import annotations

import pathlib
import shutil

import pytest
from ml_collections import ConfigDict

from configs.first_paper import fig1, fig4, fig7, fig8
from experiments import config_files
from experiments.build import build
from experiments.runs import ImportSpec, RunSpec, Source
from nope.interop import Described, Export, save
from nope.model import ModelConfig
from nope.positions import NoPE, RoPE
from tests import tiny
from tests.data.tokenizers_test import hugging_face_json
from tests.experiments.build_test import longbench_files

NAMES = ('rope', 'nope', 'headscale8k')
CONFIGS = (
    *('fig1', 'fig2', 'fig3', 'fig4', 'fig5', 'fig6', 'fig7', 'fig9', 'fig10'),
    *('fig_dynamic', 'one_search', 'finetuned', 'table1', 'table2', 'table3', 'table4'),
)
# As many layers as the published models, of which fig3 and fig5 name some; the config.json of the
# models without positions says RoPE too, as theirs does.
MODEL = ModelConfig(
    layers=22,
    width=16,
    heads=2,
    kv_heads=1,
    mlp_width=24,
    vocab_size=258,
    head_dim=8,
    position=RoPE(),
)


@pytest.fixture(scope='module')
def directories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pathlib.Path]:
    folder = tmp_path_factory.mktemp('released')
    described = Described(MODEL, 32, bos=257, eos=256)
    for name in NAMES:
        scaled = name == 'headscale8k'
        variables = tiny.varied_lam(MODEL) if scaled else tiny.variables(MODEL)
        export = Export(lam='scale_param') if scaled else Export()
        save(folder / name, variables, described, export=export, tokenizer='bytes')
    return {name: folder / name for name in NAMES}


def asked(name: str, directories: dict[str, pathlib.Path], *given: str) -> ConfigDict:
    parts = [f'{which}={directories[which]}' for which in given or NAMES]
    config = config_files.module(name).get_config(','.join(['released', *parts]))
    for corpus in config.get('corpora', {}):
        config.corpora[corpus] = {'source': 'stdlib'}
    if name == 'table1':
        pytest.importorskip('lm_eval')
        config.harness.files = 'hub'
    if name == 'table3':
        config.longbench.folder = str(longbench_files())
        config.longbench.update({'max_length': 20, 'beyond': True})
    return config


def origin(run: Source) -> ImportSpec:
    while not isinstance(run, ImportSpec):
        assert run.init is not None, f'{run.slug()} is pre-trained'
        run = run.init
    return run


@pytest.mark.parametrize('name', CONFIGS)
def test_every_model_comes_from_a_directory(name, directories) -> None:
    config = asked(name, directories)
    assert config.name == f'{name}_released'
    for spec in build(config).evals.values():
        model = origin(spec.run)
        positions = {kind.position for kind in model.model.kinds}
        assert positions == {RoPE() if model.origin == 'rope' else NoPE()}
        assert model.train_length == 32


def test_headscale_for_8k_takes_the_place_of_its_search(directories) -> None:
    given = build(asked('fig4', directories)).evals['headscale'].run
    assert isinstance(given, ImportSpec) and given.origin == 'headscale8k'
    searched = build(asked('fig4', directories, 'nope')).evals['headscale'].run
    assert isinstance(searched, RunSpec) and searched.searches
    assert searched.train.lengths == (128,) and searched.lam_start == 1.6
    assert origin(searched).origin == 'nope'


def test_what_is_measured_in_the_midst_of_training_is_left_out(directories) -> None:
    config = asked('fig7', directories, 'nope')
    assert list(config.evals) == ['late']
    assert [panel['record'] for panel in config.figure.panels] == ['late']
    assert list(fig7.get_config('paper').evals) == ['early', 'late']


def test_windows_and_tokens_are_the_paper_s(directories) -> None:
    released, paper = asked('fig1', directories), fig1.get_config('paper')
    assert released.evaluation == paper.evaluation and released.search == paper.search
    assert released.data.source == 'stdlib' and not released.data.mixture
    run = build(released).evals['nope'].run
    assert run.data.tokenizer in {str(path / 'tokenizer.json') for path in directories.values()}


def test_what_is_missing_is_asked_for_by_its_published_name(directories) -> None:
    message = r'rope=DIR, the directory of TinyLlama/.*step-50k-token-105B: missing.*nope=DIR'
    with pytest.raises(ValueError, match=message):
        asked('fig1', directories, 'nope')
    with pytest.raises(ValueError, match=r"size 'paper,mpt=x' is unknown"):
        fig4.get_config(f'released,nope={directories["nope"]},mpt=x')
    with pytest.raises(ValueError, match=r"size 'released' is unknown"):
        fig8.get_config('released')


def test_models_with_other_tokenizers_need_one_named(directories, tmp_path) -> None:
    other = tmp_path / 'rope'
    shutil.copytree(directories['rope'], other)
    (other / 'tokenizer.json').write_text(hugging_face_json(['<s>', '</s>']))
    with pytest.raises(ValueError, match=r'have different tokenizers; give data\.tokenizer'):
        build(asked('fig1', {**directories, 'rope': other}))
