"""Greedy decoding with a KV cache: milliseconds a token, and the rate of reading memory."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import _bench
import jax
import numpy as np

from nope import sharding
from nope.evals import batching
from nope.evals.generation import Generator, Options
from nope.model import ModelConfig, counts
from nope.runtime import hardware
from nope.variables import fresh_variables


def measure(
    config: ModelConfig, prompt: int, rows: int, new_tokens: int, turns: int, seconds: float
) -> dict[str, Any]:
    """Random weights and prompts: seconds to the first token, then of each of `new_tokens` more,
    and the share of the data sheet's bandwidth that they read at (None where there is no sheet)."""
    mesh = sharding.make_mesh(sharding.MeshConfig(fsdp=jax.device_count()))
    tokens = rows * (batching.padded_length(prompt) + new_tokens + 1)
    generator = Generator(config, fresh_variables(config, mesh, 0), mesh, batch_tokens=tokens)
    draw = np.random.default_rng(0)
    prompts = [*draw.integers(config.vocab_size, size=(rows, prompt), dtype=np.int32)]

    def timer(count: int) -> Callable[[], float]:
        run = functools.partial(generator.generate, prompts, Options(count))
        return functools.partial(_bench.seconds, run)

    timers = {'first': timer(1), 'all': timer(1 + new_tokens)}
    compiling = sum(run() for run in timers.values())
    taken = _bench.interleaved(timers, turns, seconds)
    read = bytes_per_step(config, rows, prompt + new_tokens // 2)
    return figures(taken, rows, new_tokens, read) | {
        'compile_seconds': max(compiling - sum(taken.values()), 0.0)
    }


def figures(
    taken: Mapping[str, float], rows: int, new_tokens: int, read: float
) -> dict[str, float | None]:
    """Of the seconds to the first token ('first') and to all of them ('all')."""
    step = max(taken['all'] - taken['first'], 1e-9) / new_tokens
    sheet = hardware.known(jax.devices()[0].device_kind)
    rate = read / step / jax.device_count()
    return {
        'first_seconds': taken['first'],
        'ms_per_token': 1e3 * step,
        'tokens_per_second': rows / step,
        'gb_per_second': rate / 1e9,
        'share_of_bandwidth': None if sheet is None else rate / sheet.bandwidth,
    }


def bytes_per_step(config: ModelConfig, rows: int, length: int) -> float:
    """That a step of decoding reads: matrices once, and the keys and values of every row's `length`
    tokens."""
    numbers = counts.training_flops(config, 0) / 6
    cached = 2 * rows * length * config.layers * config.kv_heads * config.head_dim
    return (numbers + cached) * (4 if config.dtype == 'float32' else 2)
