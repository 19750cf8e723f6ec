"""Training of a tokenizer: what its files give back, and `nope tokenizer` as a user calls it."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from nope.data import bpe, load_tokenizer
from nope.data.sources import JsonLines, Text

ROOT = pathlib.Path(__file__).resolve().parents[2]
DRAW = np.random.default_rng(0)
WORDS = ' '.join(''.join(DRAW.choice(list('abcdefgh'), 5)) for _ in range(40)) + ' the the'
SIZE = 300


def corpus_in(folder: pathlib.Path, *texts: str) -> Text:
    folder.mkdir(parents=True, exist_ok=True)
    for i, text in enumerate(texts or (WORDS,) * 40):
        (folder / f'{i}.txt').write_text(text)
    return Text(str(folder))


def trained(tmp_path: pathlib.Path, name: str = 'tok', vocab_size: int = SIZE):
    source = corpus_in(tmp_path / 'corpus')
    out = tmp_path / name
    made = bpe.train(
        source, out, vocab_size=vocab_size, cache=tmp_path / 'cache', field='vocab_size'
    )
    return made, out


def test_every_text_comes_back(tmp_path):
    made, out = trained(tmp_path)
    assert made.vocab_size == SIZE
    for text in (
        *(WORDS, '  two  spaces\n\ttabs\r\n', 'naïve “quotes” — dash', '日本語 🙂', '\x00\x07'),
        '</s> and <s> are spelled here',
    ):
        ids = made.encode(text)
        assert made.decode(ids) == text
        assert not {made.eos_id, made.bos_id} & set(ids.tolist())
    assert made.prefix == () and made.stop_ids == (made.eos_id,)
    again = load_tokenizer(str(out / 'tokenizer.json'))
    assert again.fingerprint == made.fingerprint


def test_what_is_frequent_is_short_and_digits_stand_alone(tmp_path):
    made, _ = trained(tmp_path)
    assert len(made.encode(WORDS)) < 0.6 * len(WORDS)
    key = made.encode('41907')
    assert len(key) == 5
    for text in ('is 41907.', 'is41907', '\n41907 '):
        found = np.lib.stride_tricks.sliding_window_view(made.encode(text), 5)
        assert (found == key).all(axis=1).sum() == 1


@pytest.mark.parametrize('threads', ['1', '2'])
def test_the_same_corpus_gives_the_same_files(tmp_path, threads):
    _, out = trained(tmp_path)
    environment = os.environ | {'PYTHONPATH': str(ROOT), 'RAYON_NUM_THREADS': threads}
    done = subprocess.run(
        [
            *(sys.executable, '-m', 'experiments.cli.tokenizer', '--source=text'),
            *(f'--path={tmp_path / "corpus"}', f'--vocab_size={SIZE}', f'--out={tmp_path / "b"}'),
        ],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert f'vocabulary of {SIZE}' in done.stdout
    for name in ('tokenizer.json', 'tokenizer_config.json'):
        assert (tmp_path / 'b' / name).read_bytes() == (out / name).read_bytes()


def test_it_learns_from_the_training_split(tmp_path):
    """Words of validation and test alone have no entry."""
    folder = tmp_path / 'splits'
    folder.mkdir()
    for split, word in (('train', 'apple '), ('validation', 'zebra '), ('test', 'quartz ')):
        line = json.dumps({'text': word * 500})
        (folder / f'{split}.jsonl').write_text(line + '\n')
    bpe.train(
        JsonLines(str(folder)), tmp_path / 'own', vocab_size=262, cache=tmp_path / 'c', field='n'
    )
    found = json.loads((tmp_path / 'own' / 'tokenizer.json').read_text())['model']['vocab']
    assert 'apple' in found or 'Ġapple' in found
    assert not any('ebr' in entry or 'uar' in entry for entry in found)


@pytest.mark.parametrize(
    ('vocab_size', 'message'),
    [
        (257, r'vocab_size=257; accepted: 258 or more'),
        (10_000, r'vocab_size=10000; accepted: up to \d+, which is all'),
    ],
)
def test_sizes_that_cannot_be_are_refused(tmp_path, vocab_size, message):
    with pytest.raises(ValueError, match=message):
        trained(tmp_path, vocab_size=vocab_size)
    assert not (tmp_path / 'tok').exists()


def test_a_corpus_without_a_training_split_is_refused(tmp_path):
    path = tmp_path / 'validation.jsonl'
    path.write_text('{"text": "apple"}\n')
    with pytest.raises(ValueError, match='its train split has no text'):
        bpe.train(
            JsonLines(str(path)), tmp_path / 'own', vocab_size=258, cache=tmp_path / 'c', field='n'
        )


def test_more_text_than_pairs_are_counted_in_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(bpe, 'MOST_BYTES', 1000)
    with pytest.raises(ValueError, match=r'more than .* of text; give a sample of it'):
        trained(tmp_path)
    assert not (tmp_path / 'tok/tokenizer.json').exists()


def test_a_tokenizer_is_not_overwritten(tmp_path):
    trained(tmp_path)
    with pytest.raises(ValueError, match=r'tokenizer\.json is there already'):
        trained(tmp_path)
