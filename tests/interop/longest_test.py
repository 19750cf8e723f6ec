"""The longest sequence in a checkpoint's config, which an export keeps."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from typing import Any

import pytest

from nope.identity import plain
from nope.interop import Described, Export, describe, fingerprint, open_directory, save
from nope.interop.run_folder import read_run, write_run
from nope.model import ModelConfig
from nope.positions import Llama3, LongRoPE, RoPE, longrope_multiplier
from tests import tiny
from tests.interop.run_folder_test import write_search

LONGEST = 'max_position_embeddings'
ORIGINAL = 'original_max_position_embeddings'
FACTORS = (1.0, 1.1, 1.2, 1.3), (1.0, 2.0, 4.0, 8.0)
LLAMA31 = tiny.model(attention=None, position=RoPE(5e5, Llama3(8.0, 8192)))
LLAMA32 = tiny.model(attention=None, position=RoPE(5e5, Llama3(32.0, 8192)))
PHI3 = tiny.model(
    attention=None, position=RoPE(1e4, LongRoPE(*FACTORS, 4096, longrope_multiplier(32.0, 4096)))
)
SCALED = pytest.mark.parametrize('model', [LLAMA31, LLAMA32, PHI3], ids=['3.1', '3.2', 'Phi-3'])


@pytest.fixture
def published(tmp_path: pathlib.Path, model: ModelConfig) -> pathlib.Path:
    """A model whose config says 131,072, as another library left it."""
    position: Any = model.position
    described = Described(model, position.scaling.train_length, bos=3, eos=2, longest=131_072)
    save(tmp_path / 'published', tiny.variables(model), described)
    (tmp_path / 'published' / 'nope_export.json').unlink()
    assert longest_in(tmp_path / 'published') == 131_072
    return tmp_path / 'published'


def longest_in(folder: pathlib.Path) -> int:
    return json.loads((folder / 'config.json').read_text())[LONGEST]


@SCALED
@pytest.mark.parametrize(
    ('length', 'expected'), [(None, 131_072), (65_536, 131_072), (262_144, 262_144)]
)
def test_an_imported_model_is_exported_with_it(
    published: pathlib.Path, model: ModelConfig, length: int | None, expected: int
) -> None:
    about = describe(open_directory(published))
    assert about.model == dataclasses.replace(model, attention=None)
    assert about.longest == 131_072 and about.train_length in (8192, 4096)
    out = published.parent / 'out'
    save(out, tiny.variables(model), about, export=Export(length=length))
    assert longest_in(out) == expected
    again = describe(open_directory(out))
    assert again == about._replace(longest=expected)


@pytest.mark.parametrize('model', [LLAMA31])
def test_a_run_folder_keeps_it_and_so_does_a_search_from_there(
    published: pathlib.Path, model: ModelConfig, tmp_path: pathlib.Path
) -> None:
    directory = open_directory(published)
    about = describe(directory)
    write_run(tmp_path / 'run', about, tiny.variables(model), {})
    assert read_run(tmp_path / 'run', tiny.mesh()).described.longest == 131_072
    of_run = json.loads((tmp_path / 'run' / 'spec.json').read_text())
    of_directory = {'fingerprint': fingerprint(directory), 'model': plain(about.model)}
    for base, init in ((tmp_path / 'run', of_run), (published, of_directory)):
        folder = tmp_path / f'on-{base.name}'
        write_search(folder, base, init, tiny.varied_lam(model), about.model)
        assert read_run(folder, tiny.mesh()).described.longest == 131_072
        train = {'lengths': [4096, 262_144]}
        write_search(folder / 'up', base, init, tiny.varied_lam(model), about.model, train=train)
        assert read_run(folder / 'up', tiny.mesh()).described.longest == 262_144


@pytest.mark.parametrize('model', [PHI3])
def test_the_ratio_of_the_lengths_makes_the_multiplier(published: pathlib.Path) -> None:
    """As programs compute it that take no `attention_factor`."""
    about = describe(open_directory(published))
    save(published.parent / 'out', tiny.variables(about.model), about)
    config = json.loads((published.parent / 'out' / 'config.json').read_text())
    settings = config['rope_scaling']
    multiplier = longrope_multiplier(config[LONGEST] / settings[ORIGINAL], settings[ORIGINAL])
    assert multiplier == settings['attention_factor']
