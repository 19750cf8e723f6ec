"""Curves of position encodings: the options that name them, and what those of a figure share."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from experiments.figures.given import FigureInput, check_choice, check_options
from experiments.figures.read.encoding_tasks import released

KEYS = {'group', 'label', 'paper'}  # of a curve


@dataclasses.dataclass(frozen=True)
class Curve:
    """Measurements of one position encoding on one input, by seed and length.

    - paper: the second paper's name of the encoding, '' for none. names: the records, one a seed.
    - longest: L, the greatest length of training. lengths: [n].
    """

    label: str
    paper: str
    names: tuple[str, ...]
    seeds: tuple[str, ...]
    longest: int
    lengths: np.ndarray


C = TypeVar('C', bound=Curve)


def needs(name: str, options: Mapping[str, Any], evaluation: str) -> dict[str, str]:
    """Prefix of record names, one record a seed below it -> evaluation. ValueError for curves that
    figure `name` does not have."""
    check_groups(name, options['curves'])
    for curve in options['curves']:
        check_options(name, curve, KEYS, ('group', 'label'), 'curves')
        check_choice(name, 'paper', curve.get('paper', ''), ('', *released.ENCODINGS))
    return {f'{curve["group"]}/': evaluation for curve in options['curves']}


def check_groups(name: str, every: Sequence[Mapping[str, Any]]) -> None:
    """ValueError where figure `name` has two curves of the same records."""
    groups = [curve.get('group') for curve in every]
    twice = [group for group in groups if groups.count(group) > 1]
    if twice and twice[0]:
        raise ValueError(f'figure {name!r}: curves have the group {twice[0]!r} twice')


def check_known(
    name: str,
    options: Mapping[str, Any],
    known: Mapping[str, Mapping[str, Any]],
    facts: tuple[str, ...] = ('task',),
) -> None:
    """ValueError unless all inputs of a figure will have the same encodings, none twice.

    - known: record name -> the attributes that it will have.
    - facts: attributes that name an input. Inputs are compared that differ in the last one alone.
    """
    found: dict[tuple, dict[str, list[tuple[str, str]]]] = {}
    for curve in options['curves']:
        member = next(key for key in known if key.startswith(f'{curve["group"]}/'))
        *outer, last = (known[member].get(fact) for fact in facts)
        inputs = found.setdefault(tuple(outer), {})
        what = ', '.join(str(x) for x in (*outer, last) if x is not None)
        inputs.setdefault(what or 'text', []).append((curve['label'], curve.get('paper', '')))
    for inputs in found.values():
        check_alike(name, inputs)


def check_alike(name: str, found: Mapping[str, Sequence[tuple[str, str]]]) -> None:
    """ValueError unless the curves of all inputs of figure `name`, a label and the paper's name
    each, are the same in the same order, none twice."""
    (first, wanted), *_ = found.items()
    for what, some in found.items():
        labels, paper = [label for label, _ in some], [name for _, name in some if name]
        for each in (labels, paper):
            if len(set(each)) < len(each):
                raise ValueError(
                    f'figure {name!r}: {what!r} has the curves {each}; accepted: none twice'
                )
        if list(some) != list(wanted):
            raise ValueError(
                f'figure {name!r}: {what!r} has the curves {labels}, {first!r} has '
                f'{[label for label, _ in wanted]}; accepted: the same for each'
            )


def grouped(given: FigureInput, every: Sequence[C], read: Callable[[C], str]) -> dict[str, list[C]]:
    """Curves by what is read, of each input the same encodings in the same order with the same
    seeds, all of them at the same lengths. ValueError where they are not."""
    found: dict[str, list[C]] = {}
    for one in every:
        found.setdefault(read(one), []).append(one)
    first = every[0]
    check_alike(given.name, {w: [(c.label, c.paper) for c in some] for w, some in found.items()})
    for what, some in found.items():
        for c in some:
            if c.seeds != first.seeds:
                raise ValueError(
                    f'figure {given.name!r}: {c.label!r} on {what!r} has the seeds '
                    f'{list(c.seeds)}, others have {list(first.seeds)}'
                )
            if not np.array_equal(c.lengths, some[0].lengths) or c.longest != some[0].longest:
                raise ValueError(
                    f'figure {given.name!r}: {c.label!r} on {what!r} was measured at other '
                    f'lengths than {some[0].label!r}'
                )
    return found
