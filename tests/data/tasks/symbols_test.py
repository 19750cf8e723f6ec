"""Symbol lists: closed ones, and those of a SentencePiece model."""

from __future__ import annotations

import pytest

from nope.data import load_tokenizer
from nope.data.tasks import symbols
from nope.data.tokenizers import SentencePieceTokenizer
from tests.data.words import sentencepieces


@pytest.fixture(scope='module')
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> SentencePieceTokenizer:
    """A model with marked and unmarked words, punctuation and a few lone letters."""
    lines = [f'{a} {b} the fox ({a}), b-a jumped; {a}{b} of it = 1' for a in 'abcd' for b in 'xyz7']
    path = tmp_path_factory.mktemp('model') / 'tiny.model'
    path.write_bytes(sentencepieces(lines * 20, vocab_size=90))
    found = load_tokenizer(str(path))
    assert isinstance(found, SentencePieceTokenizer)
    return found


def most(tokenizer: SentencePieceTokenizer, **options) -> tuple[str, ...]:
    """All the strings that a model has."""
    count = 1
    while True:
        try:
            found = symbols.of_model(tokenizer, count, **options)
        except ValueError:
            return found
        count += 1


def test_a_models_strings_are_single_tokens_characters_first(tokenizer) -> None:
    found = most(tokenizer)
    assert len(found) == len(set(found)) > 10
    for name in found:
        ids = tokenizer.encode(' '.join([name] * 5)).tolist()
        assert len(ids) == 5 and len(set(ids)) == 1
        assert '▁' not in name
    first = [name for name in found if name in symbols.COPYING_FIRST]
    assert list(found[: len(first)]) == sorted(first, key=symbols.COPYING_FIRST.index)
    assert {'a', 'b', '1'} <= set(first)
    ids = [tokenizer.encode(name)[0] for name in found[len(first) :]]
    assert ids == sorted(ids), 'words in the order of the vocabulary'
    assert {'the', 'fox'} <= set(found)


def test_characters_that_are_no_single_token_are_left_out(tokenizer) -> None:
    found = most(tokenizer)
    assert 'Q' not in found
    assert not {'<s>', '</s>', '<unk>'} & set(found)


def test_fewer_are_the_first_of_more(tokenizer) -> None:
    assert symbols.of_model(tokenizer, 5) == most(tokenizer)[:5]


def test_sortings_list_has_no_punctuation(tokenizer) -> None:
    plain = most(tokenizer)
    found = most(tokenizer, first=symbols.SORTING_FIRST, without=symbols.SORTING_WITHOUT)
    assert set(found) == {name for name in plain if not symbols.SORTING_WITHOUT & set(name)}
    assert set(found) < set(plain)


def test_words_of_scratchpads_are_no_symbols_where_they_are_reserved(tokenizer) -> None:
    assert 'the' in most(tokenizer)
    found = most(tokenizer, reserved=symbols.RESERVED)
    assert found == tuple(name for name in most(tokenizer) if name not in symbols.RESERVED)


def test_a_model_with_too_few_strings_says_how_many_it_has(tokenizer) -> None:
    has = len(most(tokenizer))
    with pytest.raises(ValueError, match=f'90 pieces has {has} single-token strings; 6052 are'):
        symbols.of_model(tokenizer, 6052)


def test_closed_symbols_are_distinct_words_and_not_those_of_prompts() -> None:
    found = symbols.closed(6052)
    assert len(set(found)) == len(found) == 6052
    assert found[:12] == (*'0123456789', 'a', 'b')
    assert found[61:64] == ('Z', 'aa', 'ab')
    assert all(name.isalnum() for name in found)
    assert not {'in', 'with', 'out', 're', 'comp', 'the', 'is', 'list'} & set(found)
    assert symbols.closed(50) == found[:50]
