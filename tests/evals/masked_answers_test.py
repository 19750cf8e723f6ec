"""Answers of an encoder are what one pass over its masked places predicts."""

from __future__ import annotations

import dataclasses
import functools
import pathlib

import jax
import numpy as np
import pytest

from nope import sharding
from nope.data import TaskData
from nope.data.tasks import Sizes, named, symbols, training_batches
from nope.evals import exact_match
from nope.evals.exact_match import ask
from nope.evals.masked_answers import MaskedScorer, padded_length
from nope.evals.samples import SampleLog
from nope.model import ModelConfig
from nope.positions import DynamicNTK, Learned, NoPE, Position, RoPE
from nope.training.optim import OptimizerConfig
from nope.training.state import fresh_state
from nope.training.step import make_step
from tests import tiny
from tests.model.programs import run

LIMIT, WIDTH = 24, 12
CAP = 10.0  # of logits
COPYING = TaskData(named('cmc', longest=3, symbols=symbols.closed(3)), Sizes(60, 24, 18))


@functools.cache
def trained(position: Position, steps: int) -> MaskedScorer:
    """An encoder after some steps."""
    model: ModelConfig = tiny.model(
        layers=1,
        vocab_size=COPYING.load_tokenizer().vocab_size,
        position=position,
        causal=False,
        logit_cap=CAP,
    )
    optimizer = OptimizerConfig(learning_rate=1e-2, decay_steps=1000)
    state, frozen = fresh_state(tiny.variables(model), optimizer, tiny.mesh())
    step = jax.jit(make_step(model, optimizer))
    batches = training_batches(COPYING, length=WIDTH, batch_size=16, seed=0, start=0, causal=False)
    with sharding.use(tiny.mesh()), jax.numpy_dtype_promotion('standard'):  # of a gradient
        for _ in range(steps):
            batch = jax.tree.map(lambda array: array[None], next(batches))
            state, _ = step(state, frozen, batch)
    return MaskedScorer(model, {**frozen, **state.trained}, tiny.mesh(), batch_tokens=256)


@pytest.mark.parametrize('rope', [RoPE(), RoPE(scaling=DynamicNTK(factor=1.0, train_length=4))])
def test_scores_are_those_of_each_example_by_itself(rope: RoPE) -> None:
    """Whatever it is batched with: the definition is the pass over one unpadded example. Its length
    is what a rotation may follow."""
    scorer, asked = trained(RoPE(), 60), ask(COPYING, 3, LIMIT)
    config = dataclasses.replace(scorer.config, position=rope)
    scorer = MaskedScorer(config, scorer._variables, tiny.mesh(), batch_tokens=256)
    ids = [asked.ids(q) for q in asked.questions if q.example.length in (2, 6)]
    scores = scorer.score([x.prompt for x in ids], [x.target for x in ids])
    for x, score in zip(ids, scores, strict=True):
        n, end = len(x.target) - 1, x.target[-1]
        tokens = np.concatenate([x.prompt, np.full(n, end, np.int32)])[None]
        output = run(scorer.config, scorer._variables, tokens)
        logits_AV = np.asarray(output.hidden, np.float64)[0, -n:] @ np.asarray(output.head)
        logits_AV = CAP * np.tanh(logits_AV / CAP)
        log_probs_AV = logits_AV - np.log(np.exp(logits_AV).sum(axis=-1, keepdims=True))
        expected = [*log_probs_AV[np.arange(n), x.target[:-1]], 0.0]
        np.testing.assert_allclose(score.log_probs, expected, rtol=1e-4, atol=1e-5)
        assert score.best.tolist() == [*log_probs_AV.argmax(axis=-1), end]
        assert score.greedy.tolist() == (score.best == x.target).tolist()


@pytest.mark.parametrize('position', [NoPE(), RoPE()], ids=['none', 'rope'])
def test_without_positions_an_answer_is_one_token_repeated(
    position: Position, tmp_path: pathlib.Path
) -> None:
    """So only such answers can be right. With positions others are too."""
    scorer, asked = trained(position, 60), ask(COPYING, None, LIMIT)
    ids = [asked.ids(question) for question in asked.questions]
    scores = scorer.score([x.prompt for x in ids], [x.target for x in ids])
    uniform = [len({*score.best[:-1].tolist()}) == 1 for score in scores]
    log = SampleLog(tmp_path / 'samples.jsonl')
    exact_match.run(scorer, asked, log)
    right = [log[question.name]['correct'] for question in asked.questions]
    assert right == [bool(score.greedy.all()) for score in scores] and any(right)
    several = [len({*x.target[:-1].tolist()}) > 1 for x in ids]
    if isinstance(position, NoPE):
        assert all(uniform)
        assert not any(r and s for r, s in zip(right, several, strict=True))
    else:
        assert any(r and s for r, s in zip(right, several, strict=True))


def test_rows_end_where_learned_positions_do() -> None:
    config = tiny.model(position=Learned(13), causal=False)
    assert [padded_length(config, tokens) for tokens in (4, 13)] == [13, 13]
    assert padded_length(tiny.model(causal=False), 13) == 16
