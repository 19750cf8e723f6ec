"""Entropy and largest logit of every layer during training: right, written, and without effect."""

from __future__ import annotations

import dataclasses
import pathlib

import jax
import numpy as np
import pytest

from nope.data.batch import Batch
from nope.model import apply
from nope.training import metrics
from nope.training.stepping import attention_metrics
from nope.training.train import Earlier
from nope.variables import with_uniform_lam
from tests import tiny
from tests.training.train_test import (
    COMPUTE,
    MODEL,
    PRETRAIN,
    SEARCH,
    batches_of,
    final,
    logged,
    run,
)

MONITORED = dataclasses.replace(COMPUTE, monitor=3, log_every=2)


def test_the_metrics_are_of_the_first_micro_batch() -> None:
    blocks = tiny.tokens(4, 13).reshape(2, 2, 13)
    found = attention_metrics(MODEL, tiny.variables(MODEL), Batch.of_blocks(blocks))
    output = apply(MODEL, tiny.variables(MODEL), blocks[0, :, :-1], entropy=True, max_logit=True)
    entropy, largest = np.asarray(output.entropy), np.asarray(output.max_logit)
    np.testing.assert_allclose(found['entropy'], entropy.mean((1, 2, 3)), rtol=1e-5)
    np.testing.assert_allclose(found['max_logit'], largest.max((1, 2, 3)), rtol=1e-5)
    assert found['entropy'].shape == (MODEL.layers,)


def test_entropy_falls_and_the_largest_logit_grows_with_lambda() -> None:
    batch = Batch.of_blocks(tiny.tokens(4, 13)[None])
    low, high = (
        attention_metrics(MODEL, with_uniform_lam(tiny.variables(MODEL), lam), batch)
        for lam in (1.0, 3.0)
    )
    assert high['entropy'][0] < low['entropy'][0] <= np.log(12)
    assert high['max_logit'][0] > low['max_logit'][0]


def test_a_batch_of_documents_is_looked_at_with_them_apart() -> None:
    tokens = tiny.tokens(2, 12)
    alone = Batch(tokens, tokens, segments=np.tile(np.arange(12, dtype=np.int32), (2, 1)))
    found = attention_metrics(MODEL, tiny.variables(MODEL), jax.tree.map(lambda x: x[None], alone))
    np.testing.assert_allclose(found['entropy'], 0.0, atol=1e-6)


def test_monitored_steps_have_a_row_with_every_layer(tmp_path: pathlib.Path) -> None:
    """And everything else is what it is without."""
    for name, compute in (('plain', COMPUTE), ('monitored', MONITORED)):
        run(tmp_path / name, PRETRAIN, compute=compute)
    rows = {row['step']: row for row in metrics.read(tmp_path / 'monitored')}
    names = {f'{name}/{i}' for name in ('entropy', 'max_logit') for i in range(MODEL.layers)}
    for step, row in rows.items():
        assert names <= row.keys() if step % 3 == 0 else not names & row.keys()
        assert all(np.isfinite(row[name]) for name in names & row.keys())
    plain = {row['step']: row for row in logged(tmp_path / 'plain')}
    assert rows.keys() == plain.keys() | {s for s in range(1, PRETRAIN.steps + 1) if s % 3 == 0}
    for step, row in plain.items():
        assert row.items() <= rows[step].items()
    expected, found = (final(tmp_path / name, PRETRAIN) for name in ('plain', 'monitored'))
    jax.tree.map(np.testing.assert_array_equal, found.arrays, expected.arrays)


def test_of_a_straight_through_search_the_clamped_lambda_is_monitored(
    tmp_path: pathlib.Path,
) -> None:
    """The copy that trains may lie below the bound, where no pass uses it."""
    optimizer = dataclasses.replace(SEARCH.optimizer, bound=5.0, straight_through=True)
    run(tmp_path, dataclasses.replace(SEARCH, optimizer=optimizer), compute=MONITORED)
    (row,) = (row for row in metrics.read(tmp_path) if row['step'] == 3)
    batch = next(batches_of(SEARCH)(2)).first(12)
    clamped = with_uniform_lam(tiny.variables(MODEL), 5.0)
    expected = attention_metrics(MODEL, clamped, jax.tree.map(lambda x: x[None], batch))
    assert row['entropy/0'] == pytest.approx(float(expected['entropy'][0]), rel=1e-4)


def test_what_is_monitored_is_the_model_of_the_step(tmp_path: pathlib.Path) -> None:
    """Before the drop of an encoding it is the model that has it."""
    warm = dataclasses.replace(MODEL, softmax_scale=(MODEL.softmax_scale or 0.5) * 3)
    run(tmp_path, PRETRAIN, compute=MONITORED, earlier=Earlier(warm, PRETRAIN.steps - 1))
    first = metrics.read(tmp_path)
    run(tmp_path / 'plain', PRETRAIN, compute=MONITORED)
    plain = metrics.read(tmp_path / 'plain')
    look = [next(row for row in rows if 'max_logit/0' in row) for rows in (first, plain)]
    assert look[0]['max_logit/0'] > look[1]['max_logit/0']
