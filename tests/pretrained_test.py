"""A checkpoint in hand: what the README shows, against the functions that it stands for."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re

import jax
import numpy as np
import pytest

from nope.evals import positions
from nope.evals.generation import Generator, Options
from nope.interop import Described, save
from nope.pretrained import Pretrained
from nope.variables import lam_of
from tests import tiny
from tests.data.words import words

ROOT = pathlib.Path(__file__).parent.parent
CONFIG = tiny.model(attention=None, vocab_size=258)
TEXT = ''.join(f'{i} green bottles hang on the wall. ' for i in range(20))


@pytest.fixture
def directory(tmp_path: pathlib.Path) -> pathlib.Path:
    described = Described(CONFIG, 16, 'float32', bos=257, eos=256)
    save(tmp_path / 'DIR', tiny.variables(CONFIG), described, tokenizer='bytes')
    return tmp_path / 'DIR'


def test_the_example_of_the_readme_runs(
    directory: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / 'nope/interop/README.md').read_text()
    (code,) = re.findall(r'```python\n([^`]*Pretrained[^`]*)```', page)
    monkeypatch.chdir(directory.parent)
    names: dict = {'text': TEXT}
    exec(code.replace('steps=200', 'steps=3'), names)
    model, longer, records = names['model'], names['longer'], names['records']
    assert records['loss'].shape == (32,)
    assert records['entropy'].shape == (CONFIG.layers, CONFIG.heads, 32)
    wanted = positions.run(
        CONFIG, tiny.variables(CONFIG), names['blocks'][:8], mesh=tiny.mesh(), batch_size=4
    )
    np.testing.assert_allclose(records['loss'], wanted['loss'], rtol=1e-5)
    assert len(capsys.readouterr().out) >= 1
    moved = np.asarray(lam_of(longer.variables))
    assert np.all(moved >= 1) and np.any(moved != np.asarray(lam_of(model.variables)))
    saved = json.loads(pathlib.Path('LONGER/config.json').read_text())
    assert saved['max_position_embeddings'] == 32  # what it was searched on
    again = Pretrained.open('LONGER').by_position(names['blocks'])  # folded
    np.testing.assert_allclose(
        again['loss'], longer.by_position(names['blocks'])['loss'], rtol=1e-4
    )


def test_a_search_lowers_the_loss_and_leaves_the_weights(directory: pathlib.Path) -> None:
    model = Pretrained.open(directory)
    blocks = model.blocks(TEXT, 32)
    longer = model.searched(blocks, steps=30, bound=None)
    before, after = (m.by_position(blocks)['loss'].mean() for m in (model, longer))
    assert after < before
    for old, new in zip(
        *(jax.tree.leaves(m.variables['params']) for m in (model, longer)), strict=True
    ):
        np.testing.assert_array_equal(old, new)


def test_windows_that_the_devices_do_not_divide_are_searched_on(directory: pathlib.Path) -> None:
    model = Pretrained.open(directory)
    assert model.mesh.size > 5
    longer = model.searched(model.blocks(TEXT, 32)[:5], steps=1, batch_size=np.int64(4))
    assert lam_of(longer.variables).shape == lam_of(model.variables).shape


def test_a_text_ends_where_the_models_files_say(directory: pathlib.Path) -> None:
    model = Pretrained.open(directory)
    prompt = model._tokenizer.encode('the')
    (made,) = Generator(model.model, model.variables, model.mesh, batch_tokens=64).generate(
        [prompt], Options(8)
    )
    assert len(made) == 8
    end = int(made[2])
    kept = list(made).index(end)
    (directory / 'generation_config.json').write_text(json.dumps({'eos_token_id': [256, end]}))
    found = Pretrained.open(directory).generate('the', 8)
    assert found == model._tokenizer.decode(made[:kept])
    assert model.generate('the', 8) == model._tokenizer.decode(made)


def test_what_cannot_be_done_is_refused(directory: pathlib.Path) -> None:
    model = Pretrained.open(directory)
    for wrong in (model.blocks(TEXT, 8)[0], [1, 2, 3], np.zeros((2, 1), int), np.zeros((2, 9))):
        for use in (model.by_position, model.searched):
            with pytest.raises(ValueError, match=r'blocks have shape .* windows and tokens, as'):
                use(wrong)
    for length in (4096, -1):
        with pytest.raises(ValueError, match=rf'length is {length}; accepted: 1 or more, and less'):
            model.blocks(TEXT, length)
    with pytest.raises(ValueError, match=r'ids from 7 to 258; those of the model are 0 to 257'):
        model.searched(np.full((1, 17), 258, np.int32) - np.eye(1, 17, dtype=np.int32) * 251)
    with pytest.raises(ValueError, match=r'blocks have 15 tokens .* was trained at, 16, or more'):
        model.searched(model.blocks(TEXT, 15))
    larger = words(directory, *(f'w{i}' for i in range(257)), '<s>', '</s>')
    with pytest.raises(ValueError, match='DIR has 259 tokens; the model has 258'):
        dataclasses.replace(model, tokenizer=larger).generate('w0', 1)
    (directory / 'tokenizer.json').unlink()
    with pytest.raises(ValueError, match=r'DIR holds no tokenizer\.json or tokenizer\.model'):
        Pretrained.open(directory).generate('a', 1)


def test_what_is_saved_keeps_the_tokenizer_and_its_ends(
    directory: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """Everything beside the tokenizer; ends that the config alone names too."""
    config = json.loads((directory / 'config.json').read_text())
    (directory / 'config.json').write_text(json.dumps(config | {'eos_token_id': [256, 65]}))
    (directory / 'chat_template.jinja').write_text('{{ messages }}')
    Pretrained.open(directory).save(tmp_path / 'SAVED')
    for name in ('tokenizer.json', 'tokenizer_config.json', 'chat_template.jinja'):
        assert (tmp_path / 'SAVED' / name).read_bytes() == (directory / name).read_bytes()
    tokenizer = Pretrained.open(tmp_path / 'SAVED')._tokenizer
    assert tokenizer.stop_ids == (256, 65)
    (directory / 'tokenizer.json').rename(directory / 'vocab.json')  # which only others read
    (directory / 'generation_config.json').write_text('{}')
    Pretrained.open(directory).save(tmp_path / 'OTHER')
    assert {'vocab.json', 'generation_config.json'} <= {
        *(p.name for p in (tmp_path / 'OTHER').iterdir())
    }


def test_a_model_and_its_records_are_shown_in_a_few_words(directory: pathlib.Path) -> None:
    model = Pretrained.open(directory, train_length=8)
    assert model.searched(model.blocks(TEXT, 8)[:4], steps=1).searched_length == 8
    found = model.by_position(model.blocks(TEXT, 8))
    assert "'loss': Measure({'position': 8}, 'nats')" in repr(found)
    assert len(repr(found)) < 2000 and 'Array' not in repr(model)
