"""From a config file to the figure: trains what is missing, measures, draws.

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
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

from absl import app, flags
from ml_collections import config_flags

from experiments import draw
from experiments.build import Experiment, build
from experiments.evaluations import eval_slug
from experiments.lab import Lab
from experiments.plan import Plan, make_plan
from experiments.workspace import Workspace, check_claim, claim
from nope.checkpoints.manager import CheckpointError
from nope.identity import execution_fields
from nope.interop import CheckpointFileError
from nope.model import ModelConfig
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
# Fields that say where files lie; what is in them counts.
PLACES = {'longbench': ('folder',), 'harness': ('files', 'include')}

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
        experiment = build(CONFIG.value)
        workspace = Workspace(pathlib.Path(WORKDIR.value))
        workspace.check_shared()
        figure, config = workspace.figure(experiment.name), scientific(CONFIG.value.to_dict())
        processes.from_first(lambda: check_claim(figure, config))
        lab = Lab(workspace, experiment.compute, experiment.batch_tokens, should_stop)
        unwritten = [e.run for e in experiment.exports if not lab.exported(e)]
        plan = make_plan(lab, [*experiment.evals.values(), *unwritten])
        log.info('%s', plan.describe())
        prepare(lab, plan)
        # Only now: what cannot be made takes no name.
        processes.from_first(lambda: claim(figure, config))
    except (ValueError, OSError, ImportError, CheckpointError, *FAR_ERRORS) as error:
        raise Failure(BAD_INPUT, error) from error
    try:
        make_records(lab, experiment)
        sources = {n: workspace.records(eval_slug(spec)) for n, spec in experiment.evals.items()}
        if processes.is_first():
            draw.write_inputs(figure, experiment.name, experiment.figure, sources)
            print(draw.draw(figure))
        write_exports(lab, experiment)
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


def prepare(lab: Lab, plan: Plan) -> None:
    """Reads what every missing piece needs, so that bad input ends the command here. The first
    process does it before the others, which then find texts tokenised."""

    def read() -> None:
        for run in plan.runs:
            lab.check_training_data(run)
        for spec in plan.evals:
            lab.check_evaluation(spec)

    processes.from_first(read)
    processes.together(read, 'reading the data')


def make_records(lab: Lab, experiment: Experiment) -> None:
    """Every evaluation of the experiment, with the runs below it."""
    for spec in experiment.evals.values():
        lab.ensure_records(spec)


def write_exports(lab: Lab, experiment: Experiment) -> None:
    """Models for other libraries, by one process only: it has to have the whole of them."""
    for export in experiment.exports:
        if processes.count() > 1:
            log.info('%s: write it with tools/export_hf.py on one machine', export.slug())
        else:
            print(lab.ensure_export(export))


def scientific(config: dict[str, Any]) -> dict[str, Any]:
    """The config without what changes no result: a figure may be drawn again with other
    `compute`, or with layers unrolled."""
    execution = execution_fields(ModelConfig)
    model = {k: v for k, v in config['model'].items() if k not in execution}
    evaluation = {k: v for k, v in config['evaluation'].items() if k != 'batch_tokens'}
    kept = {k: v for k, v in config.items() if k != 'compute'}
    for section, places in PLACES.items():
        if section in kept:
            kept[section] = {k: v for k, v in kept[section].items() if k not in places}
    return kept | {'model': model, 'evaluation': evaluation}


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
    try:
        rest = flags.FLAGS(argv)
        CONFIG.value.keys()  # a file that did not load says so at its first use
        return rest
    except (flags.Error, AttributeError, KeyError, OSError, TypeError, ValueError) as error:
        print(f'error: {error}', file=sys.stderr)
        sys.exit(BAD_INPUT)


if __name__ == '__main__':
    app.run(main, flags_parser=parse_flags)
