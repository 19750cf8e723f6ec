"""Prefixes of texts: a tokenizer's own, BOS, or none."""

from __future__ import annotations

import dataclasses
import json
import pathlib

import numpy as np
import pytest

from nope.data import load_tokenizer, prefix_of
from nope.data.prefix import begun, encode_with_bos, last, start_id
from tests.data.tokenizers_test import hugging_face_json, sentencepiece_model  # noqa: F401

BYTES = load_tokenizer('bytes')


def template(*specials: str, after: tuple[str, ...] = ()) -> dict:
    """A post-processor that puts special tokens around a text."""

    def piece(name: str) -> dict:
        return {'SpecialToken': {'id': name, 'type_id': 0}}

    ids = {'<s>': 0, '</s>': 1, '<x>': 2}
    single = [*map(piece, specials), {'Sequence': {'id': 'A', 'type_id': 0}}, *map(piece, after)]
    return {
        'type': 'TemplateProcessing',
        'single': single,
        'pair': [*single, {'Sequence': {'id': 'B', 'type_id': 1}}],
        'special_tokens': {
            name: {'id': name, 'ids': [ids[name]], 'tokens': [name]} for name in {*specials, *after}
        },
    }


@pytest.mark.parametrize(('specials', 'after', 'prefix'), [
    ((), (), ()), (('<s>',), (), (0,)), (('<x>', '<s>'), (), (2, 0)), ((), ('</s>',), ()),
    (('<s>',), ('</s>',), (0,)),
])  # fmt: skip
@pytest.mark.parametrize('declared', [None, True, False])
def test_a_prefix_is_what_the_post_processor_puts_before_a_text(
    tmp_path: pathlib.Path, specials, after, prefix, declared
) -> None:
    """Whatever `add_bos_token` says, as in stock; a BOS alone begins nothing."""
    path = tmp_path / 'tokenizer.json'
    around = template(*specials, after=after) if specials or after else None
    path.write_text(hugging_face_json(['<s>', '</s>', '<x>'], post_processor=around))
    config = {'bos_token': '<s>', 'eos_token': '</s>', 'add_bos_token': declared}
    path.with_name('tokenizer_config.json').write_text(json.dumps(config))
    found = load_tokenizer(str(path))
    assert found.bos_id == 0
    assert found.prefix == prefix_of(found, None) == prefix
    assert prefix_of(found, False) == ()
    assert prefix_of(found, True) == (prefix or (0,))
    plain = found.encode('the fox').tolist()
    assert encode_with_bos(found, 'the fox', None).tolist() == [*prefix, *plain]
    assert encode_with_bos(found, 'the fox', False).tolist() == plain


@pytest.mark.parametrize(('config', 'prefix'), [
    (None, ()), ({}, ()), ({'add_bos_token': False}, ()), ({'add_bos_token': True}, (1,)),
    ({'add_bos_token': True, 'bos_token': None}, ()),
])  # fmt: skip
def test_a_sentencepiece_model_begins_as_the_config_beside_it_says(
    tmp_path: pathlib.Path,
    sentencepiece_model: bytes,  # noqa: F811
    config,
    prefix,
) -> None:
    path = tmp_path / 'tokenizer.model'
    path.write_bytes(sentencepiece_model)
    if config is not None:
        path.with_name('tokenizer_config.json').write_text(json.dumps(config))
    assert load_tokenizer(str(path)).prefix == prefix


def test_texts_of_bytes_have_a_prefix_where_asked() -> None:
    assert encode_with_bos(BYTES, 'ab', True).tolist() == [257, 97, 98]
    assert encode_with_bos(BYTES, 'ab', None).tolist() == [97, 98]
    assert encode_with_bos(BYTES, 'ab', True).dtype == np.int32
    assert [start_id(BYTES, bos) for bos in (None, False, True)] == [256, 256, 257]


def test_a_tokenizer_without_bos_is_refused_where_it_is_wanted() -> None:
    tokenizer = dataclasses.replace(BYTES, bos_id=None)
    with pytest.raises(ValueError, match='bos is True; accepted: False or None; the tokenizer has'):
        encode_with_bos(tokenizer, 'ab', True)
    with pytest.raises(ValueError, match="bos is 'yes'; accepted: True, False, or None"):
        prefix_of(tokenizer, 'yes')  # type: ignore[arg-type]
    assert len(encode_with_bos(tokenizer, 'ab', None)) == 2


def test_windows_begin_with_the_prefix_in_place_of_their_own_tokens() -> None:
    windows = np.arange(6).reshape(2, 3)
    assert begun(windows, (9, 8)).tolist() == [[9, 8, 2], [9, 8, 5]]
    assert begun(windows, ()) is windows
    assert windows[0, 0] == 0  # they are not changed


def test_what_is_left_of_a_text_keeps_the_prefix() -> None:
    text = np.array([9, 8, 1, 2, 3])
    assert last(text, 5, (9, 8)).tolist() == [9, 8, 1, 2, 3]
    assert last(text, 3, (9, 8)).tolist() == [9, 8, 3]
    assert last(text, 2, (9, 8)).tolist() == [9, 8]
    assert last(text, 1, (9, 8)).tolist() == [3]  # there is no room for it
    assert last(text, 3, (7,)).tolist() == [1, 2, 3]  # a text that does not begin with it
