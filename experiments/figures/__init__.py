"""Figures: records in, picture, numbers, caption and claims out; no model, no accelerator.

`KINDS[kind]` is the module of a kind of figure: `required(name, options)` checks the options of
figure `name` and tells, before anything has run, which records it will ask for;
`draw(FigureInput) -> FigureOutput` draws one seed, or groups of them; `draw` of this package any
number. `write` stores the result. Adding a kind: its file and a line in `KINDS`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from experiments.figures import (
    attended_distance,
    attention_distance,
    attention_shape,
    emergence,
    encoding_pairs,
    encoding_ranks,
    entropy_loss,
    extension,
    factor_grid,
    frontier,
    head_effects,
    head_entropy,
    heads,
    key_curves,
    length_curves,
    multiplier_entropy,
    passkey_maps,
    positions_known,
    ruler_scores,
    scratchpad_bars,
    seeds,
    task_lambda,
    tuned_lengths,
    uniform_fit,
)
from experiments.figures.base import Claim, FigureInput, FigureOutput, write
from experiments.figures.encoding_tasks import curves as task_curves
from experiments.figures.tables import ablation, commonsense, longbench, perplexity

__all__ = [
    'CHECKS',
    'KINDS',
    'SHARED',
    'Claim',
    'FigureInput',
    'FigureOutput',
    'Kind',
    'draw',
    'write',
]


class Kind(Protocol):
    """Interface of the module of a kind of figure."""

    def required(self, name: str, options: Mapping[str, Any], /) -> dict[str, str]:
        """Record name -> evaluation. A name that ends in '/' stands for one record or more below
        it ('base/seed0', 'base/seed1'). ValueError for options that figure `name` of this kind
        does not have."""

    def draw(self, given: FigureInput, /) -> FigureOutput:
        """The figure; ValueError where its records do not bear it."""


KINDS: Mapping[str, Kind] = {
    'entropy_loss': entropy_loss,
    'heads': heads,
    'multiplier_entropy': multiplier_entropy,
    'uniform_fit': uniform_fit,
    'head_entropy': head_entropy,
    'attention_shape': attention_shape,
    'attention_distance': attention_distance,
    'attended_distance': attended_distance,
    'emergence': emergence,
    'length_curves': length_curves,
    'key_curves': key_curves,
    'frontier': frontier,
    'head_effects': head_effects,
    'encoding_ranks': encoding_ranks,
    'encoding_pairs': encoding_pairs,
    'task_lambda': task_lambda,
    'scratchpad_bars': scratchpad_bars,
    'factor_grid': factor_grid,
    'tuned_lengths': tuned_lengths,
    'extension': extension,
    'perplexity_table': perplexity,
    'longbench_table': longbench,
    'commonsense_table': commonsense,
    'ablation_table': ablation,
    'passkey_maps': passkey_maps,
    'ruler_scores': ruler_scores,
}
# Kinds that read a record by its name and whose arrays have a meaning as means over seeds; of the
# others that do, which show single heads, several seeds are shown by the first.
MEANS = ('entropy_loss', 'uniform_fit')
# Attributes that all records of a figure share; figures that are not here compare none.
SHARED: Mapping[str, tuple[str, ...]] = {
    'entropy_loss': entropy_loss.SHARED,
    'heads': heads.SHARED,
    'attention_shape': attention_shape.SHARED,
    'emergence': emergence.SHARED,
    'length_curves': length_curves.SHARED,
    'key_curves': key_curves.SHARED,
    'frontier': frontier.SHARED,
    'factor_grid': factor_grid.SHARED,
    'tuned_lengths': tuned_lengths.SHARED,
    'extension': extension.SHARED,
}


# What a kind asks of attributes that are known before anything is measured: figure name, options,
# record name -> attributes. ValueError where they do not bear the figure.
CHECKS: Mapping[str, Callable[[str, Mapping[str, Any], Mapping[str, Mapping[str, Any]]], None]] = {
    'entropy_loss': positions_known.reaching_l,
    'heads': positions_known.with_layers,
    'multiplier_entropy': positions_known.with_layers,
    'uniform_fit': positions_known.beyond_l,
    'encoding_ranks': task_curves.check_known,
    'encoding_pairs': task_curves.check_known,
    'task_lambda': task_curves.check_known,
    'attention_distance': task_curves.check_known,
    'scratchpad_bars': functools.partial(task_curves.check_known, facts=('task', 'scratchpad')),
}


def draw(kind: str, given: FigureInput) -> FigureOutput:
    """The figure of a kind, from records of one seed or of several."""
    needs = KINDS[kind].required(given.name, given.options)
    return seeds.draw(KINDS[kind].draw, needs, given, kind in MEANS)
