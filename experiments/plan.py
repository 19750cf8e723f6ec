"""Plan of an experiment: the missing pieces, each after what it needs."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.pieces import Piece
from experiments.runs import RunSpec, Source
from experiments.specs import Spec, identity
from experiments.workspace import Workspace
from nope.identity import digest, execution_fields, first_difference
from nope.runtime import processes
from nope.training.config import Compute

# Of a config's evaluations.
Names = Mapping[str, Spec]
# Means of execution that each process may have of its own.
OWN = frozenset({'threads', 'log_every', 'slow_step', 'hang_seconds', 'profile', 'wandb'})
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


def check_same(
    wanted: Sequence[Spec], compute: Compute, batch_tokens: int, settings: Mapping[str, Any]
) -> None:
    """ValueError unless all processes of the command make the same pieces by the same programs. It
    names a process that does not, and the first difference, of the `settings` where they differ.

    Files may have another path in each process; their content is a part of a piece's identity.
    """
    if processes.count() == 1:
        return
    parts = processes.together(
        lambda: _parts(wanted, compute, batch_tokens), 'comparing what the processes read'
    )
    digests = processes.exchange([digest(part) for part in parts])
    other = next((p for p, theirs in enumerate(digests) if theirs != digests[0]), None)
    if other is None:
        return
    pairs = zip(digests[0], digests[other], strict=False)  # their number is in the first
    number = next(i for i, (ours, theirs) in enumerate(pairs) if ours != theirs)
    shared = {path: v for path, v in settings.items() if path.removeprefix('compute.') not in OWN}
    values = [processes.exchange(value) for value in (shared, parts[number])]
    different = [first_difference(each[0], each[other]) for each in values]
    said = next(filter(None, different), 'numbers of other types')
    raise ValueError(
        f'{processes.describe(other)} (there) and the first one (here) build other experiments: '
        f'{said}; all processes need the same command and the same files'
    )


def _parts(wanted: Sequence[Spec], compute: Compute, batch_tokens: int) -> list[dict[str, Any]]:
    """Identities that all processes have to share, JSON-able: means of execution, the identity of
    every piece, and what changes the programs of their models but no result."""
    order = _ordered(wanted)
    shared = {k: v for k, v in dataclasses.asdict(compute).items() if k not in OWN}
    models = {
        part.slug(): part.model
        for spec in order
        for part in (spec, *spec.needs)
        if isinstance(part, Source)
    }
    programs = {
        name: {field: getattr(model, field) for field in sorted(execution_fields(type(model)))}
        for name, model in models.items()
    }
    execution = {'compute': shared, 'evaluation.batch_tokens': batch_tokens, 'pieces': len(order)}
    return [execution, *map(identity, order), programs]


def make_plan(workspace: Workspace, wanted: Sequence[Spec]) -> Plan:
    """Walks what the wanted pieces need, and looks for all of it in the work folder. What only
    finished pieces needed is left out.

    ValueError where a folder holds something else. All processes get the first one's plan.
    """
    order = _ordered(wanted)
    done = processes.from_first(lambda: [workspace.finished(spec) for spec in order])
    finished = {spec for spec, is_done in zip(order, done, strict=True) if is_done}
    reached: set[Spec] = set()
    waiting = list(wanted)
    while waiting:
        spec = waiting.pop()
        if spec.room and spec not in reached:
            reached.add(spec)
            waiting += () if spec in finished else spec.needs
    missing = tuple(spec for spec in order if spec in reached and spec not in finished)
    return Plan(missing, len(reached & finished))


def listed(workspace: Workspace, wanted: Mapping[str, Spec]) -> list[Piece]:
    """All pieces of an experiment, finished ones too, for `nope status`. wanted: evaluations
    and exports by name."""
    users: dict[Spec, list[str]] = {}
    for name, spec in wanted.items():
        for below in _ordered([spec]):
            users.setdefault(below, []).append(name)
    asked = set(wanted.values())
    found = []

    def inside(path: pathlib.Path) -> str:
        return path.relative_to(workspace.root).as_posix()

    for spec in _ordered(list(wanted.values())):
        folder = workspace.folder(spec)
        training = spec.train if isinstance(spec, RunSpec) else None
        found.append(
            Piece(
                what=WHAT.get(spec.room, 'make'),
                wanted=spec in asked,
                used_by=tuple(users[spec]),
                folder=inside(folder),
                finished=spec.finished,
                lock=inside(spec.lock(folder)),
                failed=inside(spec.failure(folder)),
                needs=tuple(inside(workspace.folder(need)) for need in spec.needs if need.room),
                steps=training.steps if training else 0,
                tokens=training.tokens / training.steps if training else 0.0,
            )
        )
    return found


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
