"""The tokenizer's files beside exported weights."""

from __future__ import annotations

import json
import pathlib

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies

from nope.data import load_tokenizer
from nope.interop.tokenizer_files import (
    has_tokenizer,
    keep_as_it_is,
    raise_length,
    tokenizer_in,
    write_tokenizer,
)


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    made = tmp_path_factory.mktemp('tokenizer')
    write_tokenizer('bytes', made)
    return made


@hypothesis.settings(max_examples=50, deadline=None, database=None)
@hypothesis.given(strategies.text())
def test_bytes_are_the_ids_of_a_hugging_face_tokenizer_too(folder: pathlib.Path, text: str) -> None:
    found, ours = load_tokenizer(str(tokenizer_in(folder))), load_tokenizer('bytes')
    text = text.encode('utf-8', 'replace').decode('utf-8')
    np.testing.assert_array_equal(found.encode(text), ours.encode(text))
    assert found.decode(found.encode(text)) == text
    assert (found.vocab_size, found.eos_id, found.bos_id) == (258, ours.eos_id, ours.bos_id)


@pytest.mark.peers
def test_stock_transformers_reads_it(folder: pathlib.Path) -> None:
    transformers = pytest.importorskip('transformers')
    found = transformers.AutoTokenizer.from_pretrained(folder)
    ids = found('h\u00e9llo\n', add_special_tokens=False).input_ids
    assert ids == list('h\u00e9llo\n'.encode())
    assert (found.eos_token_id, found.bos_token_id) == (256, 257)


def test_files_of_a_directory_are_carried_over(
    folder: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    source, target = tmp_path / 'source', tmp_path / 'target'
    source.mkdir(), target.mkdir()
    for name in ('tokenizer.json', 'merges.txt', 'model.safetensors', 'pytorch_model.bin'):
        (source / name).write_text(name)
    write_tokenizer(str(source), target)
    assert sorted(p.name for p in target.iterdir()) == ['merges.txt', 'tokenizer.json']
    assert tokenizer_in(target) == str(target / 'tokenizer.json')
    assert tokenizer_in(source) and tokenizer_in(tmp_path) is None


def test_what_lies_elsewhere_is_not_published(tmp_path: pathlib.Path) -> None:
    for name in ('checkpoint', 'cache/blobs', 'cache/snapshots/main', 'out'):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / 'cache/blobs/1234').write_text('#version: 0.2')
    (tmp_path / 'cache/snapshots/main/merges.txt').symlink_to('../../blobs/1234')
    write_tokenizer(str(tmp_path / 'cache/snapshots/main'), tmp_path / 'out')
    assert (tmp_path / 'out/merges.txt').read_text() == '#version: 0.2'
    (tmp_path / 'secret').write_text('a token')
    (tmp_path / 'checkpoint/merges.txt').symlink_to('../secret')
    with pytest.raises(ValueError, match=r'merges\.txt is a link to .*secret; accepted: files of'):
        write_tokenizer(str(tmp_path / 'checkpoint'), tmp_path / 'out')


@pytest.mark.parametrize('kind', ['json', 'model'])
def test_a_tokenizer_file_takes_what_is_declared_beside_it(
    tmp_path: pathlib.Path, kind: str
) -> None:
    source, target = tmp_path / 'source', tmp_path / 'target'
    source.mkdir(), target.mkdir()
    vocabularies = {'tokenizer.json', 'tokenizer.model', 'vocab.json', 'merges.txt'}
    declared = {
        *('tokenizer_config.json', 'special_tokens_map.json', 'added_tokens.json'),
        *('chat_template.jinja', 'chat_template.json', 'generation_config.json'),
    }
    for name in {*vocabularies, *declared, 'mine.json', 'config.json'}:
        (source / name).write_text(name)
    write_tokenizer(str(source / f'tokenizer.{kind}'), target)
    assert {p.name for p in target.iterdir()} == {f'tokenizer.{kind}', *declared}
    assert all(p.read_text() == p.name for p in target.iterdir())


@pytest.mark.parametrize(
    ('was', 'kind', 'named'),
    [
        ('phi3', 'llama', 'PreTrainedTokenizerFast'),
        ('phi3', 'phi3', 'GPT2Tokenizer'),
        ('llama', 'llama', 'GPT2Tokenizer'),
        (None, 'llama', 'GPT2Tokenizer'),
    ],
)
def test_another_kind_of_model_does_not_build_the_tokenizer_anew(
    tmp_path: pathlib.Path, was: str | None, kind: str, named: str
) -> None:
    """Phi-4 is read as it is under `phi3`; as Llama its class would put GPT-2's pattern in it."""
    source, target = tmp_path / 'source', tmp_path / 'target'
    source.mkdir(), target.mkdir()
    (source / 'tokenizer.json').write_text('{}')
    (source / 'tokenizer_config.json').write_text('{"tokenizer_class": "GPT2Tokenizer"}')
    if was is not None:
        (source / 'config.json').write_text(f'{{"model_type": "{was}"}}')
    for given in (source, source / 'tokenizer.json'):
        write_tokenizer(str(given), target)
        keep_as_it_is(str(given), target, kind)
        declared = json.loads((target / 'tokenizer_config.json').read_text())
        assert declared == {'tokenizer_class': named}


@pytest.mark.parametrize(('was', 'named'), [('llama', 'GPT2Tokenizer'), (None, None)])
def test_a_tokenizer_that_stock_would_build_anew_is_refused(
    tmp_path: pathlib.Path, was: str | None, named: str | None
) -> None:
    """Stock takes Qwen2Tokenizer for a `qwen2` model whatever class is declared."""
    (tmp_path / 'config.json').write_text(f'{{"model_type": "{was}"}}')
    (tmp_path / 'tokenizer_config.json').write_text(json.dumps({'tokenizer_class': named}))
    for source in (str(tmp_path), 'bytes'):
        with pytest.raises(ValueError, match='written as qwen2'):
            keep_as_it_is(source, tmp_path, 'qwen2')
    (tmp_path / 'config.json').write_text('{"model_type": "qwen2"}')
    keep_as_it_is(str(tmp_path), tmp_path, 'qwen2')


def test_a_longer_model_raises_the_length_that_stock_truncates_to(tmp_path: pathlib.Path) -> None:
    path = tmp_path / 'tokenizer_config.json'
    for limit, longest, expected in ((8192, 16384, 16384), (1e30, 16384, 1e30), (8192, None, 8192)):
        path.write_text(json.dumps({'model_max_length': limit, 'bos_token': '<s>'}))
        raise_length(tmp_path, longest)
        assert json.loads(path.read_text()) == {'model_max_length': expected, 'bos_token': '<s>'}


def test_a_vocabulary_that_is_copied_and_not_read_is_a_tokenizer(tmp_path: pathlib.Path) -> None:
    (tmp_path / 'merges.txt').write_text('')
    assert not has_tokenizer(tmp_path)
    (tmp_path / 'vocab.json').write_text('{}')
    assert has_tokenizer(tmp_path) and tokenizer_in(tmp_path) is None


def test_a_tokenizer_that_is_not_there(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ValueError, match='nowhere'):
        write_tokenizer(str(tmp_path / 'nowhere'), tmp_path)
