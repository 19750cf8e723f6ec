"""List of the pieces of a figure, as the commands that make them leave it in the work folder.

    WORKDIR/plans/NAME.json

It says where each piece will be and how to tell its state, so that a sweep can be watched without
its config and without JAX.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Sequence

from nope.runtime.files import read_object, write_json

ROOM = 'plans'


@dataclasses.dataclass(frozen=True)
class Piece:
    """A run, an evaluation or an export. Paths are relative to the work folder.

    what: 'train', 'measure' or 'export'. wanted: whether the config itself asks for it. used_by:
    names of the evaluations and exports of the config that are made from it or are it. folder: its
    home, with `finished` in it once it is whole. lock: held by whoever makes it. failed: why the
    last attempt failed. needs: folders of the pieces before it. steps, tokens: of a training, in
    all and of a step; 0 for others.
    """

    what: str
    wanted: bool
    used_by: tuple[str, ...]
    folder: str
    finished: str
    lock: str
    failed: str
    needs: tuple[str, ...]
    steps: int = 0
    tokens: float = 0.0

    @property
    def name(self) -> str:
        return pathlib.PurePath(self.folder).name


def write(root: pathlib.Path, name: str, pieces: list[Piece]) -> None:
    """Leaves the list of figure `name` in the work folder `root`. pieces: each after its needs."""
    write_json(_path(root, name), {'pieces': [dataclasses.asdict(piece) for piece in pieces]})


def names(root: pathlib.Path) -> list[str]:
    """The figures that have a list."""
    return sorted(path.stem for path in (root / ROOM).glob('*.json'))


def read(root: pathlib.Path, name: str) -> list[Piece]:
    """The list of figure `name`. ValueError where there is none, or where it is damaged."""
    path = _path(root, name)
    found = read_object(path)
    if found is None:
        known = ', '.join(names(root)) or 'none'
        raise ValueError(f'{path} is missing; the figures that commands worked on here: {known}')
    try:
        return [
            Piece(**entry | {name: tuple(entry[name]) for name in ('used_by', 'needs')})
            for entry in found['pieces']
        ]
    except (KeyError, TypeError) as error:
        raise ValueError(f'{path} is damaged: it lists no pieces ({error})') from error


def asked(unmade: Sequence[Piece]) -> list[Piece]:
    """Pieces that the config asks for and that are not there, and pieces that these need. unmade:
    each after its needs."""
    found: set[str] = set()
    for piece in reversed(unmade):
        if piece.wanted or piece.folder in found:
            found |= {piece.folder, *piece.needs}
    return [piece for piece in unmade if piece.folder in found]


def reason(path: pathlib.Path) -> str:
    """Error message, host and time of a piece's failure, by its note; '' where there is none."""
    note = read_object(path)
    if note is None:
        return ''
    return f'{note.get("error")} on {note.get("host")}, {note.get("at")}: {note.get("message")}'


def _path(root: pathlib.Path, name: str) -> pathlib.Path:
    return root / ROOM / f'{name}.json'
