"""Curves of position encodings: the options that name them, and what those of a figure share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from experiments.figures.base import FigureInput, check_choice, check_options
from experiments.figures.encoding_tasks import released

KEYS = {'group', 'label', 'paper'}  # of a curve


class Curve(Protocol):
    """Measurements of one position encoding on one input, by seed and length."""

    @property
    def label(self) -> str: ...
    @property
    def paper(self) -> str: ...
    @property
    def seeds(self) -> tuple[str, ...]: ...
    @property
    def longest(self) -> int: ...
    @property
    def lengths(self) -> np.ndarray: ...


C = TypeVar('C', bound=Curve)


def required(
    name: str, options: Mapping[str, Any], evaluation: str, more: tuple[str, ...] = ()
) -> dict[str, str]:
    """Prefix of record names, one record a seed below it -> evaluation, of a figure whose options
    are its curves and `more`. ValueError for options that figure `name` does not have."""
    check_options(name, options, {'curves', *more}, ('curves', *more))
    for curve in options['curves']:
        check_options(name, curve, KEYS, ('group', 'label'), 'curves')
        check_choice(name, 'paper', curve.get('paper', ''), ('', *released.ENCODINGS))
    return {f'{curve["group"]}/': evaluation for curve in options['curves']}


def grouped(given: FigureInput, every: Sequence[C], read: Callable[[C], str]) -> dict[str, list[C]]:
    """Curves by what is read, of each input the same encodings in the same order with the same
    seeds, all of them at the same lengths. ValueError where they are not."""
    found: dict[str, list[C]] = {}
    for one in every:
        found.setdefault(read(one), []).append(one)
    first = every[0]
    wanted = [(c.label, c.paper) for c in found[read(first)]]
    for what, some in found.items():
        if [(c.label, c.paper) for c in some] != wanted:
            raise ValueError(
                f'figure {given.name!r}: {what!r} has the curves {[c.label for c in some]}, '
                f'{read(first)!r} has {[label for label, _ in wanted]}'
            )
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
