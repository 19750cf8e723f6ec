"""Character spans of tokens: the part of a text that each token stands for."""

from __future__ import annotations

import numpy as np

from nope.data.tokenizers import ByteTokenizer, HuggingFaceTokenizer, Tokenizer


def encode_spans(tokenizer: Tokenizer, text: str) -> tuple[np.ndarray, np.ndarray]:
    """Token ids of `text`, int32 [n], without marks, and their spans, int64 [n, 2]: token i stands
    for text[spans[i, 0]:spans[i, 1]].

    Every byte of a character has the whole character's span. Whether a token's span has the space
    before a word is the tokenizer's choice. ValueError for a tokenizer that has no spans.
    """
    if isinstance(tokenizer, ByteTokenizer):
        sizes = np.asarray([len(character.encode()) for character in text], np.int64)
        begins = np.repeat(np.arange(len(text)), sizes)
        return tokenizer.encode(text), np.stack([begins, begins + 1], axis=1)
    if isinstance(tokenizer, HuggingFaceTokenizer):
        found = tokenizer.encoding(text)
        return np.asarray(found.ids, np.int32), np.asarray(found.offsets, np.int64).reshape(-1, 2)
    raise ValueError(
        f'{type(tokenizer).__name__} does not say which characters a token stands for; accepted: '
        'bytes or a Hugging Face tokenizer.json'
    )
