from __future__ import annotations

import collections
import dataclasses

import numpy as np
import pytest

from nope.data import DataConfig, eval_blocks, load_tokenizer, stores
from nope.data.sources import Text

LENGTH = 99


@pytest.fixture(scope='module')
def config(tmp_path_factory, make_corpus) -> DataConfig:
    """Twelve long and some shorter validation documents."""
    folder = tmp_path_factory.mktemp('evaluation')
    for split in ('train', 'validation', 'test'):
        make_corpus(folder / split, files=12, size=3000, seed=len(split))
    for i in range(30):
        (folder / 'validation' / f'short{i}.txt').write_text('short ' * (i % 16 + 1))
    return DataConfig((Text(str(folder)),))


def evaluate(config, cache, **options):
    defaults = {'split': 'validation', 'length': LENGTH, 'count': 1000, 'seed': 0}
    return eval_blocks(config, cache=cache, **(defaults | options))


def places(config, cache, tokens: np.ndarray) -> list[tuple[int, int]]:
    """(document, offset) of each window; the test corpus has no repeated ones."""
    parts = config.sources[0].list_parts(cache)
    texts = [t for part in parts for s, t in part.documents() if s == 'validation']
    found = []
    for window in tokens:
        text = window.astype(np.uint8).tobytes()
        hits = [(i, t.find(text)) for i, t in enumerate(texts) if text in t]
        assert len(hits) == 1
        found += hits
    return found


def test_windows_lie_inside_documents_and_do_not_overlap(config, cache):
    blocks = evaluate(config, cache)
    assert blocks.tokens.dtype == np.int32
    assert blocks.tokens.shape[1] == LENGTH + 1
    assert blocks.tokens.max() < 256  # no separators
    by_document = collections.defaultdict(list)
    for document, offset in places(config, cache, blocks.tokens):
        by_document[document].append(offset)
    for offsets in by_document.values():
        assert (np.diff(sorted(offsets)) >= LENGTH + 1).all()
    assert blocks.documents == len(by_document) == 12
    found = [document for document, _ in places(config, cache, blocks.tokens)]
    numbers = {pair for pair in zip(blocks.of_document.tolist(), found, strict=True)}
    assert len(numbers) == len(set(blocks.of_document)) == 12


def test_every_window_of_every_long_document_is_used(config, cache):
    blocks = evaluate(config, cache)
    _, lengths = stores.open_store(config, 0, 'validation', cache).document_spans()
    assert len(blocks.tokens) == sum(lengths // (LENGTH + 1)) < 1000
    assert f'{len(blocks.tokens)} windows' in blocks.description


def test_documents_take_turns(config, cache):
    for count in (5, 12, 24, 30):
        blocks = evaluate(config, cache, count=count)
        found = collections.Counter(d for d, _ in places(config, cache, blocks.tokens))
        assert len(blocks.tokens) == count
        assert blocks.documents == min(count, 12)
        assert max(found.values()) - min(found.values()) <= 1


def test_windows_seldom_start_where_documents_do(config, cache):
    offsets = [offset for _, offset in places(config, cache, evaluate(config, cache).tokens)]
    assert sum(offset == 0 for offset in offsets) <= 1


def test_choice_depends_on_the_seed_alone(config, cache):
    first, again = evaluate(config, cache, count=20), evaluate(config, cache, count=20)
    assert np.array_equal(first.tokens, again.tokens)
    other = evaluate(config, cache, count=20, seed=1)
    assert not np.array_equal(first.tokens, other.tokens)


def test_fewer_windows_are_the_first_of_more(config, cache):
    more, fewer = evaluate(config, cache, count=40), evaluate(config, cache, count=7)
    assert np.array_equal(more.tokens[:7], fewer.tokens)


def test_splits_are_different_text(config, cache):
    validation, test = evaluate(config, cache), evaluate(config, cache, split='test')
    found = {window.tobytes() for window in validation.tokens}
    assert not found & {window.tobytes() for window in test.tokens}


def test_blocks_come_from_the_evaluation_source(config, corpus, cache):
    both = DataConfig((Text(str(corpus)), *config.sources), eval_source=1, weights=(1.0, 1.0))
    assert np.array_equal(
        evaluate(both, cache, count=9).tokens, evaluate(config, cache, count=9).tokens
    )


def test_length_above_every_document_names_it_and_the_longest(config, cache):
    _, lengths = stores.open_store(config, 0, 'validation', cache).document_spans()
    longest = int(lengths.max())
    assert len(evaluate(config, cache, length=longest - 1).tokens) == 1
    with pytest.raises(ValueError, match=rf'length {longest}:.*the longest has {longest}'):
        evaluate(config, cache, length=longest)


def test_split_without_documents_is_named(tmp_path, cache, make_corpus):
    for split in ('train', 'validation'):
        make_corpus(tmp_path / split, files=3)
    config = DataConfig((Text(str(tmp_path)),))
    with pytest.raises(ValueError, match=r'data\.source: its test split has no documents'):
        evaluate(config, cache, split='test')


def test_ends_are_the_last_tokens_of_documents_of_a_range(config, cache):
    store = stores.open_store(config, 0, 'validation', cache)
    starts, lengths = store.document_spans()
    middle = int(np.median(lengths[lengths > LENGTH]))
    blocks = evaluate(config, cache, cut='ends', longest=middle)
    eligible = np.flatnonzero((lengths > LENGTH) & (lengths < middle))
    ends = {
        store.windows(starts[[d]] + lengths[d] - LENGTH - 1, LENGTH + 1).tobytes() for d in eligible
    }
    assert {window.tobytes() for window in blocks.tokens} == ends
    assert blocks.documents == len(eligible) > 0
    above = evaluate(config, cache, cut='ends', shortest=middle)
    assert blocks.documents + above.documents == (lengths > LENGTH).sum()
    assert np.array_equal(
        evaluate(config, cache, cut='ends', count=2, shortest=middle).tokens, above.tokens[:2]
    )


def test_a_range_without_documents_is_named(config, cache):
    message = (
        r'no document of the validation split of .* has 1000 tokens or more and fewer than 1001'
    )
    with pytest.raises(ValueError, match=message):
        evaluate(config, cache, cut='ends', shortest=1000, longest=1001)


def test_packed_windows_are_the_first_of_the_joined_documents(config, cache):
    joined = stores.open_store(config, 0, 'validation', cache)
    starts, lengths = joined.document_spans()
    stream = joined.windows(np.zeros(1, np.int64), int((lengths + 1).sum()))[0]
    found = evaluate(config, cache, cut='packed', count=7)
    assert np.array_equal(found.tokens.ravel(), stream[: 7 * (LENGTH + 1)])
    assert found.documents == np.sum(starts < 7 * (LENGTH + 1))
    assert found.description.startswith('7 packed windows of 100 tokens')


def test_all_packed_windows_cover_the_split_but_for_less_than_one(config, cache):
    _, lengths = stores.open_store(config, 0, 'validation', cache).document_spans()
    total = int((lengths + 1).sum())
    found = evaluate(config, cache, cut='packed', count=10**6)
    assert len(found.tokens) == total // (LENGTH + 1)
    other = evaluate(config, cache, cut='packed', count=10**6, seed=5)
    assert np.array_equal(found.tokens, other.tokens)


def test_a_packed_window_above_the_split_is_refused_by_its_size(config, cache):
    _, lengths = stores.open_store(config, 0, 'validation', cache).document_spans()
    total = int((lengths + 1).sum())
    whole = evaluate(config, cache, cut='packed', length=total - 1)
    assert whole.tokens.shape == (1, total)
    with pytest.raises(
        ValueError, match=f'has {total} tokens, EOS included, and a window {total + 1}'
    ):
        evaluate(config, cache, cut='packed', length=total)


@pytest.mark.parametrize('cut', ['documents', 'packed', 'ends'])
def test_windows_begin_with_bos_where_they_are_to(config, cache, cut):
    plain = evaluate(config, cache, cut=cut).tokens
    begun = evaluate(dataclasses.replace(config, bos=True), cache, cut=cut).tokens
    assert (begun[:, 0] == load_tokenizer('bytes').bos_id).all()
    np.testing.assert_array_equal(begun[:, 1:], plain[:, 1:])
