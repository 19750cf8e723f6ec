"""Tokenisation of a text with an optional BOS."""

from __future__ import annotations

import numpy as np

from nope.data import Tokenizer


def encode(tokenizer: Tokenizer, text: str, bos: bool) -> np.ndarray:
    """Token ids of `text`, int32 [n], after BOS where `bos` is on.

    ValueError where `bos` is on and the tokenizer has no BOS.
    """
    ids = tokenizer.encode(text)
    if not bos:
        return ids
    if tokenizer.bos_id is None:
        raise ValueError(
            f'bos=True, but the tokenizer ({type(tokenizer).__name__}, fingerprint '
            f'{tokenizer.fingerprint}) has no BOS; use bos=False'
        )
    return np.concatenate([np.array([tokenizer.bos_id], np.int32), ids])
