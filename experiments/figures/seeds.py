"""Figures of one model each, measured for several seeds: one picture, claims of every seed.

Kinds that read a record by its name ('nope') draw one seed, and so do kinds that say so (`ALONE`).
Where there are records of several seeds ('nope/seed0', 'nope/seed1'), each seed is drawn alone for
its numbers and claims. The picture shows their means if the kind says that these mean something
(`MEANS`), and else the first seed: single heads of two models have nothing in common.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures.base import FigureInput, FigureOutput, names_below
from experiments.figures.claims import headline
from experiments.figures.claims.decided import Decided
from experiments.figures.claims.intervals import Interval
from experiments.figures.claims.verdict import verdict
from experiments.figures.read.pooled import pool
from nope.records import Records

STATEMENT = (
    'Decided for each seed; where seeds disagree, or the 95 % interval of a number that decides '
    'alone contains its limit, nothing is decided.'
)

Draw = Callable[[FigureInput], FigureOutput]


def draw(
    drawing: Draw,
    needs: Mapping[str, str],
    given: FigureInput,
    means: bool = False,
    alone: bool = False,
    single: Draw | None = None,
) -> FigureOutput:
    """Figure of one seed or of several, each drawn by `drawing`.

    The kind requires `needs`. With `means` the picture shows the means over seeds. With `alone`
    `drawing` takes one seed also below a prefix ('nope/'). Without several seeds `single` draws, by
    default `drawing`. ValueError where the records differ in their seeds.
    """
    singles = [name for name in needs if not name.endswith('/') and name not in given.records]
    groups = [name.removesuffix('/') for name in needs if name.endswith('/')] if alone else []
    seeds = _seeds(given, [*singles, *groups])
    if len(seeds) < 2:
        drawing = single or drawing
    if not seeds:
        return drawing(given)
    by_name = {name: [given.records[f'{name}/{seed}'] for seed in seeds] for name in singles}
    outputs = {}
    for s, seed in enumerate(seeds):
        alone_S = _with(given, {name: records[s] for name, records in by_name.items()})
        outputs[seed] = drawing(_without_others(alone_S, groups, seed))
    shown = next(iter(outputs.values()))
    if means and len(seeds) > 1:
        shown = drawing(_with(given, {name: pool(records) for name, records in by_name.items()}))
    said = f'means over {len(seeds)} seeds' if means else f'{seeds[0]} of {len(seeds)} seeds'
    return dataclasses.replace(
        shown,
        rows=[{'seed': seed, **row} for seed, found in outputs.items() for row in found.rows],
        caption=shown.caption if len(seeds) == 1 else f'{shown.caption} Shown: {said}.',
        claims=over_seeds([found.claims for found in outputs.values()]),
        runs={
            f'{name}/{seed}' if name in singles else name: run
            for seed, found in outputs.items()
            for name, run in found.runs.items()
        },
    )


def over_seeds(claims_S: Sequence[Sequence[Decided]]) -> list[Decided]:
    """Claims of S seeds as one each. Numbers become means with their intervals. A claim holds, or
    does not, where it does for every seed. An interval that contains the limit of a number that
    decides alone leaves it undecided."""
    if len(claims_S) == 1:
        return list(claims_S[0])
    found = []
    for claims in zip(*claims_S, strict=True):
        numbers = headline.merged([claim.numbers for claim in claims])
        said = verdict([c.verdict for c in claims], open_=any(n.open for n in numbers))
        pooled = dataclasses.replace(
            claims[0],
            measured=_merged([claim.measured for claim in claims]),
            statement=f'{claims[0].statement} {STATEMENT}',
            verdict=said,
            numbers=numbers,
        )
        found.append(pooled)
    return found


def _merged(values: Sequence[Any]) -> Any:
    """Values of the seeds with the same keys, numbers as means with intervals; what is the same for
    every seed once, and else one by one."""
    if all(isinstance(value, Mapping) and set(value) == {'mean', 'by_seed'} for value in values):
        return Interval.of(np.array([value['mean'] for value in values])).stated()
    if all(isinstance(value, Mapping) for value in values):
        keys = dict.fromkeys(key for value in values for key in value)
        return {key: _merged([value.get(key) for value in values]) for key in keys}
    if all(isinstance(value, list | tuple) and len(value) == len(values[0]) for value in values):
        return [_merged(items) for items in zip(*values, strict=True)]
    if all(isinstance(value, float | np.floating) for value in values):
        return Interval.of(np.array(values)).stated()
    same = all(type(value) is type(values[0]) and value == values[0] for value in values[1:])
    return values[0] if same else {'by_seed': list(values)}


def _seeds(given: FigureInput, names: Sequence[str]) -> list[str]:
    """'seed0', 'seed1' ...: what stands behind each of `names` in the records. None where a name
    has no record, which the kind names itself."""
    found = {
        name: [key.removeprefix(f'{name}/') for key in names_below(given, f'{name}/')]
        for name in names
    }
    if not all(found.values()):
        return []
    first = next(iter(found), '')
    others = {name: seeds for name, seeds in found.items() if seeds != found[first]}
    if others:
        raise ValueError(
            f'figure {given.name!r}: the records differ in their seeds: '
            f'{ {first: found[first], **others} }'
        )
    return found.get(first, [])


def _without_others(given: FigureInput, names: Sequence[str], seed: str) -> FigureInput:
    """The input without the records below `names` that are of other seeds."""
    others = {key for name in names for key in names_below(given, f'{name}/')}
    others -= {f'{name}/{seed}' for name in names}
    kept = {key: record for key, record in given.records.items() if key not in others}
    return dataclasses.replace(given, records=kept)


def _with(given: FigureInput, records: Mapping[str, Records]) -> FigureInput:
    return dataclasses.replace(given, records={**given.records, **records})
