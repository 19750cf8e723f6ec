"""Training steps that no device could hold are refused by arithmetic."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest

from nope.data import Batch
from nope.model import counts
from nope.runtime import hardware
from nope.training.config import Compute, TrainConfig
from nope.training.least_memory import check_memory, least_bytes
from nope.training.optim import OptimizerConfig
from nope.training.state import fresh_state
from nope.training.step import make_step
from nope.variables import TABLE
from tests import tiny

OPTIMIZER = OptimizerConfig(learning_rate=1e-2, decay_steps=10)
CONFIG = TrainConfig((64,), 16, 10, OPTIMIZER)


@pytest.mark.parametrize('remat', ['none', 'full'])
def test_a_compiled_step_needs_more_than_the_bound(remat: str) -> None:
    model = tiny.model(remat=remat, attention=None)
    least = least_bytes(model, CONFIG, Compute(), tiny.mesh())
    state, frozen = fresh_state(tiny.variables(model), OPTIMIZER, tiny.mesh())
    batch = Batch.of_blocks(np.zeros((16, 65), np.int32))
    blocks = jax.tree.map(lambda array: array[None], batch)
    step = jax.jit(make_step(model, OPTIMIZER)).lower(state, frozen, blocks).compile()
    memory = step.memory_analysis()
    assert least < memory.argument_size_in_bytes + memory.temp_size_in_bytes
    assert least > 3 * 4 * counts.parameters(model)


@pytest.mark.parametrize('trains', ['lam', TABLE])
def test_frozen_parameters_have_no_moments(trains: str) -> None:
    search = dataclasses.replace(OPTIMIZER, trains=trains)
    config = dataclasses.replace(CONFIG, optimizer=search)
    whole, frozen = (least_bytes(tiny.MODEL, x, Compute(), tiny.mesh()) for x in (CONFIG, config))
    assert whole - frozen == 2 * 4 * counts.parameters(tiny.MODEL)


def test_what_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    least = least_bytes(tiny.MODEL, CONFIG, Compute(), tiny.mesh())
    monkeypatch.setattr(hardware, 'memory_of', lambda device: least)
    check_memory(tiny.MODEL, CONFIG, Compute(), tiny.mesh())
    monkeypatch.setattr(hardware, 'memory_of', lambda device: least - 1)
    with pytest.raises(ValueError, match=r'^finetune\.batch_size 16 of 64 tokens and a model of '):
        check_memory(tiny.MODEL, CONFIG, Compute(), tiny.mesh(), 'finetune')


def test_micro_batches_need_less() -> None:
    whole, parts = (
        least_bytes(tiny.MODEL, CONFIG, Compute(accumulate=n), tiny.mesh()) for n in (1, 4)
    )
    tokens = 16 * 64
    hidden = tokens * tiny.MODEL.width * tiny.MODEL.layers * 4
    assert whole - parts == hidden * 3 / 4
