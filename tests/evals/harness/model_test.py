"""The harness's three requests, answered as its own description of them says."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any

import jax
import numpy as np
import pytest
from lm_eval.api.instance import Instance

from nope.data import load_tokenizer
from nope.evals.harness import adapter, model
from nope.evals.samples import SampleLog
from nope.interop.tokenizer_files import write_tokenizer
from tests.evals.harness.fakes import BEGIN, END, TABLE, TOKENIZER, FakeGenerator, direct

PAIRS = [('The sky is', ' blue'), ('', 'Rain'), ('A bird', ' can fly'), ('Snow ', 'is white')]


def instances(kind: str, arguments: list[tuple]) -> list[Instance]:
    return [
        Instance(kind, {}, argument, 0, metadata=('mine', i, 1))  # type: ignore[arg-type]
        for i, argument in enumerate(arguments)
    ]


def adapted(generator: FakeGenerator, **options: Any) -> Any:
    return adapter(generator, TOKENIZER, **{'window': 64, **options})  # type: ignore[arg-type]


def test_log_likelihoods_are_those_of_a_direct_computation() -> None:
    found = adapted(FakeGenerator()).loglikelihood(instances('loglikelihood', PAIRS))
    wanted = [direct(*pair) for pair in PAIRS]
    # The space that ends a context is scored with what follows it.
    wanted[3] = direct('Snow', ' is white')
    np.testing.assert_allclose([value for value, _ in found], wanted, rtol=1e-6)
    assert [greedy for _, greedy in found] == [False] * len(PAIRS)


def test_a_continuation_is_greedy_where_every_token_is_the_most_likely() -> None:
    best = TABLE.argmax(axis=-1)
    texts = [
        bytes([a, best[a], best[best[a]]]) for a in range(128) if max(best[a], best[best[a]]) < 128
    ]
    text = texts[0].decode()
    pairs = [(text[0], text[1:]), (text[0], text[1] + chr(ord(text[2]) ^ 1))]
    answers = adapted(FakeGenerator()).loglikelihood(instances('loglikelihood', pairs))
    assert [greedy for _, greedy in answers] == [True, False]


def test_a_context_loses_its_beginning_to_the_window() -> None:
    generator = FakeGenerator()
    adapted(generator, window=6).loglikelihood(instances('loglikelihood', [('abcdefgh', 'xyz')]))
    # Seven ids, of which the model reads six and predicts the last.
    assert generator.asked == [[([*b'efgh'], [*b'xyz'])]]


def test_a_continuation_beyond_the_window_is_read_whole_where_that_is_accepted() -> None:
    generator, pairs = FakeGenerator(), [('abc', 'x' * 65), ('abcdefgh', 'x' * 63)]
    found = adapted(generator, beyond=True).loglikelihood(instances('loglikelihood', pairs))
    assert sorted(generator.asked[0]) == [([*b'c'], [120] * 65), ([*b'gh'], [120] * 63)]
    assert found[0][0] == pytest.approx(direct('abc', 'x' * 65), rel=1e-6)


def test_bos_begins_every_text_and_stands_for_nothing() -> None:
    generator = FakeGenerator()
    adapted(generator, bos=True).loglikelihood(instances('loglikelihood', [('ab', 'c'), ('', 'd')]))
    assert generator.asked == [[([BEGIN, *b'ab'], [*b'c']), ([BEGIN], [*b'd'])]]
    assert adapted(generator).tok_encode('a') == [*b'a']
    assert adapted(generator, bos=True).tok_encode('a') == [BEGIN, *b'a']
    assert adapted(generator, bos=True).tok_encode('a', add_special_tokens=False) == [*b'a']
    assert adapted(generator).tok_encode('a', add_special_tokens=True) == [*b'a'], 'no prefix'


def test_the_tokenizers_own_prefix_begins_texts_and_is_kept() -> None:
    """Also where a context loses its beginning; a whole text has it once."""
    own = dataclasses.replace(TOKENIZER, prefix=(BEGIN,))
    generator = FakeGenerator()
    asked = adapter(generator, own, window=6)  # type: ignore[arg-type]
    asked.loglikelihood(instances('loglikelihood', [('ab', 'c'), ('abcdefgh', 'xyz')]))
    assert generator.asked == [[([BEGIN, *b'ab'], [*b'c']), ([BEGIN, *b'fgh'], [*b'xyz'])]]
    asked.generate_until(instances('generate_until', [('abcdefgh', {'max_gen_toks': 2})]))
    assert generator.prompts == [[[BEGIN, *b'fgh']]]
    plain = adapter(generator, own, window=6, bos=False)  # type: ignore[arg-type]
    assert plain.tok_encode('a') == [*b'a']


def test_texts_are_read_as_stock_reads_them(tmp_path: pathlib.Path) -> None:
    """What spells a special token is that token, in contexts and in stops."""
    write_tokenizer('bytes', tmp_path)
    tokenizer = load_tokenizer(str(tmp_path / 'tokenizer.json'))
    generator = FakeGenerator(lambda i, prompt: 'yes\nno')
    asked = adapter(generator, tokenizer, window=99)  # type: ignore[arg-type]
    assert asked.tok_encode('<s>a') == [BEGIN, *b'a'] and asked.prefix_token_id == BEGIN
    arguments = {'until': ['<s>', '\n'], 'max_gen_toks': 9}
    requests = instances('generate_until', [('a', arguments)])
    assert asked.generate_until(requests) == ['yes']
    assert generator.options[0].stop_ids == (END, BEGIN)


@pytest.mark.parametrize(
    ('pair', 'said'),
    [
        (('abc', ''), "the continuation '' of 'abc' has no token"),
        (('abc', 'x' * 65), '65 tokens; it must not be longer than the window, 64'),
    ],
)
def test_a_continuation_that_cannot_be_scored_is_named(pair: tuple[str, str], said: str) -> None:
    generator = FakeGenerator()
    with pytest.raises(ValueError, match=said):
        adapted(generator).loglikelihood(instances('loglikelihood', [PAIRS[0], pair]))
    assert not generator.asked


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match='window is 0; it must be at least 1'):
        adapted(FakeGenerator(), window=0)
    unmarked = dataclasses.replace(TOKENIZER, bos_id=None)
    with pytest.raises(ValueError, match='bos is True; accepted: False or None; the tok'):
        adapter(FakeGenerator(), unmarked, window=8, bos=True)  # type: ignore[arg-type]


@pytest.mark.parametrize('bos', [False, True])
@pytest.mark.parametrize('length', [0, 1, 8, 9, 20])
def test_a_rolling_text_is_scored_token_by_token_once(length: int, bos: bool) -> None:
    generator = FakeGenerator()
    text = 'The rain in Spain stays'[:length]
    found = adapted(generator, window=8, bos=bos).loglikelihood_rolling(
        instances('loglikelihood_rolling', [(text,)])
    )
    first = BEGIN if bos else END
    wanted = direct('', text, first) if text else 0.0
    np.testing.assert_allclose(found, [wanted], rtol=1e-6)
    windows = [window for call in generator.asked for window in call]
    assert [t for _, ids in windows for t in ids] == [*text.encode()]
    assert all(len(context) + len(ids) <= 9 for context, ids in windows)
    # All but the first read as much as fits.
    assert all(len(context) + len(ids) == 9 for context, ids in windows[1:])


def test_a_rolling_text_stands_behind_the_tokenizers_own_prefix() -> None:
    generator = FakeGenerator()
    tokenizer = dataclasses.replace(TOKENIZER, prefix=(BEGIN, 1))
    found = adapter(generator, tokenizer, window=4)  # type: ignore[arg-type]
    found.loglikelihood_rolling(instances('loglikelihood_rolling', [('abcdef',), ('',)]))
    assert generator.asked == [[([BEGIN, 1], [*b'abc']), ([*b'bc'], [*b'def'])]]


def test_a_text_ends_before_the_first_of_its_stops() -> None:
    generator = FakeGenerator(lambda i, prompt: f'{prompt} one\nand two. Three\n\nfour')
    requests = instances(
        'generate_until',
        [
            ('a', {'until': ['\n\n', '. ']}),
            ('b', {'until': '\n'}),
            ('c', {'until': []}),
            ('d', {'until': ['Three', ''], 'max_gen_toks': 5}),
        ],
    )
    found = adapted(generator, window=400).generate_until(requests)
    assert found == ['a one\nand two', 'b one', 'c one\nand two. Three\n\nfour', 'd one']
    assert [options.new_tokens for options in generator.options] == [256, 5]
    assert all(options.stop_ids == (END,) for options in generator.options)
    assert generator.made[1] == 8  # looked at after four tokens and eight
    assert generator.made[2] == len(found[2])


def test_a_prompt_leaves_room_for_the_new_tokens() -> None:
    generator = FakeGenerator()
    requests = instances('generate_until', [('abcdefgh', {'max_gen_toks': 5}), ('', {})])
    with pytest.raises(ValueError, match=r'task mine: .*max_gen_toks is 256; it must leave room'):
        adapted(generator, window=8).generate_until(requests)
    assert not generator.options
    adapted(generator, window=8).generate_until(requests[:1])
    assert generator.prompts == [[[*b'fgh']]]
    adapted(generator, window=257).generate_until(requests[1:])
    assert generator.prompts[1] == [[END]]


@pytest.mark.parametrize('at_once', [1, 64])
def test_what_a_sample_is_drawn_by_depends_on_no_chunk(
    monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """Chunks grow with the devices; and texts that are alike are drawn by numbers of their own."""
    sampled = {'do_sample': True, 'temperature': 0.5, 'max_gen_toks': 9}
    requests = instances('generate_until', [('a', sampled)] * 5 + [('b', sampled)] * 2)
    drawn = []
    for size in (at_once, 2):
        monkeypatch.setattr(model, 'TEXTS_AT_ONCE', size)
        monkeypatch.setattr(jax, 'device_count', lambda: 1)
        generator = FakeGenerator()
        adapted(generator, seed=3).generate_until(requests)
        drawn.append(generator.numbers)
    assert drawn[0] == drawn[1] and len(set(drawn[0])) == 7
    assert all(0 <= number < 2**32 for number in drawn[0])


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model.jax, 'device_count', lambda: 1)
    monkeypatch.setattr(model, 'SCORES_AT_ONCE', 2)
    monkeypatch.setattr(model, 'TEXTS_AT_ONCE', 2)


class Killed(Exception):
    pass


def killed_after(chunks: int) -> Any:
    def progress(items: Any) -> Any:
        for i, item in enumerate(items):
            if i == chunks:
                raise Killed
            yield item

    return progress


@pytest.mark.usefixtures('small_chunks')
def test_a_killed_evaluation_goes_on_where_it_was(tmp_path: pathlib.Path) -> None:
    path = tmp_path / 'samples.jsonl'
    pairs = [(f'context {i}', f' answer {i}') for i in range(5)]
    texts = [(f'prompt {i}', {'until': '.', 'max_gen_toks': 9}) for i in range(3)]
    scored, written = instances('loglikelihood', pairs), instances('generate_until', texts)
    wanted = adapted(FakeGenerator()).loglikelihood(scored)
    first = adapted(FakeGenerator(), log=SampleLog(path), progress=killed_after(1))
    with pytest.raises(Killed):
        first.loglikelihood(scored)
    assert len(SampleLog(path)) == 2

    generator = FakeGenerator()
    again = adapted(generator, log=SampleLog(path))
    assert again.loglikelihood(scored) == wanted
    assert [len(call) for call in generator.asked] == [2, 1]
    assert again.generate_until(written) == [f'prompt {i}' for i in range(3)]

    silent = FakeGenerator()
    finished = adapted(silent, log=SampleLog(path))
    assert finished.loglikelihood(scored) == wanted
    assert finished.generate_until(written) == [f'prompt {i}' for i in range(3)]
    assert not silent.asked and not silent.options


def test_requests_that_are_alike_are_asked_once_and_another_window_anew(
    tmp_path: pathlib.Path,
) -> None:
    generator, log = FakeGenerator(), SampleLog(tmp_path / 'samples.jsonl')
    requests = instances('loglikelihood', [('ab', 'c'), ('de', 'f'), ('ab', 'c')])
    found = adapted(generator, log=log).loglikelihood(requests)
    assert found[0] == found[2] != found[1]
    assert [len(call) for call in generator.asked] == [2]
    adapted(generator, log=log, window=2).loglikelihood(requests)
    assert len(generator.asked) == 1  # the window holds them: the model is given the same
    adapted(generator, log=log, window=1).loglikelihood(requests)
    assert generator.asked[1] == [([ord('b')], [ord('c')]), ([ord('e')], [ord('f')])]
