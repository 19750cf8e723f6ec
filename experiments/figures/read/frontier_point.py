"""Losses and keys of one method, over seeds, as one point of a frontier."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.figures.given import FigureInput
from experiments.figures.read import key_group, length_group
from experiments.figures.read.key_group import KeyGroup
from experiments.figures.read.length_group import Group

TIMES = 8.0  # of L, at which the frontier is drawn


@dataclasses.dataclass(frozen=True)
class FrontierPoint:
    """Losses of windows by length, and shares of keys.

    keys, four: single keys and one of four, None where one of four was not asked for.
    """

    label: str
    loss: Group
    keys: KeyGroup
    four: KeyGroup | None

    @property
    def x(self) -> np.ndarray:
        """[seeds] mean loss of windows of L, nats."""
        return self.loss.loss_window[:, self._index(1)]

    @property
    def y(self) -> np.ndarray:
        """[seeds] mean loss of windows of `TIMES` L, nats."""
        return self.loss.loss_window[:, self._index(TIMES)]

    @property
    def share(self) -> np.ndarray:
        """[seeds] of keys repeated at `TIMES` L."""
        index = self.keys.at(TIMES)
        assert index is not None
        return self.keys.shares[:, index]

    @property
    def names(self) -> list[str]:
        """All records."""
        groups = (self.loss, self.keys, self.four)
        return [name for group in groups if group is not None for name in group.names]

    def _index(self, multiple: float) -> int:
        index = self.loss.at(multiple)
        assert index is not None
        return index


def read(given: FigureInput, chosen: Mapping[str, Any]) -> FrontierPoint:
    """The point of an entry of the options.

    ValueError where the lengths L and `TIMES` L were not measured, and where losses and keys are
    of other seeds or other runs.
    """
    label = chosen['label']
    loss = length_group.read(given, chosen['loss'], label)
    keys = key_group.read(given, chosen['keys'], label)
    four = key_group.read(given, chosen['four'], label) if chosen.get('four') else None
    for multiple in (1.0, TIMES):
        _check_length(given, chosen['loss'], loss, multiple)
    for group in (keys, four):
        if group is not None:
            check_runs(given, loss, group)
    _check_length(given, chosen['keys'], keys, TIMES)
    return FrontierPoint(label, loss, keys, four)


def _check_length(given: FigureInput, name: str, group: Group | KeyGroup, multiple: float) -> None:
    if group.at(multiple) is None:
        measured = ', '.join(f'{m:g}' for m in group.multiples)
        raise ValueError(
            f'figure {given.name!r}: {name!r} was measured at {measured} L, not at {multiple:g} L'
        )


def check_runs(given: FigureInput, loss: Group, keys: KeyGroup) -> None:
    """ValueError unless every seed's loss and keys are of the same run."""
    runs = [
        {
            seed: given.records[name].attributes['run_id']
            for seed, name in zip(group.seeds, group.names, strict=True)
        }
        for group in (loss, keys)
    ]
    if runs[0] != runs[1]:
        raise ValueError(
            f'figure {given.name!r}: {loss.name!r} and {keys.name!r} are of different runs: '
            f'{runs[0]} and {runs[1]}'
        )


def rows(point: FrontierPoint) -> list[dict[str, Any]]:
    """One row a seed and a length at which anything was measured."""
    groups = (point.loss, point.keys, point.four)
    multiples = sorted({float(m) for group in groups if group is not None for m in group.multiples})
    return [
        {
            'label': point.label,
            'seed': seed,
            'length_over_L': multiple,
            'loss_window_nats': _at(point.loss, 'loss_window', s, multiple),
            'loss_tail_nats': _at(point.loss, 'loss_tail', s, multiple),
            'share_of_keys': _at(point.keys, 'shares', s, multiple),
            'share_of_four_keys': _at(point.four, 'shares', s, multiple),
            'prompts': point.keys.prompts,
            'asked': point.keys.asked,
            'loss_record': point.loss.names[s],
            'keys_record': point.keys.names[s],
            'four_record': None if point.four is None else point.four.names[s],
        }
        for s, seed in enumerate(point.loss.seeds)
        for multiple in multiples
    ]


def _at(group: Group | KeyGroup | None, measure: str, seed: int, multiple: float) -> float | None:
    """None where that length was not measured."""
    index = None if group is None else group.at(multiple)
    return None if index is None else float(getattr(group, measure)[seed, index])
