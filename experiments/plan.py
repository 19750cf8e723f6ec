"""Plan of an experiment: the missing pieces, each after what it needs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from experiments.specs import Spec
from experiments.workspace import Workspace
from nope.runtime import processes


@dataclasses.dataclass(frozen=True)
class Plan:
    """Missing pieces in the order they can be made, and how many are there already."""

    missing: tuple[Spec, ...]
    finished: int

    def describe(self) -> str:
        if not self.missing:
            return f'nothing to train or measure: all {self.finished} pieces are there'
        lines = [f'to make: {len(self.missing)} pieces']
        lines += [f'  {spec.describe()}' for spec in self.missing]
        return '\n'.join([*lines, f'  {self.finished} finished pieces are used as they are'])


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
