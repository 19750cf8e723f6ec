"""Plan of an experiment: the missing pieces, each after what it needs."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence

from experiments.pieces import Piece
from experiments.runs import RunSpec
from experiments.specs import Spec
from experiments.workspace import Workspace
from nope.runtime import processes

# Of a config's evaluations.
Names = Mapping[str, Spec]
WHAT = {'runs': 'train', 'records': 'measure', 'exports': 'export'}  # by the room of a piece


@dataclasses.dataclass(frozen=True)
class Plan:
    """Missing pieces in the order they can be made, and how many are there already."""

    missing: tuple[Spec, ...]
    finished: int

    def describe(self, names: Names) -> str:
        if not self.missing:
            return f'nothing to train or measure: all {self.finished} pieces are there'
        lines = [f'to make: {len(self.missing)} pieces']
        lines += [f'  {line}' for line in titled(self.missing, names)]
        return '\n'.join([*lines, f'  {self.finished} finished pieces are used as they are'])


def titled(pieces: Sequence[Spec], names: Names) -> list[str]:
    """One line a piece, behind it the names that a config has for it: 'measure  ...: nope'."""
    found: dict[Spec, list[str]] = {}
    for name, spec in names.items():
        found.setdefault(spec, []).append(name)
    return [
        f'{spec.describe()}: {", ".join(found[spec])}' if spec in found else spec.describe()
        for spec in pieces
    ]


def make_plan(workspace: Workspace, wanted: Sequence[Spec]) -> Plan:
    """Walks what the wanted pieces need, and looks for all of it in the work folder. What only
    finished pieces needed is left out.

    ValueError where a folder holds something else. All processes get the first one's plan.
    """
    order = _ordered(wanted)
    done = processes.from_first(lambda: [workspace.finished(spec) for spec in order])
    finished = {spec for spec, is_done in zip(order, done, strict=True) if is_done}
    reached = _reached(wanted, finished)
    missing = tuple(spec for spec in order if spec in reached and spec not in finished)
    return Plan(missing, len(reached & finished))


def listed(workspace: Workspace, wanted: Mapping[str, Spec]) -> list[Piece]:
    """All pieces of an experiment, finished ones too, for `experiments.status`. wanted: evaluations
    and exports by name."""
    users: dict[Spec, list[str]] = {}
    for name, spec in wanted.items():
        for below in _ordered([spec]):
            users.setdefault(below, []).append(name)
    asked = set(wanted.values())
    return [
        _piece(workspace, spec, tuple(users[spec]), spec in asked)
        for spec in _ordered(list(wanted.values()))
    ]


def _piece(workspace: Workspace, spec: Spec, users: tuple[str, ...], wanted: bool) -> Piece:
    def inside(path: pathlib.Path) -> str:
        return path.relative_to(workspace.root).as_posix()

    folder = workspace.folder(spec)
    training = spec.train if isinstance(spec, RunSpec) else None
    return Piece(
        what=WHAT.get(spec.room, 'make'),
        wanted=wanted,
        used_by=users,
        folder=inside(folder),
        finished=spec.finished,
        lock=inside(spec.lock(folder)),
        failed=inside(spec.failure(folder)),
        needs=tuple(inside(workspace.folder(need)) for need in spec.needs if need.room),
        steps=training.steps if training else 0,
        tokens=training.tokens / training.steps if training else 0.0,
    )


def _ordered(wanted: Sequence[Spec]) -> list[Spec]:
    """The wanted pieces and all below them, each after what it needs."""
    order: dict[Spec, None] = {}

    def visit(spec: Spec) -> None:
        if spec not in order and spec.room:
            for part in spec.needs:
                visit(part)
            order[spec] = None

    for spec in wanted:
        visit(spec)
    return list(order)


def _reached(wanted: Sequence[Spec], finished: set[Spec]) -> set[Spec]:
    """The wanted pieces and those below them, nothing below a finished one."""
    found: set[Spec] = set()
    waiting = list(wanted)
    while waiting:
        spec = waiting.pop()
        if spec.room and spec not in found:
            found.add(spec)
            waiting += () if spec in finished else spec.needs
    return found
