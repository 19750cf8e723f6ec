"""Training batches: shuffled, mixed, sliced over processes, exactly resumable."""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Iterator, Sequence

import numpy as np

from nope.data import mixture, stores
from nope.data.batch import Batch
from nope.data.config import APART, DataConfig
from nope.data.prefix import begun
from nope.data.shards import TokenStore
from nope.runtime.errors import FieldError

DEFAULT_THREADS = 2
_BUFFERED_PER_THREAD = 4
_POSITIONS = 2305_16843  # apart from the seeds of the sources' orders


def training_batches(
    config: DataConfig,
    *,
    length: int,
    batch_size: int,
    seed: int,
    start: int,
    cache: pathlib.Path,
    rows: np.ndarray | None = None,
    threads: int = DEFAULT_THREADS,
    position_range: int | None = None,
    lengths: Sequence[int] = (),
) -> Iterator[Batch]:
    """Endless global batches `start`, `start + 1`, ... of next-token prediction, arrays
    [batch_size, length]. Joined documents fill tokens and targets only; documents apart fill all
    arrays.

    The train split of each source is cut into contiguous blocks of length + 1 tokens and read
    in an order shuffled anew in each epoch; with several sources, example i comes from the one
    that `mixture.SourceDraws` gives. Global example i is a pure function of (config, length,
    seed, i): batch k holds the examples k * batch_size + 0, 1, ... in this order, however many
    processes take part. So `start`, the number of batches consumed, is the whole state of the
    data; finding it costs nothing.

    rows: which of a batch's examples are read, for a process that needs but some; None for all.
    threads: threads that read ahead; 0 reads when asked. The batches do not depend on it.
    position_range: every example has random positions below it (Ruoss et al., 2023, arXiv
        2305.16843), a function of
        the seed and i too; None for none.
    lengths: batches with random positions are cut to them in turn, batch k to
        lengths[k % len(lengths)] tokens, whose positions spread over the whole range; none for
        `length`.
    Raises ValueError or FileNotFoundError before the first batch, naming the field: as
    `stores.open_store`, and FieldError for a length above every document of the training split.
    """
    read = [stores.open_store(config, i, 'train', cache) for i in range(len(config.sources))]
    longest = max(store.longest for store in read)
    if length > longest:
        raise FieldError(
            'length',
            length,
            f'every document of the training split is shorter, the longest has {longest} tokens, '
            'so no context would be that long',
        )
    for i, store in enumerate(read):
        if store.tokens <= length:
            raise FieldError(
                'length',
                length,
                f'the training split of {config.sources[i].name()} holds {store.tokens} tokens in '
                f'all, less than one block of {length + 1}',
            )
    rows = np.arange(batch_size) if rows is None else rows
    stream = _iterate(config, read, length, batch_size, seed, start, rows, threads)
    if position_range is None:
        return stream
    return with_positions(
        stream, seed, start, batch_size, rows, position_range, lengths or (length,)
    )


def _iterate(
    config: DataConfig,
    read: Sequence[TokenStore],
    length: int,
    batch_size: int,
    seed: int,
    start: int,
    rows: np.ndarray,
    threads: int,
) -> Iterator[Batch]:
    import grain  # takes a moment to import

    # Elements are block numbers, counted through all sources, until a whole batch is read.
    counts = [store.tokens // (length + 1) for store in read]
    firsts = np.concatenate([[0], np.cumsum(counts)])
    apart, prefix = config.documents == APART, config.prefix
    orders = [
        grain.MapDataset.range(int(firsts[i]), int(firsts[i + 1]))
        # grain adds the epoch to it: without the hash, seed 1 would begin with seed 0's second.
        .seed(int(np.random.SeedSequence((seed, i)).generate_state(1)[0]))
        .shuffle()
        .repeat()
        for i in range(len(read))
    ]
    if len(orders) == 1:
        examples = orders[0]
    else:
        draws = mixture.SourceDraws(seed, config.weights)
        examples = grain.MapDataset.select_from_datasets(orders, draws)
    batches = (
        examples.batch(batch_size, drop_remainder=True)[start:]
        .map(lambda blocks: blocks[rows])
        .map(functools.partial(_read_batch, apart, prefix, read, firsts, length + 1))
    )
    options = grain.ReadOptions(
        num_threads=threads, prefetch_buffer_size=threads * _BUFFERED_PER_THREAD
    )
    return iter(batches.to_iter_dataset(options))


def _read_batch(
    apart: bool,
    prefix: tuple[int, ...],
    read: Sequence[TokenStore],
    firsts: np.ndarray,
    size: int,
    blocks: np.ndarray,
) -> Batch:
    """The blocks numbered `blocks` [n], of `size` tokens each."""
    tokens = np.empty((len(blocks), size), np.int32)
    begins = np.empty((len(blocks), size), bool)
    sources = np.searchsorted(firsts, blocks, side='right') - 1
    for source in np.unique(sources):
        mine = sources == source
        starts = (blocks[mine] - firsts[source]) * size
        tokens[mine] = read[source].windows(starts, size)
        if apart:
            begins[mine] = read[source].begins(starts, size)
    tokens = begun(tokens, prefix)
    return Batch.of_documents(tokens, begins) if apart else Batch.of_blocks(tokens)


def positions_of(seed: int, example: int, length: int, position_range: int) -> np.ndarray:
    """Positions of a training example, int32 [length]: a uniformly random subset of 0 to
    position_range - 1, without replacement, sorted. A function of its arguments alone."""
    draw = np.random.default_rng((seed, _POSITIONS, example))
    drawn = draw.choice(position_range, size=length, replace=False, shuffle=False)
    return np.sort(drawn).astype(np.int32)


def with_positions(
    stream: Iterator[Batch],
    seed: int,
    start: int,
    batch_size: int,
    rows: np.ndarray,
    position_range: int,
    lengths: Sequence[int],
) -> Iterator[Batch]:
    """The batches `start`, `start + 1`, ... with drawn positions.

    rows: the stream's rows of the global batch of `batch_size` examples. Batch k is cut to
    lengths[k % len(lengths)] tokens, and its positions are drawn for so many: the first ones of a
    longer draw would be the lowest.
    """
    for number, batch in enumerate(stream, start):
        length = lengths[number % len(lengths)]
        drawn = [
            positions_of(seed, number * batch_size + int(row), length, position_range)
            for row in rows
        ]
        yield batch.first(length)._replace(positions=np.stack(drawn))
