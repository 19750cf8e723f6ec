"""Losses of one model by the length of the sequence, for every seed, read from its records."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures.given import FigureInput
from experiments.figures.read.by_seed import BySeed, check_seeds, index_of
from experiments.figures.roles import Undecided
from nope.records import FLOOR, Records

# What tells windows apart: the last is the entropy of the tokens to predict, as single ones.
_WINDOWS = ('windows', 'split', 'cut', 'documents', FLOOR)


@dataclasses.dataclass(frozen=True)
class Group:
    """One curve: the same model, made in the same way, for every seed.

    names: the records, one a seed. multiples: [n] lengths over L. loss_window, loss_tail: [seeds,
    n] in nats, means over the window and over its last L/2 positions. windows: which they are of.
    """

    name: str
    label: str
    names: tuple[str, ...]
    seeds: tuple[str, ...]
    multiples: np.ndarray
    loss_window: np.ndarray
    loss_tail: np.ndarray
    windows: tuple[Any, ...] = ()

    def at(self, multiple: float) -> int | None:
        """Index of the length `multiple` L, None where it was not measured."""
        return index_of(multiple, self.multiples)


def read(given: FigureInput, name: str, label: str) -> Group:
    """The records '<name>/<seed>' of evaluation 'lengths', at least one. ValueError where they
    were measured at different lengths."""
    found = BySeed.of(given, name)
    lengths = found.shared(lambda r: r.along('length', len(r['loss_window'])).tolist(), 'lengths')
    return Group(
        name=name,
        label=label,
        names=found.names,
        seeds=found.seeds,
        multiples=np.array(lengths) / found.shared(lambda r: r.attributes['train_length'], 'L'),
        loss_window=found.stacked('loss_window'),
        loss_tail=found.stacked('loss_tail'),
        windows=tuple(found.records[0].attributes.get(name) for name in _WINDOWS),
    )


def check_alike(given: FigureInput, groups: Sequence[Group]) -> None:
    """ValueError unless all groups have the same seeds and were measured at the same lengths."""
    check_seeds(given, groups)
    first = groups[0]
    for g in groups[1:]:
        if not np.array_equal(g.multiples, first.multiples):
            raise ValueError(
                f'figure {given.name!r}: {g.name!r} was measured at other lengths '
                f'({g.multiples.tolist()} L) than {first.name!r} ({first.multiples.tolist()} L)'
            )


def check_windows(groups: Sequence[Group]) -> None:
    """Undecided unless all groups were measured on the same windows."""
    if len({g.windows for g in groups}) > 1:
        raise Undecided('curves were measured on different windows')


def by_length(multiples: np.ndarray, values: np.ndarray) -> dict[str, float]:
    """'2 L' -> value."""
    return {f'{m:g} L': float(v) for m, v in zip(multiples, values, strict=True)}


def rows(group: Group, records: Mapping[str, Records]) -> list[dict[str, Any]]:
    """One row a record and length."""
    return [
        {
            'record': name,
            'group': group.name,
            'label': group.label,
            'seed': seed,
            'length': int(length),
            'length_over_L': float(group.multiples[i]),
            'loss_window_nats': float(records[name]['loss_window'][i]),
            'loss_tail_nats': float(records[name]['loss_tail'][i]),
            'multiplier_mean': float(records[name]['multiplier_mean'][i]),
        }
        for name, seed in zip(group.names, group.seeds, strict=True)
        for i, length in enumerate(records[name].along('length', len(group.multiples)))
    ]
