from __future__ import annotations

import pytest

from nope.evals.ruler import vocabulary
from nope.evals.ruler.vocabulary import Keys, Vocabulary


def test_keys_stand_as_if_all_were_made_and_sorted() -> None:
    adjectives = ['red', 'good', 'good-natured', 'go', 'goodly', 'red', 'a', 'a-b']
    nouns = ['cat', 'b-c', 'natured-cat', 'zoo', 'cat', 'c', 'b']
    every = sorted({f'{adjective}-{noun}' for adjective in adjectives for noun in nouns})
    keys = Keys(adjectives, nouns)
    assert len(keys) == len(every) < len(adjectives) * len(nouns)
    assert [keys[i] for i in range(len(keys))] == every


def test_words_are_there_once() -> None:
    found = Vocabulary(('run', 'cat'), ('red',), ('run',), 'made up')
    assert found.words == ['cat', 'red', 'run']
    assert found.fingerprint != Vocabulary(('cat',), ('red',), ('run',), 'made up').fingerprint
    with pytest.raises(ValueError, match='verbs of the vocabulary made up is empty'):
        Vocabulary(('cat',), ('red',), (), 'made up')


def test_the_words_of_the_package_are_read() -> None:
    vocabulary.load.cache_clear()
    found = vocabulary.load()
    assert found.name.startswith('wonderwords ')
    assert (len(found.adjectives), len(found.verbs)) == (912, 1042)
    assert len(found.nouns) > 6000 and len(found.keys) > 6_000_000
