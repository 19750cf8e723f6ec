from __future__ import annotations

import numpy as np
import pytest

from nope.evals.needles.framing import encode
from tests.evals.needles.fakes import BYTES, Pieces


def test_a_begin_mark_stands_in_front_where_it_is_asked_for() -> None:
    assert encode(BYTES, 'ab', bos=True).tolist() == [257, 97, 98]
    assert encode(BYTES, 'ab', bos=False).tolist() == [97, 98]
    assert encode(BYTES, 'ab', bos=True).dtype == np.int32


def test_a_tokenizer_without_begin_mark_is_named_with_the_switch() -> None:
    tokenizer = Pieces(list, bos_id=None, fingerprint='abc123')
    with pytest.raises(ValueError, match=r'bos=True.*Pieces, fingerprint abc123.*bos=False'):
        encode(tokenizer, 'ab', bos=True)
    assert len(encode(tokenizer, 'ab', bos=False)) == 2
