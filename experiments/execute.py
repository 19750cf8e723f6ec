"""Execution of a plan: its pieces in order, shared with other commands on the same work folder.

A command takes the first missing piece whose needs are there and that nobody else is at work on.
So commands that are started together finish a sweep together, on one machine or on many (an array
of jobs). Where one is killed the others take up its work. A failure stops nothing but the pieces
that need it (`experiments.failures`).
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Sequence

from experiments import exports
from experiments.ahead import check_attention
from experiments.bench import Bench
from experiments.evaluations import EvalSpec, measuring
from experiments.exports import ExportSpec
from experiments.failures import Failures
from experiments.homes import take_home
from experiments.runs import RunSpec, training
from experiments.specs import Spec, identity
from nope.checkpoints.lease import sole
from nope.runtime import processes
from nope.runtime.files import BusyError, sweep

LOOK_SECONDS = 1.0  # between looks at what others are at work on, at first
MOST_SECONDS = 10.0  # between later ones

log = logging.getLogger(__name__)


def check(bench: Bench, pieces: Sequence[Spec]) -> None:
    """Reads what every piece needs, so that bad input ends the command before anything is trained.
    The first process does it before the others, which then find texts tokenised."""

    def read() -> None:
        for spec in pieces:
            if isinstance(spec, RunSpec):
                training.check(bench, spec)
            elif isinstance(spec, EvalSpec):
                measuring.check(bench, spec)
            if isinstance(spec, RunSpec | EvalSpec):
                check_attention(spec, bench.compute, bench.batch_tokens)

    processes.from_first(read)
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
            number, check_alone = _take(bench, pieces, finished, failures, held)
            if number is None:
                return
            if number >= 0:
                bench.stop_where_asked('between two pieces')
                try:
                    _make(bench, pieces[number], check_alone)
                except Exception as error:
                    if failures is None:
                        raise
                    failures.add(pieces[number], error)
                else:
                    if failures is not None:
                        failures.remove(pieces[number])
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
) -> tuple[int | None, Callable[[], None]]:
    """The number of a piece that this command alone may make now, and a function to call now and
    then while it is made. -1: there is none for the moment; None: all are there or given up.

    finished: those that were there at an earlier look; more are added. The first process decides
    and holds the folder, until `held` is closed.
    """
    checks: list[Callable[[], None]] = []

    def decide() -> int | None:
        waiting = (spec for spec in pieces if spec not in finished)
        finished.update([spec for spec in waiting if bench.workspace.finished(spec)])
        missing = [spec for spec in pieces if spec not in finished]
        given_up: list[Spec] = []
        if failures is not None:
            failures.look(missing)
            given_up = failures.given_up(missing)
        if len(given_up) == len(missing):
            return None
        for number, spec in enumerate(pieces):
            if spec in finished or spec in given_up or not set(spec.needs).isdisjoint(missing):
                continue
            folder = bench.workspace.folder(spec)
            try:
                checks.append(held.enter_context(sole(folder, spec.lock(folder))))
            except BusyError:
                continue
            if not bench.workspace.finished(spec):
                return number
            held.close()  # made by another one in the meantime
            checks.clear()
        return -1

    number = processes.from_first(decide)
    return number, checks[0] if checks else lambda: None


def _make(bench: Bench, spec: Spec, check_alone: Callable[[], None]) -> None:
    folder = bench.workspace.folder(spec)
    log.info('%s', spec.describe())
    bench.check_alone = check_alone
    if isinstance(spec, ExportSpec):
        exports.make(bench, spec, folder)
        return
    processes.from_first(lambda: take_home(folder, identity(spec)))
    processes.from_first(lambda: sweep(folder))
    if isinstance(spec, RunSpec):
        training.make(bench, spec, folder)
    elif isinstance(spec, EvalSpec):
        measuring.make(bench, spec, folder)
