"""Evaluation windows: inside long documents, so that long contexts are real, or packed."""

from __future__ import annotations

import dataclasses
import pathlib

import numpy as np

from nope.data import stores
from nope.data.config import DataConfig
from nope.data.prefix import begun
from nope.data.shards import TokenStore
from nope.data.sources import Source

# How windows are cut: from within documents, one after the other from all documents joined, or as
# the last tokens of each document.
ENDS = 'ends'
CUTS = ('documents', 'packed', ENDS)


@dataclasses.dataclass(frozen=True)
class EvalBlocks:
    """Windows of held-out text.

    tokens: int32 [n, length + 1], without separators, but packed ones with an EOS after a document,
        and with the tokenizer's prefix in place of the first ones where `DataConfig.bos` says so.
    of_document: int64 [n], number of the document that each comes from, a packed one in which it
        begins.
    documents: how many different documents they come from.
    description: all of that in words, for captions.
    """

    tokens: np.ndarray
    of_document: np.ndarray
    documents: int
    description: str


def eval_blocks(
    config: DataConfig,
    *,
    split: str,
    length: int,
    count: int,
    seed: int,
    cache: pathlib.Path,
    cut: str = 'documents',
    shortest: int | None = None,
    longest: int | None = None,
) -> EvalBlocks:
    """Up to `count` windows of length + 1 tokens from the split `validation` or `test` of
    `config.sources[config.eval_source]`.

    A document of n tokens has n // (length + 1) windows, which do not overlap and begin at a
    random phase, because windows at a document's start are easier than others. Every document
    that is long enough gives one window before any gives a second; the choice depends on `seed`
    alone, and a smaller `count` takes the first windows of a larger one. Where there are fewer
    windows, all of them are returned.

    cut: one of `CUTS`. Packed windows are the first `count` of length + 1 tokens of the split's
    documents joined, whatever the seed, as training sequences of joined documents are. A position's
    context may begin in the document before. `ends` takes the last length + 1 tokens of each
    document of `shortest` tokens or more and of fewer than `longest` (None: no limit).

    Raises ValueError where no document is long enough, naming the longest, and as
    `stores.open_store`.
    """
    source = config.sources[config.eval_source]
    store = stores.open_store(config, config.eval_source, split, cache)
    starts, lengths = store.document_spans()
    prefix = config.prefix
    if cut == 'packed':
        found = _packed(store, (starts, lengths), length + 1, count, split, source)
        return dataclasses.replace(found, tokens=begun(found.tokens, prefix))
    if cut == ENDS:
        least = max(shortest or 0, length + 1)
        eligible = np.flatnonzero((lengths >= least) & (longest is None or lengths < longest))
        if not len(eligible):
            raise ValueError(
                f'length {length}: no document of the {split} split of {source.name()} has '
                f'{least} tokens or more'
                + ('' if longest is None else f' and fewer than {longest}')
            )
        order = np.random.default_rng(seed).permutation(eligible)[:count]
        chosen = [(int(document), int(lengths[document]) - length - 1) for document in order]
    else:
        chosen = _choose_windows(lengths, length + 1, count, seed)
    if not chosen:
        raise ValueError(
            f'length {length}: no document of the {split} split of '
            f'{source.name()} has {length + 1} tokens; the longest has '
            f'{int(lengths.max())}'
            + (', and few files are cut into the splits' if source.kind == 'text' else '')
        )
    documents, offsets = np.asarray(chosen, np.int64).T
    used = len(np.unique(documents))
    return EvalBlocks(
        tokens=begun(store.windows(starts[documents] + offsets, length + 1), prefix),
        of_document=documents,
        documents=used,
        description=_description('windows', len(chosen), length + 1, used, split, source),
    )


def _packed(
    store: TokenStore,
    spans: tuple[np.ndarray, np.ndarray],
    size: int,
    count: int,
    split: str,
    source: Source,
) -> EvalBlocks:
    """The first `count` windows of `size` tokens of the stream. spans: of its documents."""
    starts, lengths = spans
    ends = starts + lengths + 1
    total = int(ends[-1]) if len(ends) else 0
    n = min(count, total // size)
    if not n:
        raise ValueError(
            f'length {size - 1}: the {split} split of {source.name()} has {total} tokens, EOS '
            f'included, and a window {size}'
        )
    used = int(np.searchsorted(starts, n * size))
    first = np.arange(n, dtype=np.int64) * size
    return EvalBlocks(
        tokens=store.windows(first, size),
        of_document=np.searchsorted(starts, first, side='right') - 1,
        documents=used,
        description=_description('packed windows', n, size, used, split, source),
    )


def _description(
    what: str, count: int, size: int, documents: int, split: str, source: Source
) -> str:
    many = 'document' if documents == 1 else 'documents'
    return (
        f'{count} {what} of {size} tokens from {documents} {many} of the {split} split of '
        f'{source.describe()}'
    )


def _choose_windows(lengths: np.ndarray, size: int, count: int, seed: int) -> list[tuple[int, int]]:
    """(document, offset) of at most `count` windows of `size` tokens, round-robin."""
    eligible = np.flatnonzero(lengths >= size)
    order = np.random.default_rng(seed).permutation(eligible)
    chosen: list[tuple[int, int]] = []
    round_ = 0
    while len(chosen) < count:
        order = order[lengths[order] // size > round_]
        if len(order) == 0:
            break
        for document in order[: count - len(chosen)]:
            # Its windows in random order, at one phase.
            rng = np.random.default_rng((seed, int(document)))
            phase, there = rng.integers(lengths[document] % size + 1), lengths[document] // size
            chosen.append((int(document), int(phase + rng.permutation(there)[round_] * size)))
        round_ += 1
    return chosen
