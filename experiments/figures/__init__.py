"""Figures: records in, picture, numbers, caption and claims out; no model, no accelerator.

`KINDS[kind]` is the module of a kind of figure: `required(name, options)` checks the options of
figure `name` and tells, before anything has run, which records it will ask for;
`draw(FigureInput) -> FigureOutput` draws one seed, or groups of them; `draw` of this package any
number. `write` stores the result. Adding a kind: its file and a line in `KINDS`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Protocol

from experiments.figures import resampled, seeds
from experiments.figures.base import Claim, FigureInput, FigureOutput, write
from experiments.figures.kinds import (
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
    ruler_scores,
    scratchpad_bars,
    task_lambda,
    tuned_lengths,
    uniform_fit,
)
from experiments.figures.kinds.tables import ablation, commonsense, longbench, perplexity

__all__ = [
    'KINDS',
    'Claim',
    'FigureInput',
    'FigureOutput',
    'Kind',
    'check_known',
    'draw',
    'shared',
    'write',
]


class Kind(Protocol):
    """Interface of the module of a kind of figure. It may have besides:

    SHARED: attributes that all of its records share, compared before anything is trained.
    check_known(name, options, known): ValueError where attributes that are known by then (record
        name -> attributes) do not bear the figure.
    decided(given): claims of an input that `draw` accepts, without a picture; of a kind that has it
        they are decided again for resamples of the text where there is one seed.
    MEANS: True where it reads a record by its name and its arrays have a meaning as means over
        seeds; of another one that reads records by name, several seeds are shown by the first.
    ALONE: True where it draws one seed though it reads records below prefixes.
    """

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


def shared(kind: str) -> tuple[str, ...]:
    """Attributes that all records of a figure of a kind share."""
    found: tuple[str, ...] = getattr(KINDS[kind], 'SHARED', ())
    return found


def check_known(
    kind: str, name: str, options: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]]
) -> None:
    """ValueError where attributes that are known before anything is measured (record name ->
    attributes) do not bear figure `name`."""
    check = getattr(KINDS[kind], 'check_known', None)
    if check is not None:
        check(name, options, known)


def draw(kind: str, given: FigureInput) -> FigureOutput:
    """The figure of a kind, from records of one seed or of several."""
    module = KINDS[kind]
    needs = module.required(given.name, given.options)
    means, alone = (getattr(module, name, False) for name in ('MEANS', 'ALONE'))
    single = functools.partial(resampled.draw, module.draw, getattr(module, 'decided', None), needs)
    return seeds.draw(module.draw, needs, given, means=means, alone=alone, single=single)
