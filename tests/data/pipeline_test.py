from __future__ import annotations

import dataclasses
import itertools
import json
import random

import numpy as np
import pytest

from nope.data import Batch, DataConfig, load_tokenizer, prepare, shards, stores, training_batches
from nope.data.sources import JsonLines, Shards, Text

LENGTH = 31
BATCH = 6


@pytest.fixture
def config(corpus) -> DataConfig:
    return DataConfig((Text(str(corpus)),))


@pytest.fixture
def mixed(corpus, tmp_path_factory, make_corpus) -> DataConfig:
    other = tmp_path_factory.mktemp('other')
    make_corpus(other, files=20, seed=1)
    return DataConfig((Text(str(corpus)), Text(str(other))), weights=(0.693584, 0.306416))


def batches(config, cache, count=5, **options) -> np.ndarray:
    """Blocks [count, batch, length + 1] of the first batches."""
    defaults = {'length': LENGTH, 'batch_size': BATCH, 'seed': 0, 'start': 0, 'threads': 0}
    iterator = training_batches(config, cache=cache, **(defaults | options))
    found = list(itertools.islice(iterator, count))
    assert all(array is None for batch in found for array in batch[2:])
    return np.stack([blocks_in(batch) for batch in found])


def blocks_in(batch: Batch) -> np.ndarray:
    """The blocks [B, T + 1] that tokens and targets are cut from."""
    np.testing.assert_array_equal(batch.tokens[:, 1:], batch.targets[:, :-1])
    return np.concatenate([batch.tokens, batch.targets[:, -1:]], axis=-1)


def blocks_of(config, index, cache, length=LENGTH) -> list[bytes]:
    """The blocks of a source's training split, in file order."""
    store = stores.open_store(config, index, 'train', cache)
    count = store.tokens // (length + 1)
    return [b.tobytes() for b in store.windows(np.arange(count) * (length + 1), length + 1)]


def numbers(blocks: list[bytes], examples: np.ndarray) -> list[int]:
    place = {block: i for i, block in enumerate(blocks)}
    assert len(place) == len(blocks), 'two blocks of the test corpus are equal'
    return [place[example.tobytes()] for example in examples]


def test_batches_are_contiguous_blocks_each_once_an_epoch(config, cache):
    blocks = blocks_of(config, 0, cache)
    found = batches(config, cache, 2 * len(blocks), batch_size=1)
    assert found.dtype == np.int32
    order = numbers(blocks, found[:, 0])
    first, second = order[: len(blocks)], order[len(blocks) :]
    assert sorted(first) == sorted(second) == list(range(len(blocks)))
    assert first != list(range(len(blocks)))  # shuffled
    assert first != second  # anew in each epoch


def test_order_is_pinned(cache, tmp_path):
    # A change here means that finished runs can no longer be reproduced or continued.
    for split in ('train', 'validation'):
        (tmp_path / split).mkdir()
        (tmp_path / split / 'lines.txt').write_text(''.join(f'{i:015d}\n' for i in range(200)))
    config = DataConfig((Text(str(tmp_path)),))
    found = batches(config, cache, 2, length=15, batch_size=8)
    lines = [load_tokenizer('bytes').decode(block) for block in found.reshape(16, 16)]
    assert [int(line) for line in lines] == [
        87,
        173,
        83,
        125,
        133,
        151,
        198,
        85,
        123,
        31,
        39,
        110,
        50,
        5,
        6,
        178,
    ]


@pytest.mark.parametrize('which', ['config', 'mixed'])
@pytest.mark.parametrize('rows', [[0, 1], [2, 4], [5, 0, 3]])
def test_some_rows_are_those_of_the_whole_batch(which, rows, cache, request):
    config = request.getfixturevalue(which)
    part = batches(config, cache, rows=np.array(rows))
    assert np.array_equal(part, batches(config, cache)[:, rows])


@pytest.mark.parametrize('which', ['config', 'mixed'])
@pytest.mark.parametrize('start', [1, 3, 400])
def test_start_continues_the_same_sequence(which, start, cache, request):
    config = request.getfixturevalue(which)
    whole = batches(config, cache, start + 3)
    assert np.array_equal(batches(config, cache, 3, start=start), whole[start:])


@pytest.mark.parametrize('which', ['config', 'mixed'])
@pytest.mark.parametrize('threads', [1, 4])
def test_threads_do_not_change_the_batches(which, threads, cache, request):
    config = request.getfixturevalue(which)
    whole = batches(config, cache, 300)
    assert np.array_equal(batches(config, cache, 300, threads=threads), whole)


def test_batch_size_only_regroups_the_examples(config, cache):
    assert np.array_equal(
        batches(config, cache, 6, batch_size=4).reshape(24, -1),
        batches(config, cache, 3, batch_size=8).reshape(24, -1),
    )


def apart(config, cache, count=5, **options) -> list[Batch]:
    defaults = {'length': 512, 'batch_size': BATCH, 'seed': 0, 'start': 0, 'threads': 0}
    config = dataclasses.replace(config, documents='apart')
    iterator = training_batches(config, cache=cache, **(defaults | options))
    return list(itertools.islice(iterator, count))


def same(found: list[Batch], expected: list[Batch]) -> bool:
    arrays, others = (list(itertools.chain.from_iterable(each)) for each in (found, expected))
    pairs = zip(arrays, others, strict=True)
    return all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in pairs)


@pytest.mark.parametrize('which', ['config', 'mixed'])
def test_documents_apart_are_those_of_the_joined_blocks(which, cache, request):
    """The end of each is its EOS, which bytes have nowhere else."""
    config, boundaries = request.getfixturevalue(which), 0
    eos = load_tokenizer('bytes').eos_id
    joined = batches(config, cache, length=512)
    for block, batch in zip(joined, apart(config, cache), strict=True):
        assert np.array_equal(blocks_in(batch), block)
        for row, tokens in enumerate(batch.tokens):
            segment = position = 0
            for at, token in enumerate(tokens):
                assert (batch.segments[row, at], batch.positions[row, at]) == (segment, position)
                assert batch.weights[row, at] == (token != eos)
                segment, position = (segment + 1, 0) if token == eos else (segment, position + 1)
            boundaries += segment
    assert boundaries > 3


@pytest.mark.parametrize('which', ['config', 'mixed'])
def test_documents_apart_are_the_same_for_any_start_rows_threads_and_store(
    which, cache, request, monkeypatch
):
    config = request.getfixturevalue(which)
    whole = apart(config, cache, 8)
    assert same(apart(config, cache, 3, start=5), whole[5:])
    rows = np.array([5, 0, 3])
    some = [Batch(*(array[rows] for array in batch)) for batch in whole]
    assert same(apart(config, cache, 8, rows=rows, threads=4), some)
    monkeypatch.setattr(shards, 'RESIDENT_BYTES', 0)
    assert same(apart(config, cache, 8), whole)


@pytest.mark.parametrize('which', ['config', 'mixed'])
def test_seeds_give_different_orders(which, cache, request):
    config = request.getfixturevalue(which)
    assert not np.array_equal(batches(config, cache, seed=0), batches(config, cache, seed=1))


def test_the_next_seed_is_not_the_next_epoch(config, cache):
    count = len(blocks_of(config, 0, cache))
    epochs = batches(config, cache, 2 * count, batch_size=1)
    assert not np.array_equal(epochs[count:], batches(config, cache, count, batch_size=1, seed=1))


def test_mixture_draws_each_sequence_from_the_papers_stream(mixed, cache):
    blocks = [blocks_of(mixed, i, cache) for i in range(2)]
    examples = batches(mixed, cache, 100, seed=314).reshape(-1, LENGTH + 1)
    drawn = random.Random(314).choices([0, 1], mixed.weights, k=len(examples))
    for source in range(2):
        mine = [e for e, d in zip(examples, drawn, strict=True) if d == source]
        order = numbers(blocks[source], np.stack(mine))  # KeyError for a block of the other
        epoch = order[: len(blocks[source])]
        assert len(set(epoch)) == len(epoch)  # no block again before the source is used up


def test_paged_and_resident_stores_give_the_same_batches(config, cache, monkeypatch):
    resident = batches(config, cache, 20)
    monkeypatch.setattr(shards, 'RESIDENT_BYTES', 0)
    assert np.array_equal(batches(config, cache, 20, threads=4), resident)


def test_prepared_shards_give_the_batches_of_their_source(config, cache, tmp_path):
    prepare.prepare(config.sources[0], 'bytes', tmp_path / 'shards', cache=cache)
    prepared = DataConfig((Shards(str(tmp_path / 'shards')),))
    assert np.array_equal(batches(prepared, cache), batches(config, cache))


def test_second_start_reads_the_cache(config, tmp_path, monkeypatch):
    first = batches(config, tmp_path)
    monkeypatch.delattr(prepare, 'prepare')
    assert np.array_equal(batches(config, tmp_path), first)


def test_changed_text_is_tokenised_anew(tmp_path, make_corpus):
    make_corpus(tmp_path / 'text')
    config = DataConfig((Text(str(tmp_path / 'text')),))
    first = batches(config, tmp_path / 'cache')
    make_corpus(tmp_path / 'text', seed=2)
    assert not np.array_equal(batches(config, tmp_path / 'cache'), first)


def test_default_source_yields_python(cache):
    (batch,) = batches(DataConfig(), cache, 1, length=512, batch_size=64)
    text = load_tokenizer('bytes').decode(batch.reshape(-1))
    assert 'import' in text and 'def ' in text


def test_length_above_every_document_names_it_and_the_longest(config, cache):
    longest = stores.open_store(config, 0, 'train', cache).longest
    batches(config, cache, 1, length=longest)
    with pytest.raises(ValueError, match=rf'^length is {longest + 1}; .*has {longest} tokens'):
        batches(config, cache, 1, length=longest + 1)


def test_source_without_a_whole_block_is_named(config, cache, tmp_path):
    (tmp_path / 'tiny.jsonl').write_text(
        ''.join(json.dumps({'text': f'{i}'}) + '\n' for i in range(60))
    )
    tiny = JsonLines(str(tmp_path / 'tiny.jsonl'), names={'source': 'data.mixture[1]'})
    both = DataConfig((*config.sources, tiny), weights=(1.0, 1.0))
    with pytest.raises(ValueError, match=r'^length is 1000; .*data\.mixture\[1\] holds'):
        batches(both, cache, length=1000)


def test_shards_of_another_tokenizer_are_refused(config, cache, tmp_path):
    out = tmp_path / 'shards'
    metadata = prepare.prepare(config.sources[0], 'bytes', out, cache=cache)
    (out / 'metadata.json').write_text(
        json.dumps(metadata | {'tokenizer': 'other', 'vocab_size': 32000})
    )
    other = DataConfig((Shards(str(out)),))
    with pytest.raises(ValueError, match=r'data\.source: .*vocabulary 32000.*258'):
        batches(other, cache)


def test_sequences_begin_with_bos_where_they_are_to(config, cache):
    plain = batches(config, cache)
    begun = batches(dataclasses.replace(config, bos=True), cache)
    assert (begun[..., 0] == load_tokenizer('bytes').bos_id).all()
    np.testing.assert_array_equal(begun[..., 1:], plain[..., 1:])
