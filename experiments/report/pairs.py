"""Pairs: what two work folders have of the same name, beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

SIDES = ('A', 'B')


class Item(Protocol):
    """Part of a section about one work folder.

    - names: its title, then aliases by which the other folder may know it.
    - compared: equal for equal items.
    """

    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def compared(self) -> Any: ...


T = TypeVar('T', bound=Item)


class Beside(NamedTuple, Generic[T]):
    """cells: one a folder, None where it has none. note: how they compare; '' of one folder."""

    title: str
    cells: tuple[T | None, ...]
    note: str

    @property
    def sides(self) -> list[tuple[str, T]]:
        """The cells that there are, each with the letter of its folder ('' of one folder)."""
        letters = SIDES if len(self.cells) > 1 else ('',)
        return [(s, c) for s, c in zip(letters, self.cells, strict=True) if c is not None]

    @property
    def shown(self) -> list[tuple[str, T]]:
        """As `sides`, what is the same once, with both letters."""
        return [('A, B', self.sides[0][1])] if self.note == 'same' else self.sides

    @property
    def marked(self) -> bool:
        return self.note not in ('', 'same')


def paired(sides: Sequence[Sequence[T]]) -> list[Beside[T]]:
    """Items of one folder, or of two by name, in the order of the first one."""
    if len(sides) == 1:
        return [Beside(item.names[0], (item,), '') for item in sides[0]]
    first, second = sides
    partners = _partners(first, second)
    others = [second[partners[i]] if i in partners else None for i in range(len(first))]
    found: list[Beside[T]] = [
        Beside(item.names[0], (item, other), _note(item, other))
        for item, other in zip(first, others, strict=True)
    ]
    taken = set(partners.values())
    alone = [item for i, item in enumerate(second) if i not in taken]
    return [*found, *(Beside(item.names[0], (None, item), 'only in B') for item in alone)]


def _partners(first: Sequence[Item], second: Sequence[Item]) -> dict[int, int]:
    """Index in the second folder by that in the first. Equal items are matched first, then equal
    first names, then aliases."""

    def same(a: Item, b: Item) -> bool:
        return a.names[0] == b.names[0] and a.compared == b.compared

    def named(a: Item, b: Item) -> bool:
        return a.names[0] == b.names[0]

    def known(a: Item, b: Item) -> bool:
        return not set(a.names).isdisjoint(b.names)

    found: dict[int, int] = {}
    free = dict.fromkeys(range(len(second)))
    for alike in (same, named, known):
        for i, item in enumerate(first):
            if i not in found:
                j = next((j for j in free if alike(item, second[j])), None)
                if j is not None:
                    found[i] = j
                    del free[j]
    return found


def _note(a: Item, b: Item | None) -> str:
    if b is None:
        return 'only in A'
    return 'same' if a.compared == b.compared else 'differs'
