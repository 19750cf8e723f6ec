"""Theorems of arXiv 2305.19466 run through the decoder: how far each dtype carries them.

    python -m tools.bench theorems [--longest=4096] [--tokens=256] [--out=FOLDER]

One JSON line per theorem and dtype. In Theorem 1 one layer without position encoding counts tokens
in its hidden state. `exact_to` is the last position that it counts right, rounded; NumPy lines
have the MLP's ramps the other way around. In Theorem 2 the second layer's attention follows the
distance alone, and `largest_error` is that of its weights. --out also writes theorems.csv, the
error of the count by position, and its figure.
"""

from __future__ import annotations

import argparse
import csv
import pathlib
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from experiments.figures.look import mpl, style
from nope.model import apply
from nope.runtime import paths
from nope.theorems import absolute, relative
from tools.bench import harness

DTYPES = ('bfloat16', 'float32')
SLOPE = 0.125
FLOOR = 1e-9  # of the figure: errors of 0 have no place on its scale


def counted(longest: int, dtype: str) -> np.ndarray:
    """Positions read off the hidden states of the constructed decoder, [T] float64."""
    config = absolute.model(longest, dtype=dtype)
    tokens_BT = np.random.default_rng(0).integers(1, config.vocab_size, size=(1, longest))
    tokens_BT[0, 0] = absolute.BOS
    output = apply(config, absolute.variables(config), jnp.asarray(tokens_BT))
    return np.asarray(output.hidden[0, :, absolute.POSITION], np.float64)


def reversed_ramps(longest: int, kind: type) -> np.ndarray:
    """N - N (N - 1) relu(x - 1/N) + sum over k = 2 .. N - 1 of 2 k relu(x - 1/k) of x = 1/t."""
    N = kind(longest)
    k: np.ndarray = np.arange(2, longest, dtype=kind)
    x_T = 1 / np.arange(1, longest + 1, dtype=kind)
    rows = [2 * k @ np.maximum(x - 1 / k, 0) for x in x_T]
    found_T = N - N * (N - 1) * np.maximum(x_T - 1 / N, 0) + np.array(rows, kind)
    return found_T.astype(np.float64)


def judged(errors_T: np.ndarray) -> dict[str, Any]:
    wrong = np.flatnonzero(np.abs(errors_T) >= 0.5)
    exact_to = int(wrong[0]) if wrong.size else len(errors_T)
    return {'exact_to': exact_to, 'largest_error': float(np.abs(errors_T).max())}


def compared(tokens: int, dtype: str) -> dict[str, float]:
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


def write(errors_T: Mapping[str, np.ndarray], folder: pathlib.Path) -> None:
    with (folder / 'theorems.csv').open('w', newline='') as file:
        writer = csv.writer(file)
        writer.writerow(['position', *(f'error ({name})' for name in errors_T)])
        for t, row in enumerate(zip(*errors_T.values(), strict=True), start=1):
            writer.writerow([t, *row])
    with style.house():
        figure = figure_of(errors_T)
        for ending in ('png', 'pdf'):
            figure.savefig(folder / f'theorems.{ending}', dpi=style.DPI)


def figure_of(errors_T: Mapping[str, np.ndarray]) -> mpl.Figure:
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


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--longest', type=int, default=4096, help='N of Theorem 1')
    parser.add_argument('--tokens', type=int, default=256, help='of Theorem 2')
    parser.add_argument('--out', type=paths.path, help='folder for a figure and its numbers')
    options = parser.parse_args(arguments)
    for name in ('longest', 'tokens'):
        if getattr(options, name) < 2:
            parser.error(f'--{name}={getattr(options, name)}: it must be at least 2')
    found_T = {dtype: counted(options.longest, dtype) for dtype in DTYPES}
    for kind in (np.float32, np.float64):
        found_T[f'{kind.__name__}, ramps reversed'] = reversed_ramps(options.longest, kind)
    errors_T = {name: values - np.arange(1, len(values) + 1) for name, values in found_T.items()}
    for name, values in errors_T.items():
        line = {'theorem': 1, 'dtype': name, 'longest': options.longest}
        harness.emit(line | judged(values))
    for dtype in DTYPES:
        line = {'theorem': 2, 'dtype': dtype, 'tokens': options.tokens, 'slope': SLOPE}
        harness.emit(line | compared(options.tokens, dtype))
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        write(errors_T, options.out)
