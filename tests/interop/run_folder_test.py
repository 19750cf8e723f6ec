"""Models in run folders come back as they were."""

from __future__ import annotations

import pathlib

import jax
import numpy as np
import pytest

from nope.identity import plain, rebuild
from nope.interop import Described, open_directory, save
from nope.interop.run_folder import _TYPES, read_run, write_run
from nope.model import LayerKind, ModelConfig
from nope.model.lam import LogLength
from nope.positions import KINDS, LongRoPE, NoPE, Rotary
from nope.runtime.files import read_json, write_json
from tests import tiny

MIXED = (LayerKind(Rotary(scaling=LongRoPE((1.0, 2.0), (3.0, 4.0), 16)), 7), LayerKind(NoPE()))


@pytest.mark.parametrize(
    'config',
    [
        tiny.model(lam=LogLength(8), norm='layer', norm_bias=True),
        tiny.model(head_dim=4, pattern=MIXED),
        *(tiny.model(position=kind()) for kind in KINDS.values()),
    ],
    ids=lambda c: c.describe_position(),
)
def test_a_model_is_rebuilt_from_its_identity(config: ModelConfig) -> None:
    stored = tiny.model(**{**vars(config), 'attention': ''})
    import json

    assert rebuild(json.loads(json.dumps(plain(stored))), _TYPES) == stored


def test_a_model_is_saved_as_a_run(tmp_path: pathlib.Path) -> None:
    config = tiny.model(attention='', position=Rotary())
    variables = tiny.varied_lam(config)
    described = Described(config, 64, 'bfloat16')
    write_run(tmp_path / 'run', described, variables, tiny.mesh(), {'path': 'somewhere'})
    found = read_run(tmp_path / 'run', tiny.mesh())
    assert found.described == described and found.spec['origin'] == {'path': 'somewhere'}
    jax.tree.map(np.testing.assert_array_equal, found.variables, variables)
    with pytest.raises(ValueError, match='is there already'):
        write_run(tmp_path / 'run', described, variables, tiny.mesh(), {})

    spec = read_json(tmp_path / 'run' / 'spec.json')
    write_json(tmp_path / 'run' / 'spec.json', spec | {'model': {'type': 'Mamba'}})
    with pytest.raises(ValueError, match=r"describes no model we know: type is 'Mamba'"):
        read_run(tmp_path / 'run', tiny.mesh())


def test_an_unknown_training_length_stays_unknown(tmp_path: pathlib.Path) -> None:
    config = tiny.model(attention='')
    described = Described(config, None)
    write_run(tmp_path / 'run', described, tiny.variables(config), tiny.mesh(), {})
    found = read_run(tmp_path / 'run', tiny.mesh())
    assert found.described == described
    save(tmp_path / 'out', found.variables, found.described)
    assert open_directory(tmp_path / 'out').train_length is None


def test_a_folder_that_is_no_run(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ValueError, match='no run folder'):
        read_run(tmp_path, tiny.mesh())
