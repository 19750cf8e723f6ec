"""Text behind a prompt."""

from __future__ import annotations

import pathlib

import numpy as np

from nope.data import Continuation
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
