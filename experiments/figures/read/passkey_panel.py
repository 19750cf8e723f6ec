"""Passkey accuracy of one model, over seeds, as one panel of a figure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.figures.given import FigureInput, names_below, shared_attribute
from experiments.figures.look import captions
from experiments.figures.read.by_seed import BySeed, of_models
from nope.records import Records

# What the seeds of a panel have in common.
SHARED = ('position', 'train_length', 'window', 'tests', 'template', 'max_length')


@dataclasses.dataclass(frozen=True)
class PasskeyPanel:
    """names, runs: the R records, and what tells each from the others. lengths: nominal, in tokens,
    ascending. tokens: true ones of the prompts, means. depths: shares. accuracy: shares, by record.
    by_seed: the same by seed, S of them, means over the runs of a model.

    train_length: L. context: tokens that the model reads at once. tests: prompts of a cell. paper:
    percent that the paper prints, None where it is not known.
    """

    label: str
    names: tuple[str, ...]
    runs: tuple[str, ...]
    lengths: np.ndarray  # [lengths]
    tokens: np.ndarray  # [lengths]
    depths: np.ndarray  # [depths]
    accuracy: np.ndarray  # [R, lengths, depths]
    by_seed: np.ndarray  # [S, lengths, depths]
    train_length: int
    context: int
    tests: int
    template: str
    paper: float | None

    @property
    def mean(self) -> np.ndarray:
        """[lengths, depths] over seeds."""
        return self.by_seed.mean(axis=0)

    @property
    def inside(self) -> np.ndarray:
        """[lengths] bool, whether a length is within the context."""
        return self.lengths <= self.context

    @property
    def inside_by_seed(self) -> np.ndarray | None:
        """[S] mean accuracy of the cells inside the context; None where no length is."""
        return self._inside(self.by_seed)

    @property
    def inside_by_record(self) -> np.ndarray | None:
        """[R] as `inside_by_seed`."""
        return self._inside(self.accuracy)

    def _inside(self, accuracy: np.ndarray) -> np.ndarray | None:
        return accuracy[:, self.inside].mean(axis=(1, 2)) if self.inside.any() else None

    @property
    def inside_mean(self) -> float | None:
        """Over seeds as well."""
        by_seed = self.inside_by_seed
        return None if by_seed is None else float(by_seed.mean())

    def reach(self, least: float) -> int:
        """The longest length up to which the mean over depths and seeds is `least` or more at
        every length; 0 where it is less at the shortest."""
        return _reach(self.lengths, self.mean, least)

    def reach_by_seed(self, least: float) -> list[int]:
        return [_reach(self.lengths, accuracy, least) for accuracy in self.by_seed]


def _reach(lengths: np.ndarray, accuracy: np.ndarray, least: float) -> int:
    """accuracy: [lengths, depths]."""
    # The mean of ten times 0.5 or the like may fall short of it by a rounding error.
    short = np.flatnonzero(accuracy.mean(axis=1) < least - 1e-9)
    works = int(short[0]) if short.size else len(lengths)
    return int(lengths[works - 1]) if works else 0


def read(given: FigureInput, chosen: Mapping[str, Any]) -> PasskeyPanel:
    """The panel `chosen`, an entry of the figure's options that has records.

    ValueError where its seeds were measured at different lengths or depths, or differ in
    more than their seed.
    """
    name = chosen['record']
    names = names_below(given, name)
    found = BySeed(given.name, name, tuple(names), tuple(given.records[n] for n in names))
    facts = {attribute: shared_attribute(given, names, attribute) for attribute in SHARED}
    accuracy = found.stacked('accuracy')
    return PasskeyPanel(
        label=chosen['label'],
        names=tuple(names),
        runs=tuple(captions.run_label(r) for r in found.records),
        lengths=np.array(found.shared(lambda r: _along(r, 'length', 0), 'lengths')),
        tokens=np.array(found.shared(lambda r: r['tokens'].tolist(), 'prompts')),
        depths=np.array(found.shared(lambda r: _along(r, 'depth', 1), 'depths')),
        accuracy=accuracy,
        by_seed=of_models(accuracy, found.records),
        train_length=int(facts['train_length']),
        context=int(facts['window']),
        tests=int(facts['tests']),
        template=str(facts['template']),
        paper=None if chosen.get('paper') is None else float(chosen['paper']),
    )


def _along(records: Records, axis: str, index: int) -> list[float]:
    return records.along(axis, records['accuracy'].shape[index]).tolist()
