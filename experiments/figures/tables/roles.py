"""Claims that rows of a table decide, or cannot decide for a reason that is then given."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from experiments.figures.base import Claim
from experiments.figures.tables import options
from experiments.figures.tables.options import Options

R = TypeVar('R')


class Undecided(Exception):
    """What a claim needs is missing; the text says what."""


class Roles(Generic[R]):
    """The rows that play a part in claims, by the part."""

    def __init__(self, figure: str, given: Options, rows: Mapping[str, R]) -> None:
        self._figure, self._given, self._rows = figure, given, rows

    def __getitem__(self, role: str) -> R:
        """The row of a role that one row plays. Undecided where none does."""
        return self._rows[self._found(role)]

    def by_multiple(self, role: str) -> dict[float, R]:
        """The rows of a role that is played for multiples of L, in their order."""
        found = options.multiples(self._figure, role, self._found(role))
        return {multiple: self._rows[found[multiple]] for multiple in sorted(found)}

    def _found(self, role: str) -> Any:
        if not self._given.get(role):
            raise Undecided(f'no row has the role {role!r}')
        return self._given[role]


@dataclasses.dataclass(frozen=True)
class ClaimTest(Generic[R]):
    """A claim to be: `measure` gives what was measured and whether the claim holds."""

    number: int | None
    paper: str
    statement: str
    measure: Callable[[Roles[R]], tuple[Mapping[str, Any], bool]]

    def claim(self, roles: Roles[R]) -> Claim:
        measured: Mapping[str, Any]
        holds: bool | None
        try:
            measured, holds = self.measure(roles)
        except Undecided as reason:
            measured, holds = {'missing': str(reason)}, None
        return Claim(self.number, self.paper, measured, holds, self.statement)
