"""Events of an experiment's command: what it compiles, steps, measures, draws and reads.

tokenise DATA         the tokenisation of one part of a corpus
restore RUN           from the look for a checkpoint to what it holds
compile RUN           the first step of an attempt, with its compilation
step RUN NUMBER       a later one
item RECORDS NUMBER   a batch, or another piece of a measurement; of those that are left,
                      counted from the end
draw FIGURE           from the records to the last file of the figure
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterable, Iterator
from typing import Any

from experiments import bench, draw, execute
from experiments.runs import training
from nope.checkpoints import lease, manager
from nope.data import prepare
from nope.runtime import files
from nope.training import stepping
from tests.faults.aim import Range


class _Work:
    """What is being made, and the step that a run has come to."""

    name = ''
    step = 0


def watch(at: Range) -> None:
    """Puts `at` around the functions of a command, in this process and for ever."""
    _watch_training(at)
    _watch_measuring(at)
    for module, function in ((prepare, '_tokenise_part'), (draw, 'draw')):
        setattr(module, function, _spanned(at, getattr(module, function), function))


def leases(elsewhere: str) -> None:
    """Lets this process hold folders as on a file system whose locks are each machine's own, with
    a second of patience in place of a minute. elsewhere: name of its machine, '' for this one."""
    files._lock_is_local = lambda descriptor: True
    if elsewhere:
        files._lock = lambda *_: True  # whatever another machine holds
    defaults = lease.Lease.__init__.__kwdefaults__
    assert defaults is not None
    defaults.update(beat=0.2, silence=1.0, settling=0.1)
    if elsewhere:
        here = lease._here
        lease._here = lambda: {**here(), 'host': elsewhere}


def _spanned(at: Range, function: Any, kind: str) -> Any:
    def spanned(*args: Any, **kwargs: Any) -> Any:
        paths = [argument for argument in args if isinstance(argument, pathlib.Path)]
        name = at.name(paths[-1]) if paths else None
        with at.span(f'{kind.strip("_").partition("_")[0]} {name}'):
            return function(*args, **kwargs)

    return spanned


def _watch_training(at: Range) -> None:
    work = _Work()
    train_run, step_on, restore = training.train, stepping.step_on, manager.Checkpoints.restore

    def trained(*args: Any, **kwargs: Any) -> Any:
        work.name, batches = str(at.name(kwargs['folder'])), kwargs['batches']

        def begun(start: int) -> Any:
            work.step = start
            return batches(start)

        return train_run(*args, **{**kwargs, 'batches': begun})

    def stepped_on(*args: Any) -> Any:
        take, first = step_on(*args), True

        def take_step(*given: Any) -> Any:
            nonlocal first
            work.step += 1
            event = f'compile {work.name}' if first else f'step {work.name} {work.step}'
            first = False
            with at.span(event):
                return take(*given)

        return take_step

    def restored(*args: Any) -> Any:
        with at.span(f'restore {work.name}'):
            return restore(*args)

    training.train, stepping.step_on = trained, stepped_on
    manager.Checkpoints.restore = restored  # type: ignore[method-assign]


def _watch_measuring(at: Range) -> None:
    work = _Work()
    measure, bar = execute._measure, bench.Bench.bar

    def measured(bench: Any, spec: Any, folder: pathlib.Path) -> None:
        work.name = str(at.name(folder))
        measure(bench, spec, folder)

    def counted(*args: Any, **kwargs: Any) -> Any:
        watched = bar(*args, **kwargs)

        def items(given: Iterable) -> Iterator[Any]:
            every = list(given)
            for number, item in enumerate(watched(every)):
                with at.span(f'item {work.name} {len(every) - number}'):
                    yield item

        return items

    execute._measure = measured
    bench.Bench.bar = counted  # type: ignore[method-assign]
