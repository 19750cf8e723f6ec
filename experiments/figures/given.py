"""Input of a figure: records and options, and their checks.

Checks come before anything is drawn. They name the figure, the record and what is missing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures.look import natural
from nope.records import Records

Measures = Mapping[str, Mapping[str, tuple[str, ...]]]
Known = Mapping[str, Mapping[str, Any]]  # record name -> the attributes that it will have

# The arrays that several figures rely on, by evaluation: measure -> axes. A figure that reads
# another evaluation, or other arrays, says so itself (`check_records`).
MEASURES: Measures = {
    'positions': {
        'loss': ('position',),
        'loss_std': ('position',),
        'entropy': ('layer', 'head', 'position'),
        'multiplier': ('layer', 'head'),
    },
    'lengths': {
        'loss_window': ('length',),
        'loss_tail': ('length',),
        'multiplier_mean': ('length',),
    },
    'perplexity': {
        'loss': ('length',),
        'perplexity': ('length',),
        'windows': ('length',),
        'documents': ('length',),
    },
    # Its other arrays are NaN where no token is key.
    'longppl': {'key_tokens': ('length',)},
    'passkey': {'accuracy': ('length', 'depth'), 'tokens': ('length',)},
    'longbench': {'score': ('dataset',), 'samples': ('dataset',)},
    'exact_match': {'accuracy': ('length',), 'samples': ('length',)},
}


@dataclasses.dataclass(frozen=True)
class FigureInput:
    """name: file name of the figure, e.g. 'fig1'. records: by the name the config gives them.
    options: the figure's own options (panels, labels, layers to show)."""

    name: str
    records: Mapping[str, Records]
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def check_options(
    figure: str,
    options: Mapping[str, Any],
    accepted: Collection[str],
    needed: Collection[str] = (),
    where: str = 'options',
) -> None:
    """ValueError, naming the figure, for an unknown or a missing key of `options`, which are
    the figure's options or one entry of them, told by `where`."""
    for key in options:
        if key not in accepted:
            raise ValueError(
                f'figure {figure!r}: unknown key {key!r} in {where}; accepted: {sorted(accepted)}'
            )
    for key in needed:
        if not options.get(key):
            raise ValueError(
                f'figure {figure!r}: {where} must give {key!r}, got {options.get(key)!r}'
            )


def check_choice(figure: str, key: str, value: Any, accepted: Collection[Any]) -> None:
    if value not in accepted:
        raise ValueError(
            f'figure {figure!r}: {key} must be one of {sorted(accepted)}, got {value!r}'
        )


def check_differ(figure: str, what: str, values: Sequence[Any]) -> None:
    """ValueError where one of `values` stands twice. what: their name, as 'labels of curves'."""
    if len(set(values)) < len(values):
        raise ValueError(f'figure {figure!r}: {what} must differ, got {list(values)}')


def check_count(figure: str, what: str, count: int, most: int) -> None:
    if count > most:
        raise ValueError(f'figure {figure!r}: {what} must be 1 to {most}, got {count}')


def names_below(given: FigureInput, name: str) -> list[str]:
    """The records that `name` stands for: those below it, in order, where it ends in '/'."""
    if name.endswith('/'):
        return sorted((k for k in given.records if k.startswith(name)), key=natural.order)
    return [name] if name in given.records else []


def check_records(
    given: FigureInput, needs: Mapping[str, str], measures: Measures = MEASURES
) -> None:
    """Checks that each needed record is there and holds the arrays that the figure reads.

    needs: record name -> evaluation. A name that ends in '/' stands for one record or more
    below it. measures: the arrays, by evaluation. Raises ValueError naming the figure, the record
    and what was found.
    """
    for name, evaluation in needs.items():
        found = names_below(given, name)
        if not found:
            raise ValueError(
                f'figure {given.name!r} needs the run {name!r} (evaluation {evaluation!r}), which '
                f'is missing; there are records of {sorted(given.records)}'
            )
        for key in found:
            _check_record(given, key, evaluation, measures[evaluation])


def _check_record(
    given: FigureInput, key: str, evaluation: str, measures: Mapping[str, tuple[str, ...]]
) -> None:
    records = given.records[key]
    where = f'figure {given.name!r}, run {key!r}'
    actual = records.attributes.get('evaluation')
    if actual != evaluation:
        raise ValueError(f'{where}: needs the evaluation {evaluation!r}, got {actual!r}')
    for measure, axes in measures.items():
        if measure not in records.measures:
            raise ValueError(
                f'{where}: no measure {measure!r}; these records hold {sorted(records.measures)}'
            )
        if tuple(records.measures[measure].axes) != axes:
            raise ValueError(
                f'{where}: measure {measure!r} needs the axes {axes}, '
                f'got {tuple(records.measures[measure].axes)}'
            )
        if not np.all(np.isfinite(records[measure])):
            raise ValueError(f'{where}: measure {measure!r} holds values that are not finite')


def shared_attribute(given: FigureInput, names: list[str], attribute: str) -> Any:
    """Common value of `attribute` of all records `names`. ValueError for records that differ."""
    values = {name: given.records[name].attributes[attribute] for name in names}
    if len(set(values.values())) != 1:
        raise ValueError(f'figure {given.name!r}: the runs differ in {attribute!r}: {values}')
    return values[names[0]]


def check_multiple(
    given: FigureInput, names: Collection[str], attribute: str, multiple: float
) -> None:
    """ValueError where the `attribute` of a record, a length in tokens, is not `multiple` L. For
    records that do not have it the options are believed."""
    for name in names:
        facts = given.records[name].attributes
        if facts.get(attribute) not in (None, round(multiple * facts['train_length'])):
            raise ValueError(
                f'figure {given.name!r}: the options say {multiple:g} L of {name!r}, whose '
                f'{attribute} is {facts[attribute]} with L = {facts["train_length"]}'
            )
