"""Rows of the table of perplexities, read from records and options."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures.given import FigureInput, names_below
from experiments.figures.read.by_seed import of_models
from experiments.figures.read.tables.options import Options
from experiments.figures.roles import Undecided
from nope.records import Records

Key = tuple[str, float]  # a corpus and a window in multiples of L

PERPLEXITY, LONGPPL = 'perplexity', 'longppl'
# What is shown of a corpus: the kind of its records -> their loss in nats, and exp of it.
MEASURES = {PERPLEXITY: ('loss', 'perplexity'), LONGPPL: ('key_loss', 'longppl')}
PER_WINDOW, ONE_FACTOR = 'best factor for each window', 'one factor'


@dataclasses.dataclass(frozen=True)
class Perplexity:
    """Loss in nats and exp of it, [R], one a record, of all tokens or of key tokens.

    - loss_by_seed: [S] means over the runs of a model.
    - factor: of the method, None without one.
    """

    loss: np.ndarray
    perplexity: np.ndarray
    loss_by_seed: np.ndarray
    factor: float | None = None

    @property
    def mean_loss(self) -> float:
        return float(self.loss_by_seed.mean())


@dataclasses.dataclass(frozen=True)
class PerplexityRow:
    """option: what the config says of it. variant: how factors were chosen, '' where there are
    none. values: those that were measured. names: the records they come from."""

    option: Options
    variant: str
    values: Mapping[Key, Perplexity]
    names: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.option['label']

    @property
    def label(self) -> str:
        if self.variant != ONE_FACTOR:
            return f'{self.name}, {self.variant}' if self.variant else self.name
        return f'{self.name}, {self.variant} ({self.factor:g})'

    @property
    def paper(self) -> str:
        return self.option.get('paper', '')

    @property
    def factor(self) -> float:
        """The one factor of the row."""
        return next(value.factor for value in self.values.values() if value.factor is not None)

    def loss(self, corpus: str, multiple: float) -> float:
        """Mean over seeds, nats; Undecided where it was not measured."""
        if (corpus, multiple) not in self.values:
            raise Undecided(f'{self.name!r} has no perplexity at {multiple:g} L on {corpus!r}')
        return self.values[corpus, multiple].mean_loss

    def losses(self, corpus: str, multiple: float) -> np.ndarray:
        """[S] nats, one a seed; Undecided as `loss`."""
        self.loss(corpus, multiple)
        return self.values[corpus, multiple].loss_by_seed


def record_name(record: str, corpus: str) -> str:
    """'nope' -> 'nope@pg19'; 'nope/', one record a seed, -> 'nope@pg19/'."""
    stem = record.removesuffix('/')
    return f'{stem}@{corpus}{record[len(stem) :]}'


def records_of(row: Options) -> list[str]:
    """The option 'record' of a row, or those of its choices."""
    if row.get('record'):
        return [row['record']]
    return [choice['record'] for choice in row.get('choices', ())]


def measure_of(corpus: Options) -> str:
    """The measure that is shown of a corpus."""
    return corpus.get('measure') or PERPLEXITY


def read(given: FigureInput, shown: Sequence[Key], corpora: Sequence[str]) -> list[PerplexityRow]:
    """Rows of the options, two for one with choices. shown: read if it was measured. corpora: their
    perplexity chooses one factor for all."""
    return [row for option in given.options['rows'] for row in _rows(given, option, shown, corpora)]


def _rows(
    given: FigureInput, option: Options, shown: Sequence[Key], corpora: Sequence[str]
) -> list[PerplexityRow]:
    names = tuple(
        name
        for record in records_of(option)
        for corpus in dict.fromkeys(corpus for corpus, _ in shown)
        for name in names_below(given, record_name(record, corpus))
    )
    if not option.get('choices') or not corpora:
        found = [values_of(given, record, shown) for record in records_of(option)]
        return [PerplexityRow(option, '', found[0] if found else {}, names)]
    choices = [
        values_of(given, choice['record'], shown, float(choice['factor']))
        for choice in option['choices']
    ]
    # What one factor lacks is compared for none.
    keys = [key for key in choices[0] if all(key in choice for choice in choices)]
    decisive = [key for key in keys if key[0] in corpora]
    if not decisive:
        windows = ', '.join(f'{w:g}' for w in dict.fromkeys(w for c, w in shown if c in corpora))
        raise ValueError(
            f'figure {given.name!r}: the choices of row {option["label"]!r} were measured at no '
            f'window of [{windows}] L in common'
        )
    best = {key: min((c[key] for c in choices), key=lambda v: v.mean_loss) for key in keys}
    single = min(choices, key=lambda c: np.mean([c[key].mean_loss for key in decisive]))
    return [
        PerplexityRow(option, PER_WINDOW, best, names),
        PerplexityRow(option, ONE_FACTOR, {key: single[key] for key in keys}, names),
    ]


def values_of(
    given: FigureInput, record: str, shown: Sequence[Key], factor: float | None = None
) -> dict[Key, Perplexity]:
    """Values by corpus and window, of those shown at which every record of `record` has a number.
    factor: noted with the values."""
    values = {}
    for corpus, multiple in shown:
        names = names_below(given, record_name(record, corpus))
        records = [given.records[name] for name in names]
        if any(_at(r, multiple) is None for r in records):
            continue
        loss, perplexity = (
            np.array(
                [r[MEASURES[r.attributes['evaluation']][which]][_at(r, multiple)] for r in records],
                dtype=np.float64,
            )
            for which in (0, 1)
        )
        if not np.isnan(loss).any():
            by_seed = of_models(loss, records)
            values[corpus, float(multiple)] = Perplexity(loss, perplexity, by_seed, factor)
    return values


def _at(records: Records, multiple: float) -> Any:
    """Index of the window of `multiple` L, None where it was not measured."""
    lengths = records.along('length', len(records['loss']))
    found = np.flatnonzero(np.isclose(lengths, multiple * records.attributes['train_length']))
    return int(found[0]) if found.size else None
