"""Whole documents of an evaluation corpus, in the order of the data set."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from nope.data import shards, stores
from nope.data.config import DataConfig
from nope.data.splits import SPLITS
from nope.data.tokenizers import load_tokenizer


class Documents(Sequence[np.ndarray]):
    """The documents of one split as token arrays, int32 [lengths[i]], read when asked for.

    A document is BOS, where `bos_id` is given, and its tokens; there is no EOS.

    name: of the corpus, 'pg19'.
    description: the same with what is in it, for captions and messages.
    lengths: int64 [documents], tokens of each, BOS included.
    bos_id: id of BOS, or None.
    """

    def __init__(
        self, store: shards.TokenStore, *, name: str, split: str, bos_id: int | None
    ) -> None:
        starts, lengths = store.document_spans()
        self._store = store
        self._starts = starts
        self.name = name
        self.bos_id = bos_id
        self.lengths = lengths + (bos_id is not None)
        self.description = f'{len(lengths)} documents of the {split} split of {name}'

    def __len__(self) -> int:
        return len(self.lengths)

    @overload
    def __getitem__(self, index: int) -> np.ndarray: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[np.ndarray]: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        length = int(self.lengths[index])
        return self.windows(np.asarray([index]), np.asarray([length]), length)[0]

    def windows(self, documents: np.ndarray, ends: np.ndarray, size: int) -> np.ndarray:
        """Tokens ends[i] - size .. ends[i] - 1 of documents[i], int32 [n, size].

        documents, ends: int [n]. IndexError for a window that is not inside its document.
        """
        begins = ends - size
        outside = np.flatnonzero((begins < 0) | (ends > self.lengths[documents]))
        if len(outside):
            i = outside[0]
            raise IndexError(
                f'tokens {begins[i]} to {ends[i]} of document {documents[i]}, which has '
                f'{self.lengths[documents[i]]}'
            )
        starts = self._starts[documents] + begins
        if self.bos_id is None:
            return self._store.windows(starts, size)
        # BOS is not stored: the windows that hold it are moved to make room.
        marked = begins == 0
        tokens = self._store.windows(np.where(marked, starts, starts - 1), size)
        tokens[marked, 1:] = tokens[marked, :-1]
        tokens[marked, :1] = self.bos_id
        return tokens


def open_documents(
    config: DataConfig, *, split: str, cache: pathlib.Path, bos: bool = True
) -> Documents:
    """The documents of one split of `config.sources[config.eval_source]`.

    bos: whether each begins with the tokenizer's BOS.
    Raises ValueError for another split, for `bos` with a tokenizer that has no BOS, and
    as `stores.open_store`, which a split without documents is an error for too.
    """
    if split not in SPLITS:
        raise ValueError(f'split {split!r}: must be one of {", ".join(SPLITS)}')
    bos_id = load_tokenizer(config.tokenizer).bos_id if bos else None
    if bos and bos_id is None:
        raise ValueError(
            f'bos=True: data.tokenizer={config.tokenizer!r} has no begin-of-document token; '
            'take bos=False'
        )
    store = stores.open_store(config, config.eval_source, split, cache, alone=True)
    name = config.sources[config.eval_source].describe()
    return Documents(store, name=name, split=split, bos_id=bos_id)
