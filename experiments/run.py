"""Command line of an experiment: trains what is missing, measures, draws the figure.

    python -m experiments.run --config=configs/fig1.py:quick --workdir=work/quick \\
        [--config.train.steps=1200 ...]

Started again after any stop, it goes on from the last checkpoint. Exit status: 0 done, 1 a
run failed, 2 bad input (nothing was compiled), 143 stopped by SIGTERM or Ctrl-C and saved.
"""

from __future__ import annotations

from nope.runtime import memory

if __name__ == '__main__':  # before the imports below, which take seconds
    memory.restart_with_huge_pages()
    memory.few_arenas()

import functools
import logging
import pathlib
import re
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

from absl import app, flags
from ml_collections import config_flags

from experiments import draw
from experiments.bench import Bench
from experiments.build import Experiment, build
from experiments.execute import check, execute
from experiments.homes import check_figure, take_figure
from experiments.plan import make_plan
from experiments.workspace import Workspace
from nope.checkpoints.manager import CheckpointError
from nope.interop import CheckpointFileError
from nope.runtime import ending, processes
from nope.runtime.ending import Failure
from nope.training.reporting import TrainingDiverged
from nope.training.train import Interrupted

CONFIG = config_flags.DEFINE_config_file('config', None, 'Config file, as FILE.py:SIZE.')
WORKDIR = flags.DEFINE_string(
    'workdir', None, 'Folder for runs, records and figures.', required=True
)
DISTRIBUTED = flags.DEFINE_enum(
    'distributed',
    processes.AUTO,
    [processes.AUTO, processes.ON, processes.OFF],
    'Whether other processes belong to this command: as the environment says, or as JAX finds out.',
)
PROFILE = flags.DEFINE_integer(
    'profile',
    None,
    'Steps of each run to trace, for TensorBoard and Perfetto; short for --config.compute.profile.',
)
flags.mark_flag_as_required('config')

FAR_ERRORS = (processes.MissingProcessError, processes.OtherProcessError)
STOPPED = 128 + signal.SIGTERM
BAD_INPUT = 2

NONE = re.compile(r'--config\.([^=]+)=None')
changed: list[str] = []  # paths of the fields that the command line has set

log = logging.getLogger('experiments')


def main(argv: Sequence[str]) -> int:
    return ending.run(functools.partial(command, argv), fine=(0, STOPPED))


def command(argv: Sequence[str]) -> int:
    """The exit status; `ending.Failure` for what cannot be done."""
    if len(argv) > 1:
        raise Failure(
            BAD_INPUT,
            f'stray arguments {argv[1:]}; options are --config, --workdir, --profile, '
            '--distributed and --config.FIELD=VALUE',
        )
    quiet_logging()
    try:
        processes.start(DISTRIBUTED.value, met=ending.watch)
        if not processes.is_first():
            only_warnings()
        should_stop = processes.StopTogether(StopRequest().requested)
        if PROFILE.value is not None:
            CONFIG.value.compute.profile = PROFILE.value
        experiment = build(CONFIG.value, changed)
        workspace = Workspace(pathlib.Path(WORKDIR.value))
        workspace.check_shared()
        figure = workspace.figure(experiment.name)
        processes.from_first(lambda: check_figure(figure, experiment.settings))
        bench = Bench(workspace, experiment.compute, experiment.batch_tokens, should_stop)
        # An export is written by one process, which has to have the whole of the model.
        exports = experiment.exports if processes.count() == 1 else ()
        plan = make_plan(workspace, [*experiment.evals.values(), *exports])
        log.info('%s', plan.describe())
        check(bench, plan.missing)
        # Only now: what cannot be made takes no name.
        processes.from_first(lambda: take_figure(figure, experiment.settings))
    except (ValueError, OSError, ImportError, CheckpointError, *FAR_ERRORS) as error:
        raise Failure(BAD_INPUT, error) from error
    try:
        # What only an export needs comes behind the figure.
        wanted = list(experiment.evals.values())
        execute(bench, make_plan(workspace, wanted).missing)
        if processes.is_first():
            sources = {name: workspace.folder(spec) for name, spec in experiment.evals.items()}
            draw.write_inputs(figure, experiment.name, experiment.figure, sources)
            print(draw.draw(figure))
        execute(bench, plan.missing)
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
    return 0


def tell_exports(workspace: Workspace, experiment: Experiment) -> None:
    """Prints where models for other libraries are, or how to write them."""
    for export in experiment.exports:
        if processes.count() > 1:
            log.info('%s: write it with tools/export_hf.py on one machine', export.slug())
        else:
            print(workspace.folder(export))


class StopRequest:
    """Turns SIGTERM and the first Ctrl-C into a request that loops ask for; a second one kills."""

    def __init__(self) -> None:
        self._asked = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask)

    def requested(self) -> bool:
        return self._asked

    def _ask(self, number: int, frame: FrameType | None) -> None:
        del frame
        self._asked = True
        signal.signal(number, signal.SIG_DFL)
        print('stopping at the next step; saving', file=sys.stderr)


def quiet_logging() -> None:
    """Our own messages on stderr; of the libraries, warnings only."""
    logging.getLogger().setLevel(logging.WARNING)
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter('%(asctime)s %(message)s', '%H:%M:%S'))
    for name in ('nope', 'experiments'):
        logger = logging.getLogger(name)
        logger.setLevel(logging.INFO)
        logger.addHandler(handler)
        logger.propagate = False


def only_warnings() -> None:
    """Of a process whose news another one tells."""
    for name in ('nope', 'experiments'):
        logging.getLogger(name).setLevel(logging.WARNING)


def parse_flags(argv: Sequence[str]) -> list[str]:
    """The arguments that are no flags. Exits with 2 for a config file, a flag or a field that is
    not there, or takes another type of value."""
    nones = [found[1] for argument in argv if (found := NONE.fullmatch(argument))]
    try:
        rest = flags.FLAGS([argument for argument in argv if not NONE.fullmatch(argument)])
        CONFIG.value.keys()  # a file that did not load says so at its first use
        for path in nones:
            set_none(CONFIG.value, path)
        changed.extend((*config_flags.get_override_values(flags.FLAGS['config']), *nones))
        return rest
    except (flags.Error, AttributeError, KeyError, OSError, TypeError, ValueError) as error:
        print(f'error: {error}', file=sys.stderr)
        sys.exit(BAD_INPUT)


def set_none(config: Any, path: str) -> None:
    """Sets a field to None, which the flags of ml_collections do not take for a value."""
    *sections, last = path.split('.')
    for name in sections:
        config = config[name]
    if last not in config:
        raise KeyError(f'--config.{path}: there is no such field')
    if hasattr(config[last], 'items'):
        raise ValueError(f'--config.{path}=None: it is a section; accepted are its fields')
    with config.ignore_type():
        config[last] = None


if __name__ == '__main__':
    app.run(main, flags_parser=parse_flags)
