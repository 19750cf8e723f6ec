"""Roles: the entries of a figure that claims speak of, named in its options.

`roles: {role: name}` says which entry plays a part, by the name that entries of that figure go by
(a record, a group of records, a label). A role is played by one entry, by several, or for several
multiples of the training length L by one each. Nothing else tells a claim what an entry is: names
and labels are free.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
from collections.abc import Collection, Mapping
from typing import Any, Generic, TypeVar

from experiments.figures.given import FigureInput, check_multiple, check_options

R = TypeVar('R')


class Undecided(Exception):
    """Absence of something that a claim needs; the text says what is missing."""


class Shape(enum.Enum):
    """Form of a role in the options: a name, names, or {multiple of L: name}."""

    ONE = 'one'
    SEVERAL = 'several'
    BY_MULTIPLE = 'by multiple'


@dataclasses.dataclass(frozen=True)
class AcceptedRole:
    """A role that a figure accepts. players: the names that may play it. noun: what an entry is
    called in errors."""

    shape: Shape
    players: Collection[str]
    noun: str


def parts(
    shapes: Mapping[str, Shape], players: Collection[str], noun: str = 'curve'
) -> dict[str, AcceptedRole]:
    """Roles that any of `players` may play."""
    return {role: AcceptedRole(shape, players, noun) for role, shape in shapes.items()}


def check(figure: str, options: Mapping[str, Any], accepted: Mapping[str, AcceptedRole]) -> None:
    """ValueError, naming the figure and the role, unless every role in `options` is accepted and
    given to an entry that may play it."""
    given = options.get('roles') or {}
    check_options(figure, given, accepted, (), 'roles')
    for role, value in given.items():
        part = accepted[role]
        for name in _names(figure, role, part.shape, value):
            if name not in part.players:
                raise ValueError(
                    f'figure {figure!r}: role {role!r} is given to the {part.noun} {name!r}; the '
                    f'{part.noun}s are {list(part.players)}'
                )


def check_length(
    given: FigureInput,
    role: str,
    names: Mapping[str, Collection[str]],
    attribute: str = 'searched_length',
) -> None:
    """ValueError where the records of an entry contradict the role's multiple of L in their
    `attribute`. `names` has the records by the name of the entry."""
    played = (given.options.get('roles') or {}).get(role) or {}
    for multiple, name in by_multiple(given.name, role, played).items():
        check_multiple(given, names.get(name, ()), attribute, multiple)


class Roles(Generic[R]):
    """Entries by role. players: every entry by its name, in the order of the options; those that
    could not be read are left out."""

    def __init__(
        self, figure: str, options: Mapping[str, Any], players: Mapping[str, R], noun: str = 'curve'
    ) -> None:
        self._figure, self._noun = figure, noun
        self._given: Mapping[str, Any] = options.get('roles') or {}
        self.players = players

    def __getitem__(self, role: str) -> R:
        """The entry of a role that one entry plays. Undecided where none does."""
        return self._player(role, self._found(role))

    def get(self, role: str) -> R | None:
        """The entry of a role for one entry, None where none plays it."""
        return self.players.get(self._given.get(role, ''))

    def several(self, role: str) -> list[R]:
        """The entries of a role that several play. Undecided where one was not measured."""
        return [self._player(role, name) for name in self._found(role)]

    def by_multiple(self, role: str) -> dict[float, R]:
        """The entries of a role that is played for multiples of L, by ascending multiple."""
        found = by_multiple(self._figure, role, self._found(role))
        return {multiple: self._player(role, found[multiple]) for multiple in sorted(found)}

    def _found(self, role: str) -> Any:
        if not self._given.get(role):
            raise Undecided(f'no {self._noun} has the role {role!r}')
        return self._given[role]

    def _player(self, role: str, name: str) -> R:
        if name not in self.players:
            raise Undecided(f'{name!r}, of the role {role!r}, was not measured')
        return self.players[name]


def told_apart(labels: Mapping[str, str]) -> dict[str, str]:
    """Labels by name, those that several have with the name behind them."""
    shared = collections.Counter(labels.values())
    return {name: x if shared[x] == 1 else f'{x} ({name})' for name, x in labels.items()}


def by_multiple(figure: str, role: str, given: Any) -> dict[float, str]:
    """Names by multiple of L; in JSON the multiples are texts."""
    try:
        return {float(multiple): name for multiple, name in given.items()}
    except (AttributeError, TypeError, ValueError):
        raise ValueError(
            f'figure {figure!r}: role {role!r} must be {{multiple of L: label}}, got {given!r}'
        ) from None


def _names(figure: str, role: str, shape: Shape, given: Any) -> list[str]:
    if shape is Shape.BY_MULTIPLE:
        return list(by_multiple(figure, role, given).values())
    if shape is Shape.SEVERAL:
        if isinstance(given, str) or not isinstance(given, Collection):
            raise ValueError(
                f'figure {figure!r}: role {role!r} must be a list of names, got {given!r}'
            )
        return list(given)
    return [given]
