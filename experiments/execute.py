"""Execution of a plan: its pieces in order, shared with other commands on the same work folder.

A command takes the first missing piece whose needs are there and that nobody else is at work on.
So commands that are started together finish a sweep together, on one machine or on many (an array
of jobs). Where one is killed the others take up its work. A failure stops nothing but the pieces
that need it (`experiments.failures`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import pathlib
import time
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from experiments import exports, facts
from experiments.ahead import check_attention
from experiments.bench import Bench
from experiments.evaluations import EvalSpec
from experiments.exports import ExportSpec
from experiments.failures import Failures
from experiments.homes import take_home
from experiments.runs import RunSpec, training
from experiments.specs import Spec, check_unchanged, identity
from nope import records
from nope.checkpoints.lease import sole
from nope.records import Records
from nope.runtime import memory, processes
from nope.runtime.files import BusyError, sweep
from nope.training.goodput import Goodput

LOOK_SECONDS = 1.0  # between looks at what others are at work on, at first
MOST_SECONDS = 10.0  # between later ones
WAIT, DONE = -1, -2  # for the number of a piece: none is free now, all are there or given up

log = logging.getLogger(__name__)


def check(bench: Bench, pieces: Sequence[Spec]) -> None:
    """Reads what every piece needs, so that bad input ends the command before anything is trained.
    The first process does it before the others, which then find texts tokenised."""

    def read() -> None:
        for spec in pieces:
            if isinstance(spec, RunSpec):
                training.check(bench, spec)
            elif isinstance(spec, EvalSpec):
                _ = bench.mesh  # refused where the devices make no such mesh
                spec.check(bench)
            if isinstance(spec, RunSpec | EvalSpec):
                check_attention(spec, bench.compute, bench.batch_tokens)

    processes.from_first(read)
    if processes.count() > 1:
        processes.together(read, 'reading the data')


def execute(bench: Bench, pieces: Sequence[Spec], failures: Failures | None = None) -> None:
    """Makes all pieces, or waits for whoever else makes them. pieces: in the order of a plan.

    failures: takes those that cannot be made; pieces that need one of them are left out, and all
    others are made first. Without it the first error is raised.
    """
    finished: set[Spec] = set()
    pause = 0.0
    while True:
        with contextlib.ExitStack() as held:
            number = processes.from_first(lambda: _take(bench, pieces, finished, failures, held))
            if number == DONE:
                return
            if number != WAIT:
                bench.stop_where_asked('between two pieces')
                _attempt(bench, pieces[number], failures)
                pause = 0.0
                continue
        processes.meet('waiting for other commands')  # all stop at the same look, or none
        bench.stop_where_asked('waiting for other commands')
        if not pause:
            log.info('other commands are at work on all that can be made now; waiting for them')
        pause = min(pause * 1.5, MOST_SECONDS) or LOOK_SECONDS
        time.sleep(pause)


def _take(
    bench: Bench,
    pieces: Sequence[Spec],
    finished: set[Spec],
    failures: Failures | None,
    held: contextlib.ExitStack,
) -> int:
    """The number of a piece that this command alone may make, until `held` is closed; or WAIT, or
    DONE. For the first process. finished: those that were there at an earlier look; more are added.
    """
    finished |= {spec for spec in pieces if spec not in finished and bench.workspace.finished(spec)}
    missing = [spec for spec in pieces if spec not in finished]
    given_up: list[Spec] = []
    if failures is not None:
        failures.look(missing)
        given_up = failures.given_up(missing)
    if len(given_up) == len(missing):
        return DONE
    return next((pieces.index(s) for s in _ready(missing, given_up) if _hold(bench, s, held)), WAIT)


def _ready(missing: Sequence[Spec], given_up: Collection[Spec]) -> Iterator[Spec]:
    """The missing pieces that can be made now: none of what they need is missing too."""
    absent = set(missing)
    return (s for s in missing if s not in given_up and absent.isdisjoint(s.needs))


def _hold(bench: Bench, spec: Spec, held: contextlib.ExitStack) -> bool:
    """Takes a piece's folder until `held` is closed; False where another command has it, or has
    made the piece in the meantime."""
    folder = bench.workspace.folder(spec)
    try:
        bench.check_alone = held.enter_context(sole(folder, spec.lock(folder)))
    except BusyError:
        return False
    if bench.workspace.finished(spec):
        held.close()
        return False
    return True


def _attempt(bench: Bench, spec: Spec, failures: Failures | None) -> None:
    """Makes a piece, and notes in `failures` whether that failed."""
    try:
        _make(bench, spec)
    except Exception as error:
        if failures is None:
            raise
        failures.add(spec, error)
    else:
        if failures is not None:
            failures.remove(spec)


def _make(bench: Bench, spec: Spec) -> None:
    folder = bench.workspace.folder(spec)
    log.info('%s', spec.describe())
    if isinstance(spec, ExportSpec):
        exports.make(bench, spec, folder)
        return
    processes.from_first(lambda: check_unchanged(spec))
    processes.from_first(lambda: take_home(folder, identity(spec)))
    processes.from_first(lambda: sweep(folder))
    if isinstance(spec, RunSpec):
        training.make(bench, spec, folder)
    elif isinstance(spec, EvalSpec):
        _measure(bench, spec, folder)


def _measure(bench: Bench, spec: EvalSpec, folder: pathlib.Path) -> None:
    """Leaves the records of an evaluation in the folder."""
    goodput = Goodput(folder)
    with goodput.time('evaluation'):
        found, more = spec.measure(bench, folder)
    goodput.write()
    memory.give_back()
    read = {'text_tokens': bench.text_tokens(spec.run)}
    best = facts.of_best(spec.run, bench.best(spec.run))
    described = _with(found, **{**spec.known, **read, **found.attributes, **more, **best})
    what, how = spec.measured_on(described)
    measured_on = {'what': what, 'how': how, 'own_text': spec.own_text}
    whole = _with(described, measured_on=measured_on)
    bench.check_alone()
    processes.from_first(lambda: records.save(whole, folder))


def _with(found: Records, **attributes: Any) -> Records:
    return dataclasses.replace(found, attributes={**found.attributes, **attributes})
