"""`nope import` and `nope export`, as a user calls them."""

from __future__ import annotations

import importlib
import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from nope.interop import Described, open_directory
from nope.interop.run_folder import write_run
from nope.interop.safetensors import read_header
from nope.model.lam import LogLength
from tests import tiny

ROOT = pathlib.Path(__file__).parents[3]
saving = importlib.import_module('nope.interop.save')  # the package has a function of that name
CONFIG = tiny.model(attention=None, vocab_size=258, lam=LogLength(16))


def tool(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, '-m', f'experiments.cli.{name}', *arguments]
    return subprocess.run([str(part) for part in command], cwd=ROOT, capture_output=True, text=True)


@pytest.fixture(scope='module')
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp('runs') / 'run'
    variables = tiny.varied_lam(CONFIG)
    write_run(folder, Described(CONFIG, 16), variables, {'path': '/nowhere'})
    return folder


def test_a_run_is_exported_for_several_lengths_and_read_back(
    run_folder: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    lengths = ('--length=16', '--length=64')
    done = tool('export', run_folder, tmp_path / 'out', *lengths, '--tokenizer=bytes')
    assert done.returncode == 0, done.stderr
    base, longer = (open_directory(tmp_path / 'out' / length) for length in ('16', '64'))
    different = {
        name for name in base.tensors if not np.array_equal(base.read(name), longer.read(name))
    }
    assert different and all(name.endswith('q_proj.weight') for name in different)
    assert (base.config['eos_token_id'], longer.config['max_position_embeddings']) == (256, 64)

    found = tool('import_', tmp_path / 'out' / '64', f'--out={tmp_path / "back"}')
    assert found.returncode == 0, found.stderr
    assert 'none positions, 2 layers' in found.stdout and 'trained at 16' in found.stdout
    again = tool('export', tmp_path / 'back', tmp_path / 'again')
    assert again.returncode == 0, again.stderr
    assert open_directory(tmp_path / 'again').checksums == longer.checksums
    assert (tmp_path / 'again' / 'tokenizer.json').exists()  # of where it was imported from
    again_config = open_directory(tmp_path / 'again').config
    assert (again_config['bos_token_id'], again_config['eos_token_id']) == (257, 256)


def test_a_tokenizer_that_is_not_there_is_refused_before_any_tensor(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saving, '_write_shards', lambda *_: pytest.fail('tensors were written'))
    model = tiny.model(attention=None)
    with pytest.raises((ValueError, OSError), match='/no/such'):
        saving.save(
            tmp_path / 'out', tiny.variables(model), Described(model, 16), tokenizer='/no/such'
        )
    assert not (tmp_path / 'out').exists()


def test_what_cannot_be_done_is_said_in_one_line(
    run_folder: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (tmp_path / 'pickled').mkdir()
    (tmp_path / 'pickled' / 'config.json').write_text(json.dumps({'model_type': 'llama'}))
    (tmp_path / 'pickled' / 'pytorch_model.bin').write_bytes(b'\x80\x02')
    out = tmp_path / 'out'
    _check_error(tool('export', run_folder, out), 'one length')
    _check_error(tool('import_', tmp_path / 'pickled'), 'convert')
    assert not out.exists()


def _check_error(done: subprocess.CompletedProcess[str], message: str) -> None:
    assert done.returncode == 1 and message in done.stderr, done.stderr
    assert done.stderr.startswith('error: ') and done.stderr.count('\n') == 1


def test_scale_params_are_written_beside_untouched_weights(
    run_folder: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    done = tool('export', run_folder, tmp_path / 'out', '--lam=scale_param', '--length=64')
    assert done.returncode == 0, done.stderr
    names = read_header(tmp_path / 'out' / 'model.safetensors')
    scales = [name for name in names if name.endswith('scale_param')]
    assert len(scales) == CONFIG.layers
    assert names[scales[0]].shape == (CONFIG.heads,)
