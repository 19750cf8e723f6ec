"""Whole documents of an evaluation corpus, in the order of the data set."""

from __future__ import annotations

import pathlib

import numpy as np

from nope.data import shards, stores
from nope.data.config import DataConfig
from nope.data.prefix import begun, prefix_of
from nope.data.tokenizers import load_tokenizer


class Documents:
    """The documents of one split, whose tokens are read when asked for, without EOS.

    name: of the corpus, 'pg19'.
    description: name and content, for captions and messages.
    lengths: int64 [documents], tokens of each.
    prefix: ids that stand before each document and belong to it or, unless `once`, in place of the
        first ones of every window.
    """

    def __init__(
        self,
        store: shards.TokenStore,
        *,
        name: str,
        split: str,
        prefix: tuple[int, ...],
        once: bool,
    ) -> None:
        starts, lengths = store.document_spans()
        self._store = store
        self._starts = starts
        self.name = name
        self.prefix = prefix
        self._before = prefix if once else ()
        self.lengths = lengths + len(self._before)
        self.description = f'{len(lengths)} documents of the {split} split of {name}'

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
        if not self._before:
            cut = self._store.windows(self._starts[documents] + begins, size)
            return begun(cut, self.prefix)
        tokens = np.empty((len(begins), size), np.int32)
        starts = self._starts[documents] + begins - len(self._before)
        inside = begins >= len(self._before)
        if inside.any():
            tokens[inside] = self._store.windows(starts[inside], size)
        for row in np.flatnonzero(~inside):  # the prefix is not stored
            own = np.array(self._before[begins[row] :][:size], np.int32)
            start = self._starts[documents[row]][None]
            tokens[row] = np.concatenate([own, self._store.windows(start, size - len(own))[0]])
        return tokens


def open_documents(
    config: DataConfig,
    *,
    split: str,
    cache: pathlib.Path,
    bos: bool | None = None,
    once: bool = True,
) -> Documents:
    """The documents of one split of `config.sources[config.eval_source]`.

    bos: as `nope.data.prefix` has it. once: see `Documents`. Raises ValueError for `bos` with a
    tokenizer that has no BOS, for a split without documents, and as `open_store`.
    """
    prefix = prefix_of(load_tokenizer(config.tokenizer), bos)
    store = stores.open_store(config, config.eval_source, split, cache, alone=True)
    name = config.sources[config.eval_source].describe()
    return Documents(store, name=name, split=split, prefix=prefix, once=once)
