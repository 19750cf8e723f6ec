from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

from nope.data import load_tokenizer
from nope.data.tokenizers import ByteTokenizer, Tokenizer
from nope.evals.longbench import DATASETS, prompt_budget
from nope.evals.longbench.prompts import check_settings, prompt
from nope.evals.longbench.reading import LongBenchSample
from tests.data.words import sentencepieces

BYTES = ByteTokenizer()
WORDS = 'The quick brown fox jumps over the lazy dog, and naïve cats — seven — watch. '


def sample(
    context: str = WORDS * 40, dataset: str = 'musique', asked: str = 'Who?'
) -> LongBenchSample:
    return LongBenchSample(dataset, 0, asked, context, ('cats',), ())


@pytest.fixture(scope='module')
def sentencepiece_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    options = {'byte_fallback': True, 'normalization_rule_name': 'identity'}
    path = tmp_path_factory.mktemp('tokenizer') / 'small.model'
    path.write_bytes(sentencepieces([WORDS] * 20, vocab_size=330, **options))
    return load_tokenizer(str(path))


@pytest.mark.parametrize(
    ('window', 'budget'),
    [(2048, 1500), (4096, 3500), (8192, 7500), (16384, 15500), (18432, 17500), (32768, 31500)],
)
def test_budgets_are_the_published_ones(
    window: int, budget: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        assert prompt_budget(window) == budget
    assert caplog.messages == [
        f'LongBench in a window of {window} tokens: prompts of at most {budget}'
    ]


@pytest.mark.parametrize('window', [0, 512, 525])
def test_a_window_without_room_is_refused(window: int) -> None:
    with pytest.raises(ValueError, match=f'window is {window}; it must be at least 526'):
        prompt_budget(window)


def test_a_short_window_has_room_for_the_answers_of_the_data_sets_that_are_asked() -> None:
    assert prompt_budget(100, ['hotpotqa', 'lcc']) == 100 - 64 - 12
    assert prompt_budget(4096, ['hotpotqa']) == 3500, 'one rule for all, where it fits'
    with pytest.raises(ValueError, match='at least 78, 64 tokens for an answer of lcc and 14'):
        prompt_budget(77, ['hotpotqa', 'lcc'])


@pytest.mark.parametrize('name', DATASETS)
def test_a_prompt_is_its_template_filled_once(name: str) -> None:
    asked = sample('<{input}>', name, '{context}{')
    ids = prompt(asked, BYTES, max_length=2000, bos=True).ids
    before, after = DATASETS[name].prompt.split('{context}')
    assert BYTES.decode(ids) == before + '<{input}>' + after.replace('{input}', '{context}{')


@pytest.mark.parametrize('max_length', [-4, 0, 1])
def test_a_budget_without_two_halves_is_refused(max_length: int) -> None:
    with pytest.raises(ValueError, match=f'max_length is {max_length}; it must be at least 2'):
        check_settings(BYTES, max_length, bos=True)


@pytest.mark.parametrize('bos', [False, True])
def test_only_a_prompt_over_the_budget_is_cut(bos: bool) -> None:
    whole = prompt(sample(), BYTES, max_length=10**6, bos=bos)
    exact = prompt(sample(), BYTES, max_length=len(whole.ids), bos=bos)
    assert not whole.truncated and not exact.truncated
    np.testing.assert_array_equal(whole.ids, exact.ids)
    assert prompt(sample(), BYTES, max_length=len(whole.ids) - 1, bos=bos).truncated


@pytest.mark.parametrize('bos', [False, True])
@pytest.mark.parametrize('max_length', [50, 251])
def test_a_cut_prompt_follows_the_protocol(
    sentencepiece_tokenizer: Any, max_length: int, bos: bool
) -> None:
    processor = sentencepiece_tokenizer.processor
    mark = [processor.bos_id()] if bos else []
    text = DATASETS['musique'].prompt.format(context=WORDS * 40, input='Who?')
    ids = mark + processor.encode(text)
    half = int(max_length / 2)
    first = [i for i in ids[:half] if not processor.is_control(i)]
    again = mark + processor.encode(processor.decode(first) + processor.decode(ids[-half:]))
    found = prompt(sample(), sentencepiece_tokenizer, max_length=max_length, bos=bos)
    assert found.truncated
    assert found.ids.tolist() == again
    assert found.ids.dtype == np.int32
    assert abs(len(again) - 2 * half) <= 4


def test_cut_characters_cost_less_than_the_least_margin() -> None:
    """Each half is decoded alone: pieces of a character become U+FFFD, three bytes each."""
    growth = set()
    for shift in range(4):
        for end in range(4):
            asked = sample('x' * shift + '\U00010348' * 99 + 'y' * end, 'gov_report')
            cut = prompt(asked, BYTES, max_length=300, bos=True)
            growth.add(len(cut.ids) - 300)
    assert max(growth) == 8
    assert prompt_budget(1024) + 512 + max(growth) <= 1024
