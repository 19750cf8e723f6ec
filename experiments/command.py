"""Work of one command on an experiment: plan, runs, measurements, figure, exports."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import pathlib
import signal
import sys
from collections.abc import Collection, Mapping
from types import FrameType
from typing import Any

import jax

from experiments import costs, draw, history, pieces
from experiments.bench import Bench
from experiments.build import Experiment, build
from experiments.execute import check, execute
from experiments.failures import Failures
from experiments.homes import check_figure, take_figure
from experiments.plan import check_same, listed, make_plan
from experiments.runs import RunSpec
from experiments.statuses import BAD_INPUT, STOPPED
from experiments.workspace import Workspace
from nope.checkpoints import folders
from nope.checkpoints.errors import CheckpointError
from nope.interop import CheckpointFileError
from nope.runtime import compiling, ending, hardware, library_log, processes, progress
from nope.runtime.ending import Failure
from nope.runtime.errors import brief
from nope.runtime.files import read_object
from nope.training.reporting import TrainingDiverged
from nope.training.train import Interrupted

FAR_ERRORS = (processes.MissingProcessError, processes.OtherProcessError)
# Of reading a config and what it names, before any work.
INPUT_ERRORS = (ValueError, OSError, ImportError, CheckpointError, *FAR_ERRORS)

log = logging.getLogger('experiments')


def main(
    config: Mapping[str, Any], changed: Collection[str], folder: pathlib.Path, distributed: str
) -> int:
    """The exit status, 0, 1, BAD_INPUT, DIVERGED or STOPPED. changed: paths of the fields that were
    set. distributed: 'auto', 'on' or 'off'."""
    command = functools.partial(run, config, changed, folder, distributed)
    return ending.run(command, fine=(0, STOPPED))


def show_plan(
    config: Mapping[str, Any], changed: Collection[str], folder: pathlib.Path, devices: str | None
) -> int:
    """Prints the missing pieces with their least work; nothing is written. The exit status, 0 or
    BAD_INPUT. devices: as `hardware.target` takes them; None for those of this machine."""
    quiet_logging()
    try:
        target = hardware.present() if devices is None else hardware.target(devices, '--plan-for')
        experiment = build(config, changed)
        wanted = [*experiment.evals.values(), *experiment.exports]
        workspace = Workspace(folder, make=False)
        check_figure(workspace.figure(experiment.name), experiment.settings)
        missing = make_plan(workspace, wanted).missing
    except INPUT_ERRORS as error:
        print(f'error: {error}', file=sys.stderr)
        return BAD_INPUT
    told = costs.table(missing, target, experiment.evals)
    print(f'to make: {len(missing)} pieces\n{told}', flush=True)
    return 0


def run(
    config: Mapping[str, Any], changed: Collection[str], folder: pathlib.Path, distributed: str
) -> int:
    """The exit status of success or a stop; `ending.Failure` for what cannot be done."""
    quiet_logging()
    try:
        processes.start(distributed, met=ending.watch)
        if not processes.is_first():
            only_warnings()
        compiling.keep(folder.absolute() / 'programs')
        stop = StopRequest()
        should_stop = processes.StopTogether(stop.requested)
        experiment = build(config, changed)
        check_processes(experiment)
        workspace = Workspace(folder)
        workspace.check_shared()
        library_log.collect(folder / 'libraries.log')
        figure = workspace.figure(experiment.name)
        processes.from_first(lambda: check_figure(figure, experiment.settings))
        bench = Bench(workspace, experiment.compute, experiment.batch_tokens, should_stop)
        # An export is written by one process, which has to have the whole of the model.
        exports = experiment.exports if processes.count() == 1 else ()
        plan = make_plan(workspace, [*experiment.evals.values(), *exports])
        log.info('%s', plan.describe(experiment.evals))
        if plan.missing and hardware.known(jax.local_devices()[0].device_kind):
            log.info('%s', costs.sums(plan.missing, hardware.present()))
        made = [workspace.folder(spec) for spec in plan.missing]
        plans = folder / pieces.ROOM
        workspace.check_writable([*made, figure, folder / history.FILE, plans])
        place = experiment.compute.checkpoints
        if place and any(isinstance(spec, RunSpec) for spec in plan.missing):
            processes.from_first(lambda: folders.check_writable(place))
        check(bench, plan.missing)
        stop.listen()
    except INPUT_ERRORS as error:
        raise Failure(status_of(error), error) from error
    except MemoryError as error:
        raise Failure(1, f'not enough memory to read the input: {brief(error)}') from error
    try:
        processes.from_first(lambda: note(workspace, experiment))
        failures = Failures(workspace, plan.missing)
        # What only an export needs comes behind the figure.
        wanted = make_plan(workspace, list(experiment.evals.values())).missing
        execute(bench, wanted, failures)
        whole = not failures.describe(wanted)
        if whole and processes.is_first():
            sources = {name: workspace.folder(spec) for name, spec in experiment.evals.items()}
            try:
                with draw.alone(figure):
                    check_figure(figure, experiment.settings)  # another command may have drawn it
                    draw.write_inputs(figure, experiment.name, experiment.figure, sources)
                    drawn = draw.draw(figure)
                    take_figure(figure, experiment.settings)  # what cannot be drawn takes no name
                tell_claims(figure)
                print(drawn)
            except ValueError:
                execute(bench, plan.missing, failures)  # exports do not need the figure
                if not failures.describe(plan.missing):
                    tell_exports(workspace, experiment)
                raise
        execute(bench, plan.missing, failures)
        failed = failures.describe(plan.missing)
        if failed:
            left = '' if whole else f'\nthe figure {experiment.name} is not drawn'
            raise Failure(failures.status(plan.missing), f'{failed}{left}')
        tell_exports(workspace, experiment)
        processes.meet('the end of the command')
    except Interrupted as error:
        print(f'{error}. The same command goes on from here.', file=sys.stderr)
        return STOPPED
    except (
        *(TrainingDiverged, CheckpointError, CheckpointFileError, ValueError, OSError),
        *FAR_ERRORS,
    ) as error:
        raise Failure(1, error) from error
    except MemoryError as error:
        raise Failure(
            1,
            f'not enough memory for the piece named last: {brief(error)}. What was saved is kept: '
            'the same command goes on from there',
        ) from error
    return 0


def status_of(error: Exception) -> int:
    """The exit status where the input could not be read: BAD_INPUT ends a job for good, 1 lets a
    scheduler start it again."""
    if isinstance(error, FAR_ERRORS):
        return 1
    return 1 if isinstance(error, OSError) and error.errno in folders.PASSING else BAD_INPUT


def check_processes(experiment: Experiment) -> None:
    """ValueError unless all processes of the command have built the same experiment."""
    wanted = [*experiment.evals.values(), *experiment.exports]
    check_same(wanted, experiment.compute, experiment.batch_tokens, experiment.settings)


def note(workspace: Workspace, experiment: Experiment) -> None:
    """Leaves in the work folder that this command works there, and the list of its pieces."""
    history.note(workspace.root, experiment.name, sys.argv[1:])
    exports = {f'export {spec.name}': spec for spec in experiment.exports}
    wanted = {**experiment.evals, **exports}
    pieces.write(workspace.root, experiment.name, listed(workspace, wanted))


def tell_claims(figure: pathlib.Path) -> None:
    """Logs the decisions of the figure in that folder, a line each."""
    for claim in (read_object(figure / 'summary.json') or {}).get('claims', ()):
        measured = claim['measured']
        about = measured if isinstance(measured, dict) else {}
        said = claim['headline'] or about.get('missing', '')
        idle = '; '.join(about.get('learned_nothing', ()))
        reason = f'; nothing was learned by {idle}' if idle else ''
        log.info('%s: %s (%s%s)', claim['id'], claim['verdict'], said, reason)


def tell_exports(workspace: Workspace, experiment: Experiment) -> None:
    """Prints where models for other libraries are, or how to write them."""
    for export in experiment.exports:
        if processes.count() > 1:
            log.info('%s: write it with nope export on one machine', export.slug())
        else:
            print(workspace.folder(export))


_STOPS = (signal.SIGTERM, signal.SIGINT)


class StopRequest:
    """SIGTERM and the first Ctrl-C as a request that loops ask for; a second one kills. Until it
    listens the first one does: there is nothing to save while the input is read."""

    def __init__(self) -> None:
        self._asked = False
        for number in _STOPS:  # JAX has handlers of its own where there are several processes
            signal.signal(number, signal.SIG_DFL)

    def listen(self) -> None:
        for number in _STOPS:
            signal.signal(number, self._ask)

    def requested(self) -> bool:
        return self._asked

    def _ask(self, number: int, frame: FrameType | None) -> None:
        del frame
        self._asked = True
        signal.signal(number, signal.SIG_DFL)
        with contextlib.suppress(OSError):  # of a signal, which may come amid another line
            os.write(2, b'stopping at the next step; saving\n')


def quiet_logging() -> None:
    """Our own messages on stderr; of the libraries, warnings only."""
    logging.getLogger().setLevel(logging.WARNING)
    handler = progress.AboveBars()
    handler.setFormatter(logging.Formatter('%(asctime)s %(message)s', '%H:%M:%S'))
    for name in ('nope', 'experiments'):
        logger = logging.getLogger(name)
        logger.setLevel(logging.INFO)
        logger.addHandler(handler)
        logger.propagate = False


def only_warnings() -> None:
    """Quiets a process whose news another one tells."""
    for name in ('nope', 'experiments'):
        logging.getLogger(name).setLevel(logging.WARNING)
