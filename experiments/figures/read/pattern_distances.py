"""Attention distances of one encoding from NoPE, for every seed, read from records."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures.given import FigureInput
from experiments.figures.read.by_seed import BySeed
from experiments.figures.read.encoding_tasks import curves

TEXT = 'text'


@dataclasses.dataclass(frozen=True)
class Distances(curves.Curve):
    """Distances between the patterns of an encoding's model and of NoPE's, of one kind of input.

    - read: the task, or 'text'. paper: 'NoPE' is another seed of NoPE.
    - distance: [S, n, L] nats. released: the same by the paper's code, or None.
    - nearest: mean over the heads of both models of the distance to the nearest head of the other.
    """

    read: str
    distance: np.ndarray
    nearest: np.ndarray
    released: np.ndarray | None

    @property
    def mean(self) -> np.ndarray:
        """[S], over lengths and layers."""
        return self.distance.mean(axis=(1, 2))

    def side(self, values: np.ndarray, *, beyond: bool) -> np.ndarray:
        """[S, L] means of [S, n, L] over the lengths of training, or over those beyond them; NaN
        where there are none."""
        chosen = (self.lengths > self.longest) == beyond
        if not chosen.any():
            return np.full((len(values), values.shape[-1]), np.nan)
        return values[:, chosen].mean(axis=1)


def read(given: FigureInput, curve: Mapping[str, Any]) -> Distances:
    """The records '<group>/<seed>' of a curve. ValueError where they differ in what is read, in
    lengths or in layers."""
    found = BySeed.of(given, curve['group'])
    found.shared(lambda r: r['distance'].shape[1], 'layers')
    has_released = all('released' in r.measures for r in found.records)
    return Distances(
        read=found.shared(lambda r: r.attributes.get('task', TEXT), 'what is read'),
        label=curve['label'],
        paper=curve.get('paper', ''),
        names=found.names,
        seeds=found.seeds,
        # L, of a task's lengths or of windows of text.
        longest=found.shared(
            lambda r: r.attributes.get('longest', r.attributes['train_length']), 'L'
        ),
        lengths=np.array(found.shared(lambda r: r.along('length', 0).tolist(), 'lengths')),
        distance=found.stacked('distance'),
        nearest=np.stack([_nearest(r['pairs'].astype(np.float64)) for r in found.records]),
        released=found.stacked('released') if has_released else None,
    )


def _nearest(pairs_nLNM: np.ndarray) -> np.ndarray:
    """[n, L] of the distances of all pairs of heads, averaged over examples."""
    each = [pairs_nLNM.min(axis=axis) for axis in (2, 3)]
    return np.concatenate(each, axis=-1).mean(axis=-1)


def by_input(given: FigureInput, every: Sequence[Distances]) -> dict[str, list[Distances]]:
    """Distances by what is read, of the same layers. ValueError where they are not, and as
    `curves.grouped`."""
    found = curves.grouped(given, every, lambda one: one.read)
    for what, (first, *others) in found.items():
        for one in others:
            if one.distance.shape != first.distance.shape:
                raise ValueError(
                    f'figure {given.name!r}: {one.label!r} on {what!r} was measured in other '
                    f'layers than {first.label!r}'
                )
    return found
