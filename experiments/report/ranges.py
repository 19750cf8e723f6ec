"""Loss by range of positions and by length, over seeds."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from experiments.report.problems import noted
from experiments.report.workfolder import Recording, WorkFolder, relative

_SEED = re.compile(r'/seed\d+$')
POSITIONS = ('positions', 'attention_shape')  # evaluations with the loss of text by position
LENGTHS = {'lengths': 'loss_window', 'perplexity': 'loss'}  # evaluation -> loss by length


@dataclasses.dataclass(frozen=True)
class LossRow:
    """Losses of records that differ in their seed alone, in nats. values: upper end of a range, or
    length, in multiples of L -> one number a seed."""

    names: tuple[str, ...]
    values: Mapping[float, tuple[float, ...]]

    @property
    def compared(self) -> Any:
        return {end: [round(v, 6) for v in by_seed] for end, by_seed in self.values.items()}

    @property
    def seeds(self) -> int:
        return max(len(by_seed) for by_seed in self.values.values())

    def text(self, end: float) -> str:
        """The mean over seeds and, of several, the lowest and the highest."""
        by_seed = self.values.get(end, ())
        if not by_seed:
            return ''
        mean = f'{sum(by_seed) / len(by_seed):.3f}'
        return mean if len(by_seed) == 1 else f'{mean} ({min(by_seed):.3f} to {max(by_seed):.3f})'


def by_range(folder: WorkFolder) -> list[LossRow]:
    """Mean loss over L, and over each doubling of it, of records with loss by position."""
    return _rows(folder, _ranges)


def by_length(folder: WorkFolder) -> list[LossRow]:
    """Mean loss of windows of each length."""
    return _rows(folder, _lengths)


def range_name(end: float) -> str:
    """The range that ends at `end` L and begins at the power of two below."""
    if end <= 1:
        return f'(0, {times(end)}]'
    return f'({times(2.0 ** (math.ceil(math.log2(end)) - 1))}, {times(end)}]'


def times(multiple: float) -> str:
    return 'L' if multiple == 1 else f'{multiple:.4g}\N{NO-BREAK SPACE}L'


def _rows(folder: WorkFolder, losses: Any) -> list[LossRow]:
    """One row for all seeds of a name. losses: of a `Recording`, by multiple of L."""
    rows: dict[str, dict[float, list[float]]] = {}
    for name, recording in _named(folder):
        with noted(folder.problems, relative(recording.folder, folder.root)):
            found = losses(recording)
            for end, value in found.items():
                rows.setdefault(_SEED.sub('', name), {}).setdefault(end, []).append(value)
    return [
        LossRow((name,), {end: tuple(values[end]) for end in sorted(values)})
        for name, values in rows.items()
    ]


def _named(folder: WorkFolder) -> Iterator[tuple[str, Recording]]:
    """Records by all names that figures give them, those of one seed behind each other; without a
    name by their folder."""
    pairs = [(n, r) for r in folder.recordings for n in (r.names[:-1] or r.names)]
    yield from sorted(pairs, key=lambda pair: pair[0])


def _ranges(recording: Recording) -> dict[float, float]:
    facts = recording.records.attributes
    measure = recording.records.measures.get('loss')
    if measure is None or facts.get('evaluation') not in POSITIONS:
        return {}
    train_length = int(facts['train_length'])
    position_T = recording.records.along('position', len(measure.values))
    last = float(position_T[-1])
    found, low, high = {}, 0.0, float(train_length)
    while low < last:
        high = min(high, last)
        within = (position_T > low) & (position_T <= high)
        found[high / train_length] = _finite(measure.values[within].mean())
        low, high = high, 2 * high
    return found


def _lengths(recording: Recording) -> dict[float, float]:
    facts = recording.records.attributes
    measure = recording.records.measures.get(LENGTHS.get(str(facts.get('evaluation')), ''))
    if measure is None or measure.axes != ('length',):
        return {}
    train_length = int(facts['train_length'])
    lengths = recording.records.along('length', len(measure.values))
    return {
        float(n) / train_length: _finite(v) for n, v in zip(lengths, measure.values, strict=True)
    }


def _finite(value: Any) -> float:
    if not np.isfinite(value):
        raise ValueError('the loss holds values that are not finite')
    return float(value)
