"""Figures of one model each, measured for several seeds: one picture, claims of every seed.

Kinds that read a record by its name ('nope') draw one seed, and so do kinds that say so (`ALONE`,
by their module). Where the records are those of several ('nope/seed0', 'nope/seed1'), each seed is
drawn alone for its numbers and claims. The picture is that of their means where a kind says that
these mean something (`MEANS`), and else the first seed's: single heads of two models have nothing
in common.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures.base import Claim, FigureInput, FigureOutput, names_below
from experiments.figures.claims import headline
from experiments.figures.claims.intervals import Interval
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

    needs: what the kind requires. means: whether the picture is that of the means over seeds.
    alone: whether `drawing` takes one seed also of records below a prefix ('nope/'). single: draws
    where there are not several, by default `drawing`. ValueError where records that one seed is
    taken of have different seeds.
    """
    singles = [name for name in needs if not name.endswith('/') and name not in given.records]
    groups = [name.removesuffix('/') for name in needs if name.endswith('/')] if alone else []
    seeds = _seeds(given, [*singles, *groups])
    if len(seeds) < 2:
        drawing = single or drawing
    if not seeds:
        return drawing(given)
    outputs = {
        seed: drawing(_without_others(_one(given, singles, seed), groups, seed)) for seed in seeds
    }
    first = next(iter(outputs.values()))
    shown = drawing(_pooled(given, singles, seeds)) if means and len(seeds) > 1 else first
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


def over_seeds(claims_S: Sequence[Sequence[Claim]]) -> list[Claim]:
    """Claims that were decided for each of S seeds, as one each: numbers become means with their
    intervals; a claim holds, or does not, where it does for every seed, and where the interval of a
    number that decides alone does not contain its limit."""
    if len(claims_S) == 1:
        return list(claims_S[0])
    return [_over_seeds(claims) for claims in zip(*claims_S, strict=True)]


def _over_seeds(claims: Sequence[Claim]) -> Claim:
    first, verdicts = claims[0], {claim.verdict for claim in claims}
    agreed = verdicts.pop() if len(verdicts) == 1 else 'undecided'
    if 'not measured' in verdicts:  # for one seed and not for another
        agreed = 'not measured'
    decided = {'holds': True, 'does not hold': False}
    numbers = headline.merged([claim.numbers for claim in claims])
    if agreed in decided and any(n.open for n in numbers):
        agreed = 'undecided'
    return dataclasses.replace(
        first,
        measured=_merged([claim.measured for claim in claims]),
        holds=decided.get(agreed),
        statement=f'{first.statement} {STATEMENT}',
        verdict=agreed,
        numbers=numbers,
    )


def _merged(values: Sequence[Any]) -> Any:
    """Values of the seeds with the same keys, numbers as means with intervals; what is the same for
    every seed once, and else one by one."""
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
    found = {name: _below(given, name) for name in names}
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


def _below(given: FigureInput, name: str) -> list[str]:
    prefix = f'{name}/'
    return [key.removeprefix(prefix) for key in names_below(given, prefix)]


def _one(given: FigureInput, names: Sequence[str], seed: str) -> FigureInput:
    return _with(given, {name: given.records[f'{name}/{seed}'] for name in names})


def _without_others(given: FigureInput, names: Sequence[str], seed: str) -> FigureInput:
    """The input without the records below `names` that are of other seeds."""
    others = {key for name in names for key in names_below(given, f'{name}/')}
    others -= {f'{name}/{seed}' for name in names}
    kept = {key: record for key, record in given.records.items() if key not in others}
    return dataclasses.replace(given, records=kept)


def _pooled(given: FigureInput, names: Sequence[str], seeds: Sequence[str]) -> FigureInput:
    return _with(given, {n: pool([given.records[f'{n}/{seed}'] for seed in seeds]) for n in names})


def _with(given: FigureInput, records: Mapping[str, Records]) -> FigureInput:
    return dataclasses.replace(given, records={**given.records, **records})
