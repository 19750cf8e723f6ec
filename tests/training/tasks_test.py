"""Training on a task: loss on targets alone."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nope import losses
from nope.data import Batch, TaskData
from nope.data.tasks import Sizes, named, symbols, training_batches
from nope.model import apply
from nope.training.step import batch_loss
from tests import tiny

DATA = TaskData(
    named('cmc', longest=4, symbols=symbols.closed(5)), Sizes(train=40, validation=20, test=20)
)
MODEL = tiny.model(layers=1, vocab_size=DATA.load_tokenizer().vocab_size)


def batches(start: int) -> Any:
    given = {'length': 16, 'batch_size': 4, 'seed': 1, 'start': start}
    return training_batches(DATA, **given)


def test_the_loss_is_that_of_target_tokens_alone() -> None:
    batch: Batch = jax.tree.map(jnp.asarray, next(batches(0)))
    variables = tiny.variables(MODEL)
    output = apply(MODEL, variables, batch.tokens)
    nll_BT = np.asarray(losses.token_loss(output.hidden, output.head, batch.targets))
    expected = nll_BT[batch.weights == 1].mean()
    found = float(batch_loss(MODEL, variables, batch))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    # Neither what stands behind an example nor what a prompt would be followed by counts.
    junk = jnp.where(batch.weights == 0, 7, batch.targets)
    assert float(batch_loss(MODEL, variables, batch._replace(targets=junk))) == found
    end = np.array([np.flatnonzero(row)[-1] for row in batch.weights])
    behind = np.arange(16) > end[:, None]
    filled = jnp.where(behind, 7, batch.tokens)
    assert float(batch_loss(MODEL, variables, batch._replace(tokens=filled))) == found
