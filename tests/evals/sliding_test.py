"""Windows as the paper takes them, each scored as if it were alone, none lost and none twice."""

from __future__ import annotations

import dataclasses
import functools
import math
import pathlib
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope import sharding
from nope.data import DataConfig
from nope.data.documents import Documents, open_documents
from nope.data.sources import Text
from nope.evals import bootstrap, sliding
from nope.evals.samples import SampleLog
from nope.model import apply
from nope.model.lam import LogLength
from nope.positions import Learned
from nope.records import Records, unigram_entropy
from nope.variables import Variables, lam_of, with_lam
from tests import tiny
from tests.data.documents import whole

# Multipliers depend on the length of the sequence: a window of W tokens is one of W.
CAP = 2.0  # of logits
CONFIG = tiny.model(vocab_size=258, lam=LogLength(train_length=8), logit_cap=CAP)
SIZES = (30, 15, 47, 16, 5, 24, 60, 31)  # of the documents, without BOS
LENGTHS = (16, 24)
STRIDE, BUDGET = 6, 6 * 17
BATCH_TOKENS = 72  # 4 windows of 16 tokens, 3 of 24


@pytest.fixture(scope='module')
def documents(tmp_path_factory: pytest.TempPathFactory) -> Documents:
    return open_corpus(tmp_path_factory.mktemp('sliding'), bos=True)


def open_corpus(folder: pathlib.Path, *, bos: bool, once: bool = True) -> Documents:
    draw = np.random.default_rng(1)
    for split in ('train', 'test'):
        (folder / 'books' / split).mkdir(parents=True)
        for i, size in enumerate(SIZES):
            text = draw.integers(32, 127, size).astype(np.uint8).tobytes()
            (folder / 'books' / split / f'{i}.txt').write_bytes(text)
    config = DataConfig((Text(str(folder / 'books')),))
    return open_documents(config, split='test', cache=folder, bos=bos, once=once)


def run(
    documents: Documents, log: SampleLog, lengths: tuple[int, ...] = LENGTHS, **changes: Any
) -> Records:
    options: dict[str, Any] = {
        'variables': tiny.varied_lam(CONFIG),
        'stride': STRIDE,
        'budget': BUDGET,
        'aligned': False,
        'mesh': tiny.mesh(),
        'batch_tokens': BATCH_TOKENS,
        'log': log,
    }
    config = changes.pop('config', CONFIG)
    return sliding.run(config, documents=documents, lengths=lengths, **(options | changes))


def log_in(folder: pathlib.Path) -> SampleLog:
    return SampleLog(folder / 'samples.jsonl')


@functools.partial(jax.jit, static_argnums=2)
def logits(variables: Variables, tokens_T: jax.Array, length: int) -> jax.Array:
    output = apply(CONFIG, variables, tokens_T[None], length=length)
    return CAP * jnp.tanh((output.hidden @ output.head)[0] / CAP)


def direct(variables: Variables, tokens_W: np.ndarray, stride: int) -> float:
    """Mean loss of a window's last tokens, by a whole forward pass of what is before each."""
    logits_TV = np.asarray(logits(variables, tokens_W[:-1], len(tokens_W)), np.float64)
    log_probs_TV = logits_TV - np.log(np.exp(logits_TV).sum(axis=1, keepdims=True))
    scored = np.arange(len(tokens_W) - stride, len(tokens_W))
    return -float(np.mean([log_probs_TV[t - 1, tokens_W[t]] for t in scored]))


def brute_force(counts: Iterable[int], window: int, stride: int) -> list[tuple[int, int]]:
    """(document, end) of every window."""
    found = []
    for document, count in enumerate(counts):
        end = window
        while end < count:
            found.append((document, end))
            end += stride
    return found


# The plan


@pytest.mark.parametrize(('window', 'stride'), [(8, 1), (8, 7), (13, 3)])
def test_windows_are_those_of_the_loop(window: int, stride: int) -> None:
    counts = np.random.default_rng(0).integers(1, 60, 40)
    expected = brute_force(counts, window, stride)
    for taken in (1, 2, len(expected) - 1, len(expected), len(expected) + 9):
        # What is left of the budget below one stride buys nothing.
        plan = sliding.plan(counts, window, stride=stride, budget=taken * stride + stride - 1)
        found = list(zip(plan.documents.tolist(), plan.ends.tolist(), strict=True))
        assert found == expected[:taken]
        assert len(plan) == len(found) == min(taken, len(expected))
        assert plan.documents_used == len({document for document, _ in found})


def test_a_document_has_so_many_windows_at_most() -> None:
    counts = np.random.default_rng(0).integers(1, 60, 40)
    every = brute_force(counts, 13, 3)
    expected = [
        (document, end)
        for document, end in every
        if end < 13 + 4 * 3  # its first four
    ]
    for taken in (7, len(expected), len(every)):
        plan = sliding.plan(counts, 13, stride=3, budget=3 * taken, per_document=4)
        found = list(zip(plan.documents.tolist(), plan.ends.tolist(), strict=True))
        assert found == expected[:taken]


def test_every_length_scores_the_tokens_that_the_longest_can() -> None:
    counts = np.array([40, 9, 90])
    found = sliding.plans(counts, (8, 33, 16), stride=4, budget=48)
    for plan in found:
        np.testing.assert_array_equal(plan.ends, found[1].ends)
        np.testing.assert_array_equal(plan.documents, found[1].documents)
    assert [plan.window for plan in found] == [8, 33, 16]
    assert found[0].ends.min() == 33 and len(found[0]) == 12
    published = sliding.plans(counts, (8, 33), stride=4, budget=48, aligned=False)
    assert [plan.ends.min() for plan in published] == [8, 33]


def test_the_numbers_of_the_paper() -> None:
    """2,097,152 tokens are 8192 windows: of 22 books of 100,000 tokens at 2048, 26 at 16384."""
    counts = np.full(100, 100_000)
    for window, books in ((2048, 22), (16384, 26)):
        plan = sliding.plan(counts, window, stride=256, budget=16384 * 128)
        each = math.ceil((100_000 - window) / 256)
        assert len(plan) == 8192
        assert plan.documents_used == math.ceil(8192 / each) == books
        assert plan.ends[:3].tolist() == [window, window + 256, window + 512]


@pytest.mark.parametrize(
    ('counts', 'window', 'stride', 'budget', 'message'),
    [
        ([40], 16, 17, 99, 'stride 17: must be at least 1 and below the window, 16'),
        ([40], 16, 16, 99, 'stride 16: must be at least 1 and below the window, 16'),
        ([40], 16, 0, 99, 'stride 0: must be at least 1'),
        ([40], 16, 4, 3, 'budget 3: scores less than one stride, 4'),
        ([16, 7], 16, 4, 99, 'window 16: no document is longer; the longest of 2 has 16 tokens'),
        ([], 16, 4, 99, 'there are no documents'),
    ],
)
def test_impossible_plans_are_refused(counts, window, stride, budget, message) -> None:
    with pytest.raises(ValueError, match=message):
        sliding.plan(np.asarray(counts, np.int64), window, stride=stride, budget=budget)


# The scores


@pytest.mark.parametrize('bos', [True, False])
def test_every_window_is_scored_as_if_alone(bos: bool, tmp_path: pathlib.Path) -> None:
    """Whatever the batch; multipliers are those of the window's length."""
    documents = open_corpus(tmp_path / 'corpus', bos=bos)
    variables, log = tiny.varied_lam(CONFIG), log_in(tmp_path)
    found, texts = run(documents, log), whole(documents)
    scored: list[tuple[int, int]] = []
    for index, length in enumerate(LENGTHS):
        counts = [size + bos for size in SIZES]
        windows = brute_force(counts, length, STRIDE)[: BUDGET // STRIDE]
        scored = scored or [(d, end) for d, end in windows]  # those of the shortest
        losses = []
        for document, end in windows:
            tokens = texts[document][end - length : end]
            assert (tokens[0] == 257) == (bos and end == length)
            losses.append(direct(variables, tokens, STRIDE))
            row = log[f'{length}/{document}/{end}']
            assert row['tokens'] == STRIDE
            np.testing.assert_allclose(row['loss'], losses[-1], rtol=1e-6)
        np.testing.assert_allclose(found['loss'][index], np.mean(losses), rtol=1e-6)
        assert found['windows'][index] == len(windows)
        assert found['documents'][index] == len({document for document, _ in windows})
    np.testing.assert_array_equal(found['perplexity'], np.exp(found['loss']))
    assert len(log) == found['windows'].sum()
    assert found.along('length', 2).tolist() == list(LENGTHS)
    tokens = np.concatenate([texts[d][end - STRIDE : end] for d, end in scored])
    assert dict(found.attributes) == {
        'evaluation': 'perplexity',
        'unigram_nats': pytest.approx(unigram_entropy(tokens)),
        'stride': STRIDE,
        'scored': STRIDE * int(found['windows'].min()),
        'bos': bos,
        'corpus': 'books',
    }


def test_the_floor_is_of_the_tokens_that_are_scored_not_of_what_stands_in_front(
    tmp_path: pathlib.Path,
) -> None:
    """With BOS at the start of every window, as many programs read."""
    plain = open_corpus(tmp_path / 'plain', bos=False)
    every = open_corpus(tmp_path / 'every', bos=True, once=False)
    floors = [run(found, log_in(tmp_path / str(i))) for i, found in enumerate((plain, every))]
    scored = sliding.plans(every.lengths, LENGTHS, stride=STRIDE, budget=BUDGET, aligned=False)[0]
    tokens = every.windows(scored.documents, scored.ends, scored.window)[:, -STRIDE:]
    assert (tokens != 257).all()
    assert floors[1].attributes['unigram_nats'] == pytest.approx(unigram_entropy(tokens))
    assert abs(floors[0].attributes['unigram_nats'] - unigram_entropy(tokens)) < 0.2


@pytest.mark.parametrize(
    'shape', [{'data': 2, 'fsdp': 2, 'tensor': 2}, {'data': 2, 'context': 4}], ids=str
)
def test_scores_are_the_same_on_many_devices(shape, documents, tmp_path) -> None:
    """Fewer windows than fill the last batch; where the sequence is split, W tokens are."""
    mesh = sharding.make_mesh(sharding.MeshConfig(**shape))
    spread = tiny.spread(tiny.varied_lam(CONFIG), CONFIG, mesh)
    many = {'config': dataclasses.replace(CONFIG, attention='chunked'), 'mesh': mesh}
    found = run(documents, log_in(tmp_path / 'many'), (16,), variables=spread, **many)
    expected = run(documents, log_in(tmp_path / 'one'), (16,))
    np.testing.assert_allclose(found['loss'], expected['loss'], rtol=1e-6)
    np.testing.assert_array_equal(found['windows'], expected['windows'])


@pytest.mark.parametrize(
    ('devices', 'batch_tokens', 'shapes'),
    [
        (2, 50, [(4, 24)] * 3),  # two windows of 50 tokens on each
        (2, 10**6, [(10, 24)]),  # all of them, and one twice
        (1, 5, [(1, 24)] * 9),
    ],
)
def test_batches_are_full_and_divisible(
    documents, tmp_path, monkeypatch, devices, batch_tokens, shapes
) -> None:
    found = []

    def measure(config, stride, variables, tokens):
        found.append(tokens.shape)
        return tokens[:, -1].astype(np.float32)

    monkeypatch.setattr(sliding, 'loss_sums', measure)
    mesh = sharding.make_mesh(sharding.MeshConfig(data=devices), jax.devices()[:devices])
    options = {'mesh': mesh, 'batch_tokens': batch_tokens, 'budget': 9 * STRIDE}
    records = run(documents, log_in(tmp_path), (24,), **options)
    assert found == shapes
    texts = whole(documents)
    last = [texts[d][e - 1] / STRIDE for d, e in brute_force(documents.lengths, 24, STRIDE)]
    np.testing.assert_allclose(records['loss'], np.mean(last[:9]))


# Kills


class _KillError(Exception):
    pass


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """The tokens of every batch that was measured, as they come."""
    seen: list[np.ndarray] = []
    measure = sliding.loss_sums

    def counted(config, stride, variables, tokens):
        seen.append(np.asarray(tokens))
        return measure(config, stride, variables, tokens)

    monkeypatch.setattr(sliding, 'loss_sums', counted)
    return seen


@pytest.mark.parametrize(('batches', 'logged'), [(1, 0), (4, 12)])
def test_after_a_kill_the_rest_is_measured_and_nothing_again(
    documents, tmp_path, calls, batches, logged
) -> None:
    """Killed when so many batches were begun and all but the last of them logged, with the last
    line of the log cut in the middle."""

    def killed(items: Iterable) -> Iterable:
        for number, item in enumerate(items):
            if number == batches:
                raise _KillError
            yield item

    whole = run(documents, log_in(tmp_path / 'whole'))
    every = [tokens.tobytes() for batch in calls for tokens in batch]
    calls.clear()
    folder = tmp_path / 'killed'
    with pytest.raises(_KillError):
        run(documents, log_in(folder), progress=killed)
    assert len(calls) == batches
    path = folder / 'samples.jsonl'
    if path.exists():
        content = path.read_bytes()
        path.write_bytes(content[: content[:-1].rfind(b'\n') + 20])
    kept = log_in(folder)
    assert len(kept) == max(logged - 1, 0)
    finished = {key: kept[key] for key in keys(documents) if key in kept}

    calls.clear()
    resumed = run(documents, log_in(folder))
    again = {tokens.tobytes() for batch in calls for tokens in batch}
    log = log_in(folder)
    assert len(log) == len(keys(documents)) == whole['windows'].sum()
    assert {key: log[key] for key in finished} == finished
    # Only what is missing is measured: documents hardly repeat, so that windows are their tokens.
    assert len(again) == len(log) - len(finished)
    assert again <= set(every)
    np.testing.assert_allclose(resumed['loss'], whole['loss'], rtol=1e-6)

    calls.clear()
    assert_equal(run(documents, log_in(folder)), resumed)
    assert not calls


def keys(documents: Documents) -> list[str]:
    plans = [sliding.plan(documents.lengths, w, stride=STRIDE, budget=BUDGET) for w in LENGTHS]
    return [key for plan in plans for key in plan.keys]


def assert_equal(found: Records, expected: Records) -> None:
    assert found.attributes == expected.attributes
    for name, measure in expected.measures.items():
        np.testing.assert_array_equal(found[name], measure.values)


def test_a_log_of_another_stride_is_refused(documents, tmp_path, calls) -> None:
    run(documents, log_in(tmp_path), (24,))
    calls.clear()
    with pytest.raises(ValueError, match='stride 3: the log holds the window 24/0/24 with 6 '):
        run(documents, log_in(tmp_path), (24,), stride=3)
    assert not calls


def test_a_loss_that_is_not_finite_is_named_and_not_kept(documents, tmp_path) -> None:
    variables = tiny.varied_lam(CONFIG)
    broken = with_lam(variables, lam_of(variables) * math.nan)
    with pytest.raises(ValueError, match=r'the loss of the window 16/0/16 .* is nan'):
        run(documents, log_in(tmp_path), variables=broken)
    assert len(log_in(tmp_path)) == 0


# What is said and what is refused


@pytest.mark.parametrize(
    ('lengths', 'changes', 'message'),
    [
        ((16, 61), {}, 'window 61: no document is longer; the longest of 8 has 61 tokens'),
        ((16, 5), {}, 'stride 6: must be at least 1 and below the window, 5'),
        ((16, 24, 16), {}, r'lengths \(16, 24, 16\): must be one or more, each of them once'),
        ((), {}, 'lengths'),
        ((16,), {'budget': 5}, 'budget 5'),
        (
            (16, 24),
            {'config': tiny.model(position=Learned(size=20))},
            r'length 24: learned.* positions end at 20',
        ),
    ],
)
def test_bad_input_is_refused_before_anything_is_measured(
    documents, tmp_path, calls, lengths, changes, message
) -> None:
    with pytest.raises(ValueError, match=message):
        run(documents, log_in(tmp_path), lengths, **changes)
    assert not calls


def test_resamples_are_of_documents(documents: Documents, tmp_path: pathlib.Path, monkeypatch):
    """Whose windows come together, and which are the same at every length; here of fewer documents
    than the least, and fewer at the longer window."""
    assert 'loss_resampled' not in run(documents, log_in(tmp_path)).measures
    monkeypatch.setattr(bootstrap, 'LEAST', 2)
    log = log_in(tmp_path)
    found = run(documents, log)
    plans = [
        sliding.plan(documents.lengths, length, stride=STRIDE, budget=BUDGET) for length in LENGTHS
    ]
    used = np.unique(np.concatenate([plan.documents for plan in plans]))
    assert plans[1].documents_used < len(used)
    counts_DR = bootstrap.counts(len(used))
    assert counts_DR is not None
    for column, plan in enumerate(plans):
        for index in (0, 9):
            losses = [
                log[key]['loss']
                for document, times in zip(used, counts_DR[:, index], strict=True)
                for key, own in zip(plan.keys, plan.documents, strict=True)
                for _ in range(int(times) if own == document else 0)
            ]
            expected = np.mean(losses)
            assert found['loss_resampled'][index, column] == pytest.approx(expected, rel=1e-6)
