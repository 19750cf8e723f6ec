"""Models in run folders come back as they were."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
import pytest

from nope.checkpoints.errors import CheckpointError
from nope.checkpoints.manager import Checkpoints
from nope.identity import plain
from nope.interop import Described, fingerprint, open_directory, save
from nope.interop.run_folder import BASE_MODEL, model_types, name_base_model, read_run, write_run
from nope.model import LayerKind, ModelConfig
from nope.model.lam import LogLength
from nope.positions import LongRoPE, NoPE, RoPE
from nope.runtime import files
from nope.runtime.files import read_json, write_json
from nope.runtime.sections import rebuild
from nope.variables import Variables, lam_of
from tests import tiny
from tests.positions import cases

MIXED = (LayerKind(RoPE(scaling=LongRoPE((1.0, 2.0), (3.0, 4.0), 16, 1.0)), 7), LayerKind(NoPE()))


@pytest.mark.parametrize(
    'config',
    [
        tiny.model(lam=LogLength(8), norm='layer', norm_bias=True),
        tiny.model(head_dim=4, pattern=MIXED),
        tiny.model(
            layers=3,
            token_width=4,
            pattern=(
                LayerKind(mlp_width=9),
                LayerKind(head_dim=4, kv_heads=1, values_from='keys'),
                LayerKind(head_dim=4, kv_heads=1, keys_from='earlier', values_from='keys'),
            ),
        ),
        *(tiny.model(position=position) for position in cases.ENCODINGS.values()),
    ],
    ids=lambda c: c.describe_position(),
)
def test_a_model_is_rebuilt_from_its_identity(config: ModelConfig) -> None:
    stored = dataclasses.replace(config, attention=None)
    assert rebuild(json.loads(json.dumps(plain(stored))), model_types()) == stored


def test_a_model_is_saved_as_a_run(tmp_path: pathlib.Path) -> None:
    config = tiny.model(attention=None, position=RoPE())
    variables = tiny.varied_lam(config)
    described = Described(config, 64, 'bfloat16', bos=0, eos=5, longest=128, ends=(3, 4), pad=2)
    files.unfinished(tmp_path / 'run').mkdir()  # as a killed call leaves it
    write_run(tmp_path / 'run', described, variables, {'path': 'somewhere'})
    found = read_run(tmp_path / 'run', tiny.mesh())
    assert [path.name for path in tmp_path.iterdir()] == ['run']
    assert found.described == described and found.spec['origin'] == {'path': 'somewhere'}
    jax.tree.map(np.testing.assert_array_equal, found.variables, variables)
    with pytest.raises(ValueError, match='is there already'):
        write_run(tmp_path / 'run', described, variables, {})

    spec = read_json(tmp_path / 'run' / 'spec.json')
    write_json(tmp_path / 'run' / 'spec.json', spec | {'model': {'type': 'Mamba'}})
    with pytest.raises(ValueError, match=r"describes no model we know: type is 'Mamba'"):
        read_run(tmp_path / 'run', tiny.mesh())
    (tmp_path / 'run' / 'spec.json').write_text('{"model"')
    with pytest.raises(ValueError, match=re.escape(str(tmp_path / 'run' / 'spec.json'))):
        read_run(tmp_path / 'run', tiny.mesh())


def test_a_run_that_dropped_its_positions_is_read_with_them_up_to_that_step(
    tmp_path: pathlib.Path,
) -> None:
    before = tiny.model(attention=None, position=RoPE())
    earlier = {'type': 'Earlier', 'model': plain(before), 'steps': 3}
    spec = {'type': 'RunSpec', 'model': plain(CONFIG), 'train_length': 16, 'earlier': earlier}
    write_json(tmp_path / 'spec.json', spec)
    with Checkpoints(tmp_path / 'checkpoints', spec, keep=3) as checkpoints:
        for step in (3, 4):
            checkpoints.save(step, {**tiny.variables(CONFIG), 'opt_state': {}}, {})
    write_json(tmp_path / 'done.json', {'steps': 4, 'seconds': 0})
    found = [read_run(tmp_path, tiny.mesh(), step).described.model for step in (3, 4, None)]
    assert found == [before, CONFIG, CONFIG]


CONFIG = tiny.model(attention=None)


def write_search(
    folder: pathlib.Path,
    base: pathlib.Path,
    init: Mapping[str, Any],
    variables: Variables,
    model: ModelConfig = CONFIG,
    **more: Any,
) -> None:
    """A finished search's run folder, as training leaves it. init: what identifies its base."""
    identity = {'model': plain(model), 'train_length': 16, **more}
    spec = {'version': 1, 'type': 'RunSpec', **identity, 'init': dict(init)}
    write_json(folder / 'spec.json', spec)
    name_base_model(folder, base)
    with Checkpoints(folder / 'checkpoints', spec) as checkpoints:
        checkpoints.stand_on({'params': variables['params']})
        for step, lam_LN in ((3, lam_of(variables) + 1), (7, lam_of(variables))):
            checkpoints.save(step, {'lam': {'head': lam_LN}, 'opt_state': {'count': lam_LN}}, {})
    write_json(folder / 'done.json', {'steps': 7, 'seconds': 0})


@pytest.fixture
def searched(tmp_path: pathlib.Path) -> pathlib.Path:
    """A search beside the run it began from."""
    write_run(tmp_path / 'base', Described(CONFIG, 16), tiny.variables(CONFIG), {})
    init = read_json(tmp_path / 'base' / 'spec.json')
    write_search(tmp_path / 'search', tmp_path / 'base', init, tiny.varied_lam(CONFIG))
    return tmp_path / 'search'


def test_a_search_is_read_with_the_weights_of_the_run_it_began_from(
    searched: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    found = read_run(searched, tiny.mesh())
    tiny.assert_same(found.variables, tiny.varied_lam(CONFIG))
    assert found.described.train_length == 16
    earlier = read_run(searched, tiny.mesh(), step=3).variables
    tiny.assert_same(lam_of(earlier), lam_of(tiny.varied_lam(CONFIG)) + 1)
    moved = searched.parent.rename(tmp_path.parent / f'{tmp_path.name}-moved')
    tiny.assert_same(read_run(moved / 'search', tiny.mesh()).variables, found.variables)


def test_a_straight_through_search_is_read_as_it_ran(
    searched: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """Its checkpoints have the free copy of lambda, which lies below the bound."""
    variables, base = tiny.varied_lam(CONFIG), searched.parent / 'base'
    bound = float(np.median(lam_of(variables)))
    for through in (True, False):
        train = {'optimizer': {'bound': bound, 'straight_through': through}}
        folder = tmp_path / f'through-{through}'
        write_search(folder, base, read_json(base / 'spec.json'), variables, train=train)
        expected = np.maximum(lam_of(variables), bound) if through else lam_of(variables)
        np.testing.assert_array_equal(lam_of(read_run(folder, tiny.mesh()).variables), expected)


def test_a_search_is_read_with_the_weights_of_a_directory(tmp_path: pathlib.Path) -> None:
    directory = tmp_path / 'elsewhere' / 'hf'
    save(directory, tiny.variables(CONFIG), Described(CONFIG, 16))
    init = {'fingerprint': fingerprint(open_directory(directory)), 'model': plain(CONFIG)}
    folder = tmp_path / 'runs' / 'search'
    write_search(folder, directory, init, tiny.varied_lam(CONFIG))
    tiny.assert_same(read_run(folder, tiny.mesh()).variables, tiny.varied_lam(CONFIG))

    moved = directory.rename(tmp_path / 'hf')
    with pytest.raises(ValueError, match=r'elsewhere/hf, which is not there; put it back, or'):
        read_run(folder, tiny.mesh())
    write_json(folder / BASE_MODEL, {'folder': str(moved)})
    tiny.assert_same(read_run(folder, tiny.mesh()).variables, tiny.varied_lam(CONFIG))

    save(directory, tiny.varied_lam(CONFIG), Described(CONFIG, 16))
    write_json(folder / BASE_MODEL, {'folder': str(directory)})
    with pytest.raises(ValueError, match=r'elsewhere/hf holds another model than .*/search was'):
        read_run(folder, tiny.mesh())


def test_a_base_model_that_is_missing_or_another_one_is_named(
    searched: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    base = (tmp_path / 'base').rename(tmp_path / 'away')
    with pytest.raises(ValueError, match=r'/base, which is not there; .* into .*/base_model\.json'):
        read_run(searched, tiny.mesh())
    other = Described(CONFIG, 32)
    write_run(tmp_path / 'base', other, tiny.variables(CONFIG), {})
    message = r'/base holds another model .*: train_length is 16 here and 32 there; write where'
    with pytest.raises(ValueError, match=message):
        read_run(searched, tiny.mesh())
    write_json(searched / BASE_MODEL, {'folder': str(base)})
    tiny.assert_same(read_run(searched, tiny.mesh()).variables, tiny.varied_lam(CONFIG))


def test_a_base_model_that_was_trained_again_to_other_weights_is_refused(
    searched: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (tmp_path / 'base').rename(tmp_path / 'away')
    params = jax.tree.map(lambda leaf: leaf + 1, tiny.variables(CONFIG)['params'])
    again = {**tiny.variables(CONFIG), 'params': params}
    write_run(tmp_path / 'base', Described(CONFIG, 16), again, {})
    with pytest.raises(CheckpointError, match=r'step 7 .* belongs to another base model'):
        read_run(searched, tiny.mesh())


def test_a_search_is_not_read_without_its_base_model(searched: pathlib.Path) -> None:
    (searched / BASE_MODEL).unlink()
    with pytest.raises(CheckpointError, match='has no params: a search is saved without its base'):
        read_run(searched, tiny.mesh())


def test_a_folder_that_is_no_run(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ValueError, match='no run folder'):
        read_run(tmp_path, tiny.mesh())


def test_a_base_model_beside_a_run_without_one_is_refused(tmp_path: pathlib.Path) -> None:
    config = tiny.model(attention=None)
    home = tmp_path / 'run'
    write_run(home, Described(config, 64), tiny.variables(config), {})
    name_base_model(home, tmp_path / 'base')
    with pytest.raises(ValueError, match=r'spec\.json has no model that the run starts from'):
        read_run(home, tiny.mesh())
