"""Text behind a prompt, up to a stop."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from nope.data import Continuation, load_tokenizer
from nope.data.continuation import cut
from tests.data.tokenizers_test import hugging_face_json
from tests.data.words import words


def test_a_blank_that_decoding_drops_stays_between_prompt_and_continuation(
    tmp_path: pathlib.Path,
) -> None:
    tokenizer = words(tmp_path, '▁the', '▁cat', '▁sat', '▁on', '<s>', '</s>')
    ids = tokenizer.encode('the cat sat on the cat')
    assert tokenizer.decode(ids[2:]) == 'sat on the cat'
    behind = Continuation(tokenizer, np.concatenate([[4], ids[:2]]).astype(np.int32))
    assert behind.text(ids[2:]) == ' sat on the cat'
    assert behind.text(np.array([2, tokenizer.vocab_size + 3, 3], np.int32)) == ' sat on'
    assert behind.text(np.array([], np.int32)) == ''


def test_stops_are_looked_for_behind_the_prompt(tmp_path: pathlib.Path) -> None:
    tokenizer = words(tmp_path, '▁the', '▁cat', '▁sat', '▁on', '<s>', '</s>')
    ids = tokenizer.encode('the cat sat on the cat')
    prompt = np.concatenate([[4], ids[:2]]).astype(np.int32)
    text = Continuation(tokenizer, prompt, (' the',))
    assert text.upto_stop(ids[2:4])[0] == ' sat on'
    assert text.stopped(ids[2:]) and not text.stopped(ids[2:4])
    kept, tokens = text.upto_stop(ids[2:])
    assert kept == ' sat on' and tokens.tolist() == ids[2:4].tolist()
    unknown = np.array([2, tokenizer.vocab_size + 3, 3], np.int32)
    assert text.upto_stop(unknown)[0] == ' sat on'


def test_a_stop_inside_a_token_keeps_the_token(tmp_path: pathlib.Path) -> None:
    tokenizer = words(tmp_path, '▁the', '▁cat', '</s>')
    text = Continuation(tokenizer, np.array([0], np.int32), ('at',))
    kept, tokens = text.upto_stop(np.array([0, 1, 0], np.int32))
    assert (kept, tokens.tolist()) == (' the c', [0, 1])


@pytest.mark.parametrize(('stop', 'kept'), [
    ('<x>', 'the fox'), ('<x> jumps', 'the fox'), ('ox<x>', 'the f'), ('jumps', 'the fox '),
    ('fox jumps', None), ('</s>', None),
])  # fmt: skip
def test_a_stop_may_be_spelled_by_special_tokens(tmp_path: pathlib.Path, stop, kept) -> None:
    path = tmp_path / 'tokenizer.json'
    path.write_text(hugging_face_json(['<s>', '</s>', '<x>']))
    tokenizer = load_tokenizer(str(path))
    ids = tokenizer.encode('the fox<x> jumps over', special=True)  # type: ignore[call-arg]
    text = Continuation(tokenizer, np.empty(0, np.int32), (stop,))
    assert text.stopped(ids) == (kept is not None)
    assert text.upto_stop(ids)[0] == ('the fox jumps over' if kept is None else kept)


@pytest.mark.parametrize(
    ('stops', 'wanted'),
    [((), 'one, two'), ((',',), 'one'), (('two', 'e'), 'on'), (('x',), 'one, two'), (('o',), '')],
)
def test_a_text_is_cut_at_the_first_stop(stops: tuple[str, ...], wanted: str) -> None:
    assert cut('one, two', stops) == wanted
