"""Prompts in batches get what each gets alone from the model without a cache."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope import sharding
from nope.evals import generation, scoring
from nope.evals.generation import Generator, Options
from nope.evals.scoring import Score
from nope.model import LayerKind, ModelConfig, apply
from nope.model.decoding import BeamSearch
from nope.model.lam import LogLength
from nope.model.mixers import Mamba2
from nope.positions import DynamicNTK, Learned, NoPE, RoPE
from nope.variables import Variables
from tests import tiny
from tests.model.decoding.slow import Tokens, slowly

# What every token is depends on the length of its own sequence.
FOLLOWING = tiny.model(
    layers=1,
    attention=None,
    position=RoPE(scaling=DynamicNTK(2.0, train_length=16)),
    lam=LogLength(train_length=16),
    logit_cap=2.0,
)
PLAIN = tiny.model(attention=None, pattern=(LayerKind(RoPE(), window=6), LayerKind(NoPE())))
STATES = tiny.model(
    attention=None,
    layers=3,
    pattern=(LayerKind(mixer=Mamba2(4, 8, 6, groups=2)), LayerKind(), LayerKind(mixer=None)),
)
LONGEST = 128
NEW = 6
PROMPTS = [tiny.tokens(1, n, seed=n)[0] for n in (9, 15, 1, 16)]
ONE_BATCH, ONE_ROW = 10_000, 1


@functools.cache
def generator(config: ModelConfig, batch_tokens: int = ONE_BATCH) -> Generator:
    return Generator(config, tiny.varied_lam(config), tiny.mesh(), batch_tokens=batch_tokens)


@functools.partial(jax.jit, static_argnums=0)
def _log_probs(config: ModelConfig, variables: Variables, tokens: Any, length: Any) -> jax.Array:
    output = apply(config, variables, tokens, length=length)
    logits_TV = output.hidden[0] @ output.head
    if config.logit_cap is not None:
        logits_TV = config.logit_cap * jnp.tanh(logits_TV / config.logit_cap)
    return jax.nn.log_softmax(logits_TV)


def log_probs(config: ModelConfig, tokens: np.ndarray, length: int) -> np.ndarray:
    """[T, V] float64: after every token of a sequence of that length, without a cache."""
    padded = np.zeros((1, config.longest or LONGEST), np.int32)
    padded[0, : len(tokens)] = tokens
    found = _log_probs(config, tiny.varied_lam(config), padded, np.float32(length))
    return np.float64(found)[: len(tokens)]


def after(config: ModelConfig, prompt: np.ndarray, new: Tokens) -> np.ndarray:
    """[V] float64: of the token after these new ones of a row that may get `NEW`."""
    tokens = np.array([*prompt, *new])
    return log_probs(config, tokens, len(prompt) + NEW)[-1]


@functools.cache
def greedy(config: ModelConfig) -> list[list[int]]:
    """Every prompt's `NEW` likeliest tokens."""
    rows = []
    for prompt in PROMPTS:
        new: list[int] = []
        for _ in range(NEW):
            new.append(int(after(config, prompt, tuple(new)).argmax()))
        rows.append(new)
    return rows


def cut(new: Sequence[int], stop: int) -> list[int]:
    return list(new[: new.index(stop)]) if stop in new else list(new)


def lists(found: Sequence[np.ndarray]) -> list[list[int]]:
    """AssertionError unless they are host arrays of int32."""
    assert all(type(ids) is np.ndarray and ids.dtype == np.int32 for ids in found)
    return [ids.tolist() for ids in found]


STOP = greedy(FOLLOWING)[1][2]


# Greedy


@pytest.mark.parametrize('batch_tokens', [ONE_BATCH, ONE_ROW])
def test_every_prompt_gets_its_likeliest_tokens(batch_tokens: int) -> None:
    """In the order of the prompts, each up to the stop id, however they are put together: here one
    alone, of which some need no padding, or all at once."""
    expected = greedy(FOLLOWING)
    assert 0 < sum(STOP in new for new in expected) < len(PROMPTS)
    found = generator(FOLLOWING, batch_tokens).generate(PROMPTS, Options(NEW, stop_ids=(STOP,)))
    assert lists(found) == [cut(new, STOP) for new in expected]


@pytest.mark.parametrize(
    ('lengths', 'shapes'),
    [
        ((40, 33), [(2, 48)]),
        ((33, 40, 34, 47, 41), [(2, 48)] * 3),  # not another program for the last one
        ((47, 12, 40), [(2, 48), (1, 16)]),
        ((12,), [(1, 16)]),
    ],
)
def test_batches_have_few_shapes(
    lengths: tuple[int, ...], shapes: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where two rows of 48 tokens are a batch: rows and tokens of each. Results are in the order of
    the prompts."""
    found = []

    def noting(self: Generator, prompts: Sequence, indices: Sequence, *arguments: Any) -> list:
        found.append(arguments[:2])
        return [np.array([len(prompt)], np.int32) for prompt in prompts]

    monkeypatch.setattr(Generator, '_batch', noting)
    prompts = [tiny.tokens(1, n)[0] for n in lengths]
    made = generator(FOLLOWING, 2 * (48 + NEW)).generate(prompts, Options(NEW))
    assert lists(made) == [[n] for n in lengths]
    assert found == shapes


def test_one_new_token_is_that_of_the_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    """No further step is made, nor compiled."""
    monkeypatch.delattr(generation, 'advance_batch')
    found = generator(FOLLOWING).generate(PROMPTS[:1], Options(1))
    expected = log_probs(FOLLOWING, PROMPTS[0], len(PROMPTS[0]) + 1)[-1].argmax()
    assert lists(found) == [[expected]]
    assert generator(FOLLOWING).generate([], Options(1)) == []


# Rows that something else ends


def test_rows_are_ended_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every few tokens it is said of each row that goes on what it has; a row that is ended keeps
    that, and the others get all they would."""
    monkeypatch.setattr(generation, 'LOOK_EVERY', 2)
    expected = [cut(new, STOP) for new in greedy(FOLLOWING)]
    asked: dict[int, list[list[int]]] = {i: [] for i in range(len(PROMPTS))}

    def ended(i: int, ids: np.ndarray) -> bool:
        asked[i].append(ids.tolist())
        return (i, len(ids)) == (0, 2)

    found = generator(FOLLOWING).generate(PROMPTS, Options(NEW, stop_ids=(STOP,)), ended)
    assert lists(found) == [expected[0][:2], *expected[1:]]
    assert len(expected[0]) > 2
    looks = range(2, NEW, 2)
    assert asked[0] == [expected[0][:2]]
    for i in range(1, len(PROMPTS)):
        # A row that met its stop id is not asked about.
        assert asked[i] == [expected[i][:n] for n in looks if n <= len(expected[i])]


# Samples


def test_samples_follow_the_seed_and_no_other_row() -> None:
    """Nor what else is in the batch."""
    options = Options(NEW, temperature=1.0, top_k=20, top_p=0.95)
    found = lists(generator(FOLLOWING).generate(PROMPTS, options))
    assert lists(generator(FOLLOWING).generate(PROMPTS, options)) == found
    again = generator(FOLLOWING).generate(PROMPTS, dataclasses.replace(options, seed=1))
    assert all(a != b for a, b in zip(lists(again), found, strict=True))
    repeated = [PROMPTS[0], PROMPTS[1], PROMPTS[0], PROMPTS[0]]
    alike = lists(generator(FOLLOWING).generate(repeated, options))
    assert alike[:2] == found[:2]
    assert len({tuple(alike[i]) for i in (0, 2, 3)}) == 3
    numbered = generator(FOLLOWING).generate(repeated, options, numbers=[3, 1, 0, 3])
    assert [lists(numbered)[i] for i in (0, 1, 2)] == [alike[3], found[1], found[0]]
    assert lists(numbered)[3] == alike[3]


# Beams


@functools.cache
def beams(config: ModelConfig = FOLLOWING) -> list[list[int]]:
    search = BeamSearch(BEAMS.beams, BEAMS.length_penalty)
    return [
        slowly(search, functools.partial(after, config, prompt), NEW, BEAMS.stop_ids, BEAMS.least)[
            0
        ]
        for prompt in PROMPTS
    ]


BEAMS = Options(NEW, beams=2, length_penalty=0.5, stop_ids=(STOP, 40), least=2)


def test_beam_search_is_that_of_every_prompt_alone() -> None:
    found = lists(generator(FOLLOWING).generate(PROMPTS[:3], BEAMS))
    assert found == beams()[:3]
    assert found != greedy(FOLLOWING)[:3]


def test_states_go_with_their_beams() -> None:
    found = lists(generator(STATES).generate(PROMPTS[:3], BEAMS))
    assert found == beams(STATES)[:3]
    assert found != greedy(STATES)[:3]
    assert lists(generator(STATES).generate(PROMPTS, Options(NEW))) == greedy(STATES)


# Scores

SHORT = [(1, 1), (9, 5), (30, 1), (16, 12), (2, 60)]
PAIRS = [
    (tiny.tokens(1, p, seed=p)[0], tiny.tokens(1, c, seed=100 + c)[0])
    for p, c in [*SHORT, (5, 0), (64, 1), (63, 3), (50, 70), (1, 100)]
]


def assert_scores(
    config: ModelConfig, pairs: Sequence, found: Sequence[Score], written: bool = False
) -> None:
    """Those of the whole sequence at once, without a cache."""
    for (prompt, continuation), score in zip(pairs, found, strict=True):
        tokens = np.concatenate([prompt, continuation])
        told = len(tokens) - 1 + written
        of_all = log_probs(config, tokens[:-1], told)[len(prompt) - 1 :]
        assert score.log_probs.dtype == np.float32 and score.greedy.dtype == bool
        assert len(score.log_probs) == len(score.greedy) == len(continuation)
        if len(continuation):
            expected = of_all[np.arange(len(continuation)), continuation]
            np.testing.assert_allclose(score.log_probs, expected, rtol=1e-5, atol=2e-5)
            np.testing.assert_array_equal(score.greedy, of_all.argmax(axis=1) == continuation)


@pytest.mark.parametrize(
    ('config', 'batch_tokens'),
    [(PLAIN, ONE_BATCH), (FOLLOWING, ONE_BATCH), (STATES, ONE_BATCH)],
    ids=['plain', 'following', 'states'],
)
def test_scores_are_those_of_the_log_softmax(config: ModelConfig, batch_tokens: int) -> None:
    """Of continuations of any length, also longer than a piece, and of those that are greedy."""
    pairs = [*PAIRS]
    if config == FOLLOWING:
        pairs.append((PROMPTS[1], np.array(greedy(FOLLOWING)[1][:1])))
    prompts, continuations = zip(*pairs, strict=True)
    subject = generator(config, batch_tokens)
    found = subject.score(prompts, continuations)
    assert_scores(config, pairs, subject.score(prompts, continuations, written=True), written=True)
    assert_scores(config, pairs, found)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shapes of all tokens that scores read."""
    shapes: list[tuple[int, ...]] = []

    def noting(module: Any, name: str, position: int) -> None:
        function = getattr(module, name)

        def wrapped(*arguments: Any) -> Any:
            shapes.append(arguments[position].shape)
            return function(*arguments)

        monkeypatch.setattr(module, name, wrapped)

    noting(scoring, 'read_piece', 3)
    noting(scoring, '_fill', 3)
    return shapes


def beginning_alike(count: int, lengths: Sequence[int]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Pairs of one beginning."""
    start = tiny.tokens(1, count, seed=1)[0]
    return [
        (np.concatenate([start, tiny.tokens(1, n, seed=i)[0]]), tiny.tokens(1, 40, seed=50 + i)[0])
        for i, n in enumerate(lengths)
    ]


@pytest.mark.parametrize('config', [PLAIN, FOLLOWING], ids=['plain', 'following'])
def test_what_is_shared_is_read_once(config: ModelConfig, read: list[tuple[int, ...]]) -> None:
    """70 tokens of ten sequences, in three batches: two pieces of one row, and one piece for each
    batch. Sequences of a model that follows their length must be of the same."""
    pairs = beginning_alike(70, [12] * 10)
    four_rows = generator(config, 4 * LONGEST)
    found = four_rows.score(*zip(*pairs, strict=True))
    assert read == [(1, 64)] * 2 + [(4, 64)] * 3
    assert_scores(config, pairs, found)
    read.clear()
    changed = [(np.concatenate([[i], p[1:]]).astype(np.int32), c) for i, (p, c) in enumerate(pairs)]
    found = four_rows.score(*zip(*changed, strict=True))
    assert read == [(4, 64)] * 2 * 3
    assert_scores(config, changed, found)


def test_lengths_that_a_model_follows_share_nothing(read: list[tuple[int, ...]]) -> None:
    pairs = beginning_alike(70, [11, 12, 12, 13])
    found = generator(FOLLOWING, 4 * LONGEST).score(*zip(*pairs, strict=True))
    assert read == [(4, 64)] * 2
    assert_scores(FOLLOWING, pairs, found)


def test_states_share_nothing(read: list[tuple[int, ...]]) -> None:
    """They cannot go back to the end of what is shared."""
    pairs = beginning_alike(70, [12] * 4)
    found = generator(STATES, 4 * LONGEST).score(*zip(*pairs, strict=True))
    assert read == [(4, 64)] * 2
    assert_scores(STATES, pairs, found)


# Meshes


def on_mesh(*shape: int) -> Generator:
    mesh = sharding.make_mesh(sharding.MeshConfig(*shape))
    spread = tiny.spread(tiny.varied_lam(FOLLOWING), FOLLOWING, mesh)
    return Generator(FOLLOWING, spread, mesh, batch_tokens=ONE_BATCH)


def test_rows_and_heads_are_spread_over_devices(read: list[tuple[int, ...]]) -> None:
    """Rows over four, heads over two. What scores share is read by every part that takes rows."""
    spread = on_mesh(2, 2, 2, 1)
    found = lists(spread.generate(PROMPTS[:3], Options(NEW, stop_ids=(STOP,))))
    assert found == [cut(new, STOP) for new in greedy(FOLLOWING)[:3]]
    pairs = beginning_alike(70, [12] * 5)
    scores = spread.score(*zip(*pairs, strict=True))
    assert read == [(4, 64)] * 2 + [(8, 64)]
    assert_scores(FOLLOWING, pairs, scores)


def test_beams_stay_with_their_row_on_many_devices() -> None:
    """Devices that split the sequence elsewhere take rows too."""
    assert lists(on_mesh(1, 1, 2, 4).generate(PROMPTS[:3], BEAMS)) == beams()[:3]


# What is refused

LEARNED = tiny.model(attention=None, position=Learned(size=20))


def test_positions_end_with_the_table() -> None:
    """Of a sequence that is scored the last token is not read; padding is read beyond the end."""
    pairs = [(PROMPTS[0], tiny.tokens(1, n, seed=n)[0]) for n in (12, 1)]
    assert_scores(LEARNED, pairs, generator(LEARNED).score(*zip(*pairs, strict=True)))
    with pytest.raises(ValueError, match='9 tokens and 12 new ones: learned positions end at 20'):
        generator(LEARNED).score(PROMPTS[:1], [tiny.tokens(1, 13)[0]])
    with pytest.raises(ValueError, match='16 tokens and 6 new ones: learned positions end at 20'):
        generator(LEARNED).generate(PROMPTS[3:], Options(NEW))


@pytest.mark.parametrize('ids', [[-1], [3, 64]])
def test_ids_that_the_model_does_not_have_are_refused(ids: list[int]) -> None:
    wrong = [np.array(ids, np.int32)]
    message = rf'ids from {min(ids)} to {max(ids)}; those of the model are 0 to 63'
    for ask in (
        lambda: generator(PLAIN).generate(wrong, Options(1)),
        lambda: generator(PLAIN).score(wrong, PROMPTS[:1]),
        lambda: generator(PLAIN).score(PROMPTS[:1], wrong),
    ):
        with pytest.raises(ValueError, match=message):
            ask()


def test_questions_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match='a prompt is empty'):
        generator(PLAIN).generate([*PROMPTS, PROMPTS[0][:0]], Options(1))
    with pytest.raises(ValueError, match='a prompt is empty'):
        generator(PLAIN).score([PROMPTS[0][:0]], PROMPTS[:1])
    with pytest.raises(ValueError, match=r'zip\(\) argument'):
        generator(PLAIN).score(PROMPTS, PROMPTS[:1])
    with pytest.raises(ValueError, match='`ended` needs beams=1'):
        generator(PLAIN).generate(PROMPTS, Options(2, beams=2), lambda i, ids: True)
    with pytest.raises(ValueError, match='batch_tokens is 0; it must be at least 1'):
        Generator(PLAIN, tiny.variables(PLAIN), tiny.mesh(), batch_tokens=0)


def test_scores_that_are_no_numbers_are_refused() -> None:
    broken = jax.tree.map(lambda x: x * np.nan, tiny.variables(PLAIN))
    asked = Generator(PLAIN, broken, tiny.mesh(), batch_tokens=ONE_BATCH)
    with pytest.raises(ValueError, match=r'sequence 0 \(9 tokens and 15 that are scored\) are NaN'):
        asked.score(PROMPTS[:1], PROMPTS[1:2])


@pytest.mark.parametrize(('value', 'how'), [(np.inf, {}), (np.nan, {'beams': 2})], ids=str)
def test_logits_that_are_no_numbers_write_nothing(value: float, how: dict[str, Any]) -> None:
    variables = tiny.variables(PLAIN)
    head_DV = variables['params']['head'] * 0 + value
    broken = {**variables, 'params': {**variables['params'], 'head': head_DV}}
    asked = Generator(PLAIN, broken, tiny.mesh(), batch_tokens=ONE_BATCH)
    with pytest.raises(ValueError, match=r'prompt 3 \(16 tokens\) are NaN or infinite'):
        asked.generate(PROMPTS, Options(2, **how))


@pytest.mark.parametrize(
    ('fields', 'message'),
    [
        ({'new_tokens': 0}, 'new_tokens is 0; it must be at least 1'),
        ({'least': 5}, 'least is 5; it lies between 0 and new_tokens'),
        ({'stop_ids': (3, -1)}, r'stop_ids are \(3, -1\); ids are 0 or more'),
        ({'beams': 2, 'temperature': 1.0}, 'beams is 2 and temperature 1.0: beams are not sampled'),
        ({'temperature': -1.0}, 'temperature is -1.0'),
    ],
)
def test_options_that_cannot_be_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Options(**{'new_tokens': 4} | fields)
