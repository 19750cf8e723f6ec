"""Figures: records in, picture, numbers, caption and claims out; no model, no accelerator.

`DRAW[kind](FigureInput) -> FigureOutput` draws; `REQUIRED[kind](name, options)` checks
the options of figure `name` and tells, before anything has run, which records it will ask for;
`write` stores the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from experiments.figures import (
    entropy_loss,
    extension,
    factor_grid,
    head_entropy,
    heads,
    length_curves,
    passkey_maps,
    scale_entropy,
    tuned_lengths,
    uniform_fit,
)
from experiments.figures.base import Claim, FigureInput, FigureOutput, write
from experiments.figures.tables import ablation, commonsense, longbench, perplexity

__all__ = ['DRAW', 'REQUIRED', 'Claim', 'FigureInput', 'FigureOutput', 'write']

DRAW: Mapping[str, Callable[[FigureInput], FigureOutput]] = {
    'entropy_loss': entropy_loss.draw,
    'heads': heads.draw,
    'scale_entropy': scale_entropy.draw,
    'uniform_fit': uniform_fit.draw,
    'head_entropy': head_entropy.draw,
    'length_curves': length_curves.draw,
    'factor_grid': factor_grid.draw,
    'tuned_lengths': tuned_lengths.draw,
    'extension': extension.draw,
    'perplexity_table': perplexity.draw,
    'longbench_table': longbench.draw,
    'commonsense_table': commonsense.draw,
    'ablation_table': ablation.draw,
    'passkey_maps': passkey_maps.draw,
}

# kind -> function from the figure's name and options to {record name: evaluation}. A name that
# ends in '/' stands for one record or more below it ('base/seed0', 'base/seed1').
REQUIRED: Mapping[str, Callable[[str, Mapping[str, Any]], dict[str, str]]] = {
    'entropy_loss': entropy_loss.required,
    'heads': heads.required,
    'scale_entropy': scale_entropy.required,
    'uniform_fit': uniform_fit.required,
    'head_entropy': head_entropy.required,
    'length_curves': length_curves.required,
    'factor_grid': factor_grid.required,
    'tuned_lengths': tuned_lengths.required,
    'extension': extension.required,
    'perplexity_table': perplexity.required,
    'longbench_table': longbench.required,
    'commonsense_table': commonsense.required,
    'ablation_table': ablation.required,
    'passkey_maps': passkey_maps.required,
}
