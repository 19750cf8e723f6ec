"""Tokens and the characters that they stand for."""

from __future__ import annotations

import pathlib
import pickle

import numpy as np
import pytest

from nope.data.prefix import encode_with_bos
from nope.data.spans import encode_spans
from nope.data.tasks.words import WordTokenizer
from nope.data.tokenizers import ByteTokenizer, load_tokenizer
from tests.data.tokenizers_test import hugging_face_json

TEXT = 'naïve 漢字 two words'


def test_every_byte_of_a_character_has_its_span() -> None:
    ids, spans = encode_spans(ByteTokenizer(), TEXT)
    np.testing.assert_array_equal(ids, ByteTokenizer().encode(TEXT))
    by_character: dict[int, list[int]] = {}
    for value, (begin, end) in zip(ids.tolist(), spans.tolist(), strict=True):
        assert end == begin + 1
        by_character.setdefault(begin, []).append(value)
    assert ''.join(bytes(values).decode() for values in by_character.values()) == TEXT


def test_spans_of_a_hugging_face_tokenizer_cover_the_text(tmp_path: pathlib.Path) -> None:
    path = tmp_path / 'tokenizer.json'
    path.write_text(hugging_face_json(['<s>', '</s>']))
    tokenizer = load_tokenizer(str(path))
    text = 'the lazy fox jumps over naïve dogs'
    ids, spans = encode_spans(tokenizer, text)
    np.testing.assert_array_equal(ids, tokenizer.encode(text))
    covered = np.zeros(len(text), bool)
    for value, (begin, end) in zip(ids.tolist(), spans.tolist(), strict=True):
        covered[begin:end] = True
        if text[begin:end].isascii():
            assert tokenizer.decode([value]) == text[begin:end]
    assert covered.all()


def test_text_that_spells_a_mark_is_no_mark_whatever_was_encoded_before(
    tmp_path: pathlib.Path,
) -> None:
    path = tmp_path / 'tokenizer.json'
    path.write_text(hugging_face_json(['<s>', '</s>']))
    tokenizer = load_tokenizer(str(path))
    for place in (tokenizer, pickle.loads(pickle.dumps(tokenizer))):
        ids, _ = encode_spans(place, 'one </s> two')
        encode_with_bos(place, '</s>', False, special=True)
        np.testing.assert_array_equal(ids, encode_spans(place, 'one </s> two')[0])
        np.testing.assert_array_equal(ids, place.encode('one </s> two'))


def test_a_tokenizer_without_spans_is_refused() -> None:
    with pytest.raises(ValueError, match='WordTokenizer does not say which characters'):
        encode_spans(WordTokenizer(('a', 'b')), 'a b')


def test_a_text_without_characters_has_no_spans() -> None:
    ids, spans = encode_spans(ByteTokenizer(), '')
    assert (ids.shape, spans.shape) == ((0,), (0, 2))
