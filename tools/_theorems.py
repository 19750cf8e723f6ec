"""Measurements and figure of tools/theorems.py."""

from __future__ import annotations

import csv
import json
import pathlib
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from experiments.figures.look import mpl, style
from nope.model import apply
from nope.theorems import absolute, relative

DTYPES = ('bfloat16', 'float32')
SLOPE = 0.125
FLOOR = 1e-9  # of the figure: errors of 0 have no place on its scale


def main(longest: int, tokens: int, out: pathlib.Path | None) -> None:
    errors_T: dict[str, np.ndarray] = {}
    for dtype in DTYPES:
        errors_T[dtype] = _counted(longest, dtype) - np.arange(1, longest + 1)
        _print(theorem=1, dtype=dtype, longest=longest, **_judged(errors_T[dtype]))
    for kind in (np.float32, np.float64):
        name = f'{kind.__name__}, ramps reversed'
        errors_T[name] = _reversed_ramps(longest, kind) - np.arange(1, longest + 1)
        _print(theorem=1, dtype=name, longest=longest, **_judged(errors_T[name]))
    for dtype in DTYPES:
        _print(theorem=2, dtype=dtype, tokens=tokens, slope=SLOPE, **_compared(tokens, dtype))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        _write(errors_T, out)


def _counted(longest: int, dtype: str) -> np.ndarray:
    """Positions read off the hidden states of the constructed decoder, [T] float64."""
    config = absolute.model(longest, dtype=dtype)
    tokens_BT = np.random.default_rng(0).integers(1, config.vocab_size, size=(1, longest))
    tokens_BT[0, 0] = absolute.BOS
    output = apply(config, absolute.variables(config), jnp.asarray(tokens_BT))
    return np.asarray(output.hidden[0, :, absolute.POSITION], np.float64)


def _reversed_ramps(longest: int, kind: type) -> np.ndarray:
    """N - N (N - 1) relu(x - 1/N) + sum over k = 2 .. N - 1 of 2 k relu(x - 1/k) of x = 1/t."""
    N = kind(longest)
    k: np.ndarray = np.arange(2, longest, dtype=kind)
    x_T = 1 / np.arange(1, longest + 1, dtype=kind)
    rows = [2 * k @ np.maximum(x - 1 / k, 0) for x in x_T]
    found_T = N - N * (N - 1) * np.maximum(x_T - 1 / N, 0) + np.array(rows, kind)
    return found_T.astype(np.float64)


def _judged(errors_T: np.ndarray) -> dict[str, Any]:
    wrong = np.flatnonzero(np.abs(errors_T) >= 0.5)
    exact_to = int(wrong[0]) if wrong.size else len(errors_T)
    return {'exact_to': exact_to, 'largest_error': float(np.abs(errors_T).max())}


def _compared(tokens: int, dtype: str) -> dict[str, float]:
    """Weights of the second layer against those of its logits, in float64."""
    config = relative.model(tokens, tokens, dtype)
    variables = relative.variables(config, SLOPE)
    order_T = np.arange(tokens)
    hidden_TD = apply(config, variables, jnp.asarray(order_T[None])).hidden[0]
    found_TT = np.asarray(hidden_TD[:, relative.weights(config)], np.float64)
    raised_TT = np.tril(np.exp(SLOPE * (order_T[None] - order_T[:, None])))
    expected_TT = raised_TT / raised_TT.sum(axis=1, keepdims=True)
    error = np.abs(found_TT - expected_TT).max()
    return {'largest_error': float(error), 'largest_weight': float(expected_TT.max())}


def _print(**line: Any) -> None:
    print(json.dumps(line), flush=True)


def _write(errors_T: Mapping[str, np.ndarray], folder: pathlib.Path) -> None:
    columns = list(errors_T)
    with (folder / 'theorems.csv').open('w', newline='') as file:
        writer = csv.writer(file)
        writer.writerow(['position', *(f'error ({name})' for name in columns)])
        for t, row in enumerate(zip(*errors_T.values(), strict=True), start=1):
            writer.writerow([t, *row])
    with style.house():
        figure = _figure(errors_T)
        for ending in ('png', 'pdf'):
            figure.savefig(folder / f'theorems.{ending}', dpi=style.DPI)


def _figure(errors_T: Mapping[str, np.ndarray]) -> mpl.Figure:
    figure = style.new_figure(5.0, 4.0)
    axes = figure.subplots()
    for color, (name, values) in zip(style.COLORS, errors_T.items(), strict=False):
        t = np.arange(1, len(values) + 1)
        largest = np.maximum(np.maximum.accumulate(np.abs(values)), FLOOR)
        axes.plot(t, largest, color=color, label=name)
    axes.axhline(0.5, color=style.GREY, linestyle='--', label='rounds to another position')
    axes.set(
        xscale='log',
        yscale='log',
        xlabel='Position t',
        ylabel=f'Largest error up to t (positions; 0 at {FLOOR:g})',
    )
    figure.legend(loc='outside lower center', ncols=2)
    return figure
