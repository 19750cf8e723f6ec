"""A step computes again as little as fits: by what its programs need, not by guess."""

from __future__ import annotations

import dataclasses
import logging
from typing import Any

import jax
import numpy as np
import pytest
from jax import monitoring

from nope.data import Batch
from nope.model import ModelConfig
from nope.runtime import hardware, processes
from nope.training import stepping
from nope.training.config import Compute, TrainConfig
from nope.training.optim import OptimizerConfig
from nope.training.remat import LEAST_FIRST, SPARE, fitting, program_bytes
from nope.training.state import fresh_state
from nope.training.step import make_step
from nope.training.stepping import step_on
from tests import tiny

# In a loop over layers, where XLA's CPU backend recomputes.
MODEL = tiny.model(layers=4, mlp_width=512, unroll=1, remat='fit')
OPTIMIZER = OptimizerConfig(learning_rate=1e-2, decay_steps=10)
BLOCKS = Batch.of_blocks(np.zeros((1, 4, 129), np.int32))


def lowered(model: ModelConfig) -> jax.stages.Lowered:
    state, frozen = fresh_state(tiny.variables(model), OPTIMIZER, tiny.mesh())
    return jax.jit(make_step(model, OPTIMIZER), donate_argnums=0).lower(state, frozen, BLOCKS)


def needed(remat: str) -> float:
    compiled = lowered(dataclasses.replace(MODEL, remat=remat)).compile()
    return program_bytes(compiled.memory_analysis())


def test_the_first_that_fits_is_taken() -> None:
    by_remat = {remat: needed(remat) for remat in LEAST_FIRST}
    assert by_remat['none'] > by_remat['elementwise'] > by_remat['full']
    for remat in ('none', 'elementwise'):
        enough = by_remat[remat] / (1 - SPARE)
        assert fitting(MODEL, 'params', lowered, 1.001 * enough).remat == remat
        assert fitting(MODEL, 'params', lowered, 0.999 * enough).remat != remat
    assert fitting(MODEL, 'params', lowered, 1.0).remat == 'full'


def test_a_search_in_a_loop_begins_with_what_its_step_recomputes() -> None:
    tried: list[str] = []

    def noted(model: ModelConfig) -> jax.stages.Lowered:
        tried.append(model.remat)
        return lowered(model)

    assert fitting(MODEL, 'lam', noted, 2.0**40).remat == 'elementwise'
    unrolled = dataclasses.replace(MODEL, unroll=None)
    assert fitting(unrolled, 'lam', noted, 2.0**40).remat == 'none'
    assert tried == ['elementwise', 'none']


def test_all_processes_take_what_fits_in_each(monkeypatch: pytest.MonkeyPatch) -> None:
    others = iter([False, True])
    monkeypatch.setattr(processes, 'exchange', lambda value, name: [value, next(others)])
    assert fitting(MODEL, 'params', lowered, 2.0**40).remat == 'elementwise'


def test_a_model_that_names_one_keeps_it_and_compiles_nothing() -> None:
    def never(model: ModelConfig) -> jax.stages.Lowered:
        raise AssertionError(model)

    named = dataclasses.replace(MODEL, remat='dots')
    assert fitting(named, 'params', never, 1.0) == named


def test_a_compiler_that_runs_out_of_memory_says_that_it_does_not_fit() -> None:
    class Failing:
        def __init__(self, message: str) -> None:
            self._message = message

        def compile(self) -> None:
            raise jax.errors.JaxRuntimeError(self._message)

    def lowers(message: str) -> Any:
        return lambda model: Failing(message)

    full = fitting(MODEL, 'params', lowers('RESOURCE_EXHAUSTED: 20G of 16G'), 2.0**40)
    assert full.remat == 'full'
    with pytest.raises(jax.errors.JaxRuntimeError, match='INTERNAL'):
        fitting(MODEL, 'params', lowers('INTERNAL: no'), 2.0**40)
    assert program_bytes(None) == float('inf')


@pytest.mark.parametrize('memory', [2.0**40, 1.0])
def test_a_run_trains_the_same_whatever_is_recomputed(
    memory: float, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Rows of two lengths in turn, each with a program of its own."""
    config = TrainConfig((16, 32), 4, 4, OPTIMIZER)
    monkeypatch.setattr(hardware, 'memory_of', lambda device: memory)
    caplog.set_level(logging.INFO, logger='nope')
    trained = []
    for model in (MODEL, dataclasses.replace(MODEL, remat='none')):
        state, frozen = fresh_state(tiny.variables(model), OPTIMIZER, tiny.mesh())
        take = step_on(model, config, Compute(), tiny.mesh(), state, seed=0)
        for k in range(4):
            blocks = tiny.tokens(4, config.lengths[k % 2] + 1, seed=k)
            state, _ = take(state, frozen, Batch.of_blocks(blocks))
        trained.append(state.trained)
    said = [record.getMessage() for record in caplog.records]
    if memory > 1:
        assert len(said) == 2 and all(line.startswith("remat 'none' needs") for line in said)
        tiny.assert_same(*trained)
    else:
        assert said.count("remat 'full': nothing else fits") == 2
        tiny.assert_close(*trained, rtol=1e-4, atol=1e-6)


def test_what_fits_at_once_is_compiled_once() -> None:
    events: list[str] = []
    monitoring.register_event_duration_secs_listener(lambda event, *_, **__: events.append(event))

    def compilations(model: ModelConfig) -> int:
        jax.clear_caches()
        stepping._jitted_step.cache_clear()
        state, frozen = fresh_state(tiny.variables(model), OPTIMIZER, tiny.mesh())
        take = step_on(model, TrainConfig((16,), 4, 4, OPTIMIZER), Compute(), tiny.mesh(), state, 0)
        events.clear()
        take(state, frozen, Batch.of_blocks(tiny.tokens(4, 17)))
        return events.count('/jax/core/compile/backend_compile_duration')

    assert compilations(MODEL) == compilations(dataclasses.replace(MODEL, remat='none')) > 0
