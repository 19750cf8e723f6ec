"""Prefix of a text: the tokens that it begins with, most often BOS or none.

A tokenizer's own prefix is what its files put before every text: the post-processor of a
tokenizer.json, `add_bos_token` beside a SentencePiece model. Tokens behind a text, such as EOS, are
left out, for a text goes on. Everywhere `bos=None` means that prefix. True means BOS where there is
none, False no prefix.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nope.data.tokenizers import ByteTokenizer, Tokenizer, encode_special, piece_of
from nope.runtime.errors import FieldError
from nope.runtime.saying import printable


def prefix_of(tokenizer: Tokenizer, bos: bool | None) -> tuple[int, ...]:
    """Ids that texts begin with. FieldError for another `bos`, and for True where the tokenizer has
    neither a prefix nor BOS."""
    if not isinstance(bos, bool | None):
        raise FieldError(
            'bos', bos, "accepted: True, False, or None for the tokenizer's own prefix"
        )
    if bos is False or (bos is None and not tokenizer.prefix):
        return ()
    if tokenizer.prefix:
        return tokenizer.prefix
    if tokenizer.bos_id is None:
        raise FieldError('bos', bos, 'accepted: False or None; the tokenizer has no BOS')
    return (tokenizer.bos_id,)


def encode_with_bos(
    tokenizer: Tokenizer, text: str | bytes, bos: bool | None, *, special: bool = False
) -> np.ndarray:
    """Token ids of `text`, int32 [n], after the prefix that `bos` says.

    special: special tokens that the text spells become tokens. A text that begins with the prefix,
    or with BOS, gets no other. Errors as `prefix_of`; ValueError where the tokenizer cannot read
    special tokens.
    """
    prefix = prefix_of(tokenizer, bos)
    ids = encode_special(tokenizer, text) if special else tokenizer.encode(text)
    begins = ids[: len(prefix)].tolist() == [*prefix] or (len(ids) and ids[0] == tokenizer.bos_id)
    if not prefix or (special and begins):
        return ids
    return np.concatenate([np.array(prefix, np.int32), ids])


def begun(tokens_BT: np.ndarray, prefix: Sequence[int]) -> np.ndarray:
    """Windows with the prefix in place of their own first tokens."""
    if not len(prefix):
        return tokens_BT
    made = tokens_BT.copy()
    made[:, : len(prefix)] = prefix
    return made


def last(ids: np.ndarray, count: int, prefix: Sequence[int]) -> np.ndarray:
    """The last `count` >= 1 tokens of a text. The prefix that it begins with takes the place of the
    first ones."""
    if len(ids) <= count:
        return ids
    kept = ids[len(ids) - count :]
    begins = len(prefix) <= count and ids[: len(prefix)].tolist() == [*prefix]
    return begun(kept[None], prefix)[0] if begins else kept


def describe_prefix(tokenizer: Tokenizer, prefix: Sequence[int]) -> str:
    """'<bos>' for a table; 'none' for no token."""
    pieces = [piece_of(tokenizer, token) for token in prefix]
    return printable(''.join(pieces)) or 'none'


def start_id(tokenizer: Tokenizer, bos: bool | None) -> int:
    """Token that a whole text is scored after, as in lm_eval: BOS where there is one, else EOS.
    Models of bytes that read no BOS (`bos`) have read EOS before each document."""
    never = isinstance(tokenizer, ByteTokenizer) and not bos
    return tokenizer.eos_id if never or tokenizer.bos_id is None else tokenizer.bos_id
