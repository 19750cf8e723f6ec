"""The config of recipes for a checkpoint: runs, exports, what is refused, and a whole command."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from ml_collections import ConfigDict

from configs.checkpoints import checkpoint, whole_text
from experiments.build import build
from experiments.runs import ImportSpec, RunSpec
from experiments.runs.directories import Opened
from nope import interop
from nope.interop import Described, save
from nope.model import LayerKind, ModelConfig
from nope.positions import NoPE, RoPE, Split
from tests import tiny
from tests.experiments import run_test

ROOT = pathlib.Path(__file__).parents[2]
L = 32
SMALL = ModelConfig(
    layers=4, width=16, heads=2, kv_heads=2, mlp_width=24, vocab_size=258, head_dim=8,
    position=RoPE(base=500_000.0),
)  # fmt: skip
# As Gemma 3: windows in some layers.
WINDOWED = (LayerKind(RoPE(), window=8), LayerKind(RoPE()))


@pytest.fixture(scope='module')
def directories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pathlib.Path]:
    folder = tmp_path_factory.mktemp('models')
    models = {
        'rope': SMALL,
        'windowed': dataclasses.replace(SMALL, position=NoPE(), pattern=WINDOWED),
    }
    for name, model in models.items():
        save(folder / name, tiny.variables(model), Described(model, L, 257, 256), tokenizer='bytes')
    return {name: folder / name for name in models}


def asked(directory: pathlib.Path, argument: str, **changes: Any) -> ConfigDict:
    config = checkpoint.get_config(argument)
    config.init = f'hf:{directory}'
    config.update_from_flattened_dict(changes)
    return config


def run_of(directory: pathlib.Path, recipe: str, **changes: Any) -> Any:
    (spec,) = build(asked(directory, f'{recipe},loss', **changes)).evals.values()
    return spec.run


def drawn(
    directory: pathlib.Path, folder: pathlib.Path, recipes: str, options: Mapping[str, Any]
) -> pathlib.Path:
    """The figure of recipes in the work folder `folder`/work, by the command, on `folder`/text."""
    (folder / 'text').mkdir()
    run_test.write_texts(folder / 'text')
    given = {'init': f'hf:{directory}', 'data.source': f'text:{folder / "text"}', **options}
    done = subprocess.run(
        [sys.executable, '-m', 'experiments.run',
         f'--config=configs/checkpoints/checkpoint.py:{recipes}', f'--workdir={folder / "work"}',
         *(f'--config.{name}={value}' for name, value in given.items())],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (figure,) = (folder / 'work/figures').iterdir()
    return figure


def test_a_recipe_changes_the_encoding_trains_at_l_and_searches(directories) -> None:
    yarn = run_of(directories['rope'], 'yarn_4')
    assert isinstance(yarn, ImportSpec) and yarn.model.position.base == 500_000.0
    assert 'yarn' in yarn.model.position.describe().lower()
    found = run_of(directories['rope'], 'dropped+short+log', **{'short_steps': 7})
    assert isinstance(found, RunSpec) and found.searches
    assert found.train.lengths == (48, 64, 96, 128)
    tuned = found.init
    assert tuned.fine_tunes and tuned.train.lengths == (L,) and tuned.train.steps == 7
    assert tuned.model.position == NoPE() and isinstance(tuned.init, ImportSpec)
    one = run_of(directories['rope'], 'nothing+log_one')
    assert one.train.optimizer.tied and not found.train.optimizer.tied
    headscale = run_of(directories['rope'], 'yarn_4+headscale')
    assert headscale.train.lengths == (4 * L,) and headscale.init == yarn


def test_global_drops_the_rotation_of_layers_without_a_window(directories, tmp_path) -> None:
    found = run_of(directories['windowed'], 'global+short+log')
    assert [kind.position for kind in found.model.kinds] == [RoPE(), NoPE()]
    assert [kind.window for kind in found.model.kinds] == [8, None]
    assert found.model.lam_layers == 'nope'  # the others have positions
    again = dataclasses.replace(SMALL, position=NoPE(), pattern=(WINDOWED[0], LayerKind(NoPE())))
    given = Described(again, L, 257, 256)
    save(tmp_path / 'split', tiny.variables(again), given, tokenizer='bytes')
    every = dataclasses.replace(SMALL, position=RoPE(), window=8)
    given = Described(every, L, 257, 256)
    save(tmp_path / 'every', tiny.variables(every), given, tokenizer='bytes')
    for path in (directories['rope'], tmp_path / 'split', tmp_path / 'every'):  # nothing to drop
        with pytest.raises(ValueError, match=r"runs\.global\.nope is 'global'; .* with a window"):
            run_of(path, 'global')


def test_yarn_is_for_the_layers_that_see_all_keys_where_these_turn_apart(
    directories, monkeypatch
) -> None:
    """As in Gemma 3."""
    apart = (LayerKind(RoPE(), window=8), LayerKind(RoPE(base=1e6)))
    model = dataclasses.replace(SMALL, position=NoPE(), pattern=apart)
    opened = Opened.of(str(directories['windowed']))
    described = opened.described._replace(model=model)
    monkeypatch.setattr(Opened, 'of', lambda path: opened._replace(described=described))
    changed = described._replace(model=None)

    def describe(directory: Any, *, position: Any, limited: bool) -> Any:
        return changed._replace(model=model.with_position(position, limited=limited))

    monkeypatch.setattr(interop, 'describe', describe)
    near, far = (kind.position for kind in run_of(directories['windowed'], 'yarn_4').model.kinds)
    assert near == RoPE() and far.base == 1e6 and 'YaRN x4' in far.describe()


def test_a_split_keeps_the_base_of_the_checkpoint_in_its_windows(directories) -> None:
    experiment = build(asked(directories['rope'], 'split+short,loss', **{'split_window': 8}))
    run = experiment.evals['split_short_loss'].run
    expected = Split(RoPE(base=500_000.0), window=8)
    assert run.model.position == expected and run.order_from == experiment.evals['near']
    changes = {'split_window': 8, 'grid.windows': 3}
    searched = build(asked(directories['rope'], 'split+short+log,loss', **changes)).evals
    found = searched['split_short_log_loss'].run.model
    np.testing.assert_array_equal(found.heads_with_lam, [[False, True]] * 4)
    assert searched['near'].windows.count == 3


def test_a_recipe_is_exported_for_the_longest_length_of_its_search(directories) -> None:
    recipes = 'nothing,yarn_4,nothing+log,nothing+headscale,dropped+short,loss'
    exports = build(asked(directories['rope'], recipes)).exports
    found = {export.name: export.export.length for export in exports}
    assert found == {
        'yarn_4': None, 'nothing_log': 4 * L, 'nothing_headscale': 4 * L, 'dropped_short': L
    }  # fmt: skip


def test_longppl_reads_the_text_that_the_loss_is_of(directories, tmp_path) -> None:
    (tmp_path / 'text.jsonl').write_text('{"text": "a", "kind": "prose"}')
    changes = {'evaluation.split': 'validation', 'data.leave_out': (('kind', 'code'),)}
    changes['data.source'] = f'jsonl:{tmp_path / "text.jsonl"}'
    found = build(asked(directories['rope'], 'nothing,loss,longppl', **changes)).evals
    longppl, loss = found['nothing_longppl'], found['nothing_loss']
    assert longppl.corpus == loss.run.data and loss.run.data.sources[0].leave_out
    assert longppl.split == loss.windows.split == 'validation'


def test_an_export_that_no_directory_can_hold_is_left_out_by_name(directories, caplog) -> None:
    recipes = 'nothing,split+short,loss'
    assert not build(asked(directories['rope'], recipes, **{'split_window': 8})).exports
    assert 'exports.split_short.lam: ' in caplog.text and 'is left out' in caplog.text
    config = asked(directories['rope'], recipes, **{'split_window': 8})
    config.exports.split_short.optional = False
    with pytest.raises(ValueError):
        build(config)


@pytest.mark.parametrize(
    'recipe', ['nothing+long+short', 'split', 'split+log', 'yarn_x', 'log', 'nothing+headscale+log']
)
def test_what_is_no_recipe_is_refused_with_the_known_ones(recipe: str) -> None:
    with pytest.raises(ValueError, match=r'checkpoint: .* is no recipe; accepted: ENCODING\[\+TR'):
        checkpoint.get_config(f'{recipe},loss')


@pytest.mark.parametrize('argument', ['nothing,nothing,loss', 'yarn_4,yarn_4.0', 'loss,loss'])
def test_what_is_named_twice_is_refused(argument: str) -> None:
    with pytest.raises(ValueError, match='names something twice'):
        checkpoint.get_config(argument)


def test_figures_of_different_recipes_have_different_names() -> None:
    names = {checkpoint.get_config(a).name for a in ('', 'nothing,loss', 'nothing,yarn_4,loss')}
    assert len(names) == 3
    heads = {whole_text.get_config(a).name for a in ('', 'yarn_4', 'nothing,yarn_4')}
    assert len(heads) == 3
    with pytest.raises(ValueError, match="whole_text: 'loss' is no recipe"):
        whole_text.get_config('nothing,loss')


def test_windows_that_do_not_reach_beyond_l_are_refused_before_anything_runs(directories) -> None:
    with pytest.raises(ValueError, match='windows of 32 tokens; it needs positions beyond L = 32'):
        build(asked(directories['rope'], 'nothing,entropy', entropy_at=1.0))
    config = whole_text.get_config()
    config.init, config.length = f'hf:{directories["rope"]}', 16
    with pytest.raises(ValueError, match='windows of 16 tokens; accepted: from L = 32 on'):
        build(config)


def test_the_command_measures_draws_and_exports(directories, tmp_path: pathlib.Path) -> None:
    options = {
        'lengths': (1.0, 2.0),
        'searched': (2.0,),
        'law_searched': (1.5, 2.0),
        'entropy_at': 2.0,
        'search.steps': 2,
        'short_steps': 2,
        'evaluation.windows': 4,
    }
    recipes = 'nothing,yarn_2+headscale,dropped+short+log,loss,entropy'
    figure = drawn(directories['rope'], tmp_path, recipes, options)
    summary = json.loads((figure / 'summary.json').read_text())
    read = summary['claims'][0]['measured']
    assert list(read) == [
        'as it is', 'YaRN 2, HeadScale', 'rotation dropped, short training, log-length law'
    ]  # fmt: skip
    assert read['as it is']['cost_at_L_nats'] == 0
    assert np.isfinite([one['cost_at_L_nats'] for one in read.values()]).all()
    exported = sorted(
        path.name.rpartition('-')[0] for path in (tmp_path / 'work/exports').glob('[!.]*')
    )
    assert exported == ['dropped_short_log', 'yarn_2_headscale']
