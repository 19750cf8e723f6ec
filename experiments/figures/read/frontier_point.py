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


@dataclasses.dataclass(frozen=True)
class FrontierPoint:
    """Losses of windows by length, and shares of keys.

    - keys, four: single keys and one of four, None for keys that were not asked for.
    - times: multiple of L at which the frontier is drawn.
    """

    label: str
    loss: Group
    keys: KeyGroup | None
    four: KeyGroup | None
    times: float

    @property
    def x(self) -> np.ndarray:
        """[seeds] mean loss of windows of L, nats."""
        return self.loss.loss_window[:, self._index(1)]

    @property
    def y(self) -> np.ndarray:
        """[seeds] mean loss of windows of `times` L, nats."""
        return self.loss.loss_window[:, self._index(self.times)]

    @property
    def share(self) -> np.ndarray | None:
        """[seeds] of keys repeated at `times` L, None where they were not asked for."""
        if self.keys is None:
            return None
        index = self.keys.at(self.times)
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


def read(given: FigureInput, chosen: Mapping[str, Any], times: float) -> FrontierPoint:
    """The point of an entry of the options.

    ValueError where the lengths L and `times` L were not measured, and where losses and keys are
    of other seeds or other runs.
    """
    label = chosen['label']
    loss = length_group.read(given, chosen['loss'], label)
    asked = {
        field: key_group.read(given, chosen[field], label) if chosen.get(field) else None
        for field in ('keys', 'four')
    }
    point = FrontierPoint(label, loss, asked['keys'], asked['four'], times)
    for multiple in (1.0, times):
        _check_length(given, chosen['loss'], loss, multiple)
    for group in (g for g in asked.values() if g is not None):
        check_runs(given, loss, group)
    if point.keys is not None:
        _check_length(given, chosen['keys'], point.keys, times)
    return point


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
            'share_of_keys': _at(point.keys, 'shares', s, multiple),
            'share_of_four_keys': _at(point.four, 'shares', s, multiple),
            'prompts': None if point.keys is None else point.keys.prompts,
            'asked': None if point.keys is None else point.keys.asked,
            'loss_record': point.loss.names[s],
            'keys_record': None if point.keys is None else point.keys.names[s],
            'four_record': None if point.four is None else point.four.names[s],
        }
        for s, seed in enumerate(point.loss.seeds)
        for multiple in multiples
    ]


def _at(group: Group | KeyGroup | None, measure: str, seed: int, multiple: float) -> float | None:
    """None where that length was not measured."""
    index = None if group is None else group.at(multiple)
    return None if index is None else float(getattr(group, measure)[seed, index])
