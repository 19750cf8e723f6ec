"""Ahead-of-time compilation of configs for TPUs or GPUs that are not there: memory.

    pip install libtpu
    python -m tools.bench aot --config=fig4:paper --topology=v5e:16x16 [--kind=train]
    pip install --no-deps jax-cuda13-plugin jax-cuda13-pjrt  # of JAX's version; Python 3.12
    python -m tools.bench aot --config=fig4:paper --topology=h200:16  # h200:2x8: two machines
    python -m tools.bench aot --config=all --longest  # each config that has a size `paper`
    python -m tools.bench aot --config=all --longest --out=FILE.jsonl  # goes on where it ended
    python -m tools.bench aot --config=fig4:paper --topology=v5e:4x4 --kind=search \\
        --length=131072 --mesh=fsdp=1,context=16 --batch=1    # another shape

A real compilation of every training step, search step and evaluation pass, with the shardings of
a real mesh. No file of the user is read: shapes alone matter. One JSON line a program:

    topology, compiler              what for, and by which version of what
    digest                          of the program's name and mesh, by which --out=FILE.jsonl finds
                                    its line again, of the same compiler
    parameters_gib, optimizer_gib   per device, as are all sizes
    temporary_gib, total_gib        what the program needs besides its arguments, and in all
    fits                            whether `total_gib` is below nine tenths of what the device has
    remat                           what was chosen where the config's is 'fit'
    largest                         where it does not compile: the most of what stays on the device

Exits with 1 where one does not compile or fit, with 2 for a config that cannot be built.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import math
import pathlib
import re
import sys
import time
from collections.abc import Iterator
from typing import Any

import jax
from jax.sharding import Mesh

from experiments.ahead import programs
from experiments.build import Experiment
from experiments.programs import Program, Step
from nope import sharding
from nope.model import ModelConfig
from nope.runtime import hardware, progress, targets
from nope.training import remat
from tools.bench import aot_programs, aot_record

GIB = 2.0**30


def analyse(program: Program, mesh: Mesh) -> dict[str, Any]:
    """Compiles a program; what it needs of a device's memory."""
    device = hardware.known(mesh.devices.flat[0].device_kind)
    start = time.perf_counter()
    with sharding.use(mesh, program.rules):
        compiled = program.trace(mesh).lower().compile()
    seconds = time.perf_counter() - start
    memory: Any = compiled.memory_analysis()
    total = remat.program_bytes(memory)
    found: dict[str, Any] = {
        'arguments_gib': _gib(memory.argument_size_in_bytes),
        'temporary_gib': _gib(memory.temp_size_in_bytes),
        'total_gib': _gib(total),
        'compile_seconds': round(seconds, 1),
    }
    if device is None:
        return found
    capacity = hardware.USABLE * device.memory
    return found | {'capacity_gib': _gib(capacity), 'fits': total <= capacity}


def _fits_itself(program: Program) -> bool:
    return isinstance(program, Step) and program.model.remat == 'fit'


def fitted(step: Step, mesh: Mesh) -> Step:
    """The step with the least recomputation that fits, as a training chooses it."""
    device = hardware.known(mesh.devices.flat[0].device_kind)
    if device is None:
        return step

    def lowered(model: ModelConfig) -> jax.stages.Lowered:
        with sharding.use(mesh, step.rules):
            return dataclasses.replace(step, model=model).trace(mesh).lower()

    capacity = hardware.USABLE * device.memory
    model = remat.fitting(step.model, step.optimizer.trains, lowered, capacity)
    return dataclasses.replace(step, model=model)


def chosen(
    experiment: Experiment, devices: list[jax.Device], options: argparse.Namespace
) -> Iterator[tuple[Program, Mesh]]:
    """The experiment's programs that were asked for, at another shape where one was given."""
    if options.mesh:
        shape = dataclasses.replace(experiment.compute.mesh, **_sizes(options.mesh))
        compute = dataclasses.replace(experiment.compute, mesh=shape, later_mesh=shape)
        experiment = dataclasses.replace(experiment, compute=compute)
    for program, mesh in programs(experiment, devices):
        if options.kind and program.kind != options.kind:
            continue
        title = f'{program.describe()} {program.model.describe_position()}'
        if not re.search(options.only, title):
            continue
        changes = {k: getattr(options, k) for k in ('length', 'batch') if getattr(options, k)}
        if isinstance(program, Step) and options.batch:
            micro = program.accumulate * options.batch // program.batch
            changes['accumulate'] = max(micro, 1)
        yield dataclasses.replace(program, **changes), mesh


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n')[0])
    add = parser.add_argument
    again = 'configs/FOLDER/NAME.py:SIZE or NAME:SIZE, again for more; or all'
    add('--config', action='append', required=True, help=again)
    topologies = 'v5e:16x16; of two slices v5e:16x16:2; h200:16'
    add('--topology', default='v5e:4x4', help=topologies)
    add('--kind', choices=('train', 'search', 'eval'), help='default: all')
    add('--only', default='', help='a regular expression for "PROGRAM POSITION", as printed')
    changed = 'SECTION.FIELD=TEXT of the config, as data.tokenizer=FILE'
    add('--set', action='append', default=[], help=changed)
    of_shapes = 'of programs that differ in shape, or numbers of a scaling, alone the longest'
    add('--longest', action='store_true', help=of_shapes)
    gets = 'FILE.jsonl that gets the lines too; programs that it has are not compiled again'
    add('--out', type=pathlib.Path, help=gets)
    add('--mesh', default='', help="AXIS=SIZE,... in place of the config's")
    add('--length', type=int, help='tokens, in place of every length')
    add('--batch', type=int, help='sequences, in place of every batch')
    options = parser.parse_args()
    every = options.config == ['all']
    experiments: dict[str, Experiment] = {}
    for config in aot_programs.configs() if every else options.config:
        try:
            experiments[config] = aot_programs.load(config, options.set, every)
        except (ImportError, KeyError, OSError, ValueError) as error:
            how = '' if isinstance(error, ImportError) else ' (here by --set=SECTION.FIELD=TEXT)'
            print(f'error: {config}: {error}{how}', file=sys.stderr)
            return 2
    devices = targets.devices(options.topology)
    chosen_from: dict[tuple[Program, Mesh], str] = {}  # the first config that has the program
    for config, experiment in experiments.items():
        for program, mesh in chosen(experiment, devices, options):
            chosen_from.setdefault((program, mesh), config)
    if not chosen_from:
        raise SystemExit(f'--kind={options.kind} --only={options.only}: there is no such program')
    if options.longest:
        chosen_from = aot_programs.longest(chosen_from)
    failed = False
    place = {'topology': options.topology, 'compiler': targets.compiler(options.topology)}
    record = aot_record.Record(options.out, place)
    for (program, mesh), config in progress.bar(chosen_from.items(), desc='programs', leave=False):
        found = record.get(
            f'{program!r} {dict(mesh.shape)}',  # programs are values
            functools.partial(line, program, mesh, config),
        )
        failed |= not found.get('fits', True)
        print(json.dumps(found), flush=True)
    return int(failed)


def line(program: Program, mesh: Mesh, config: str) -> dict[str, Any]:
    """JSON line of a program of `config`."""
    found: dict[str, Any] = {
        'config': config,
        'program': program.describe(),
        'position': program.model.describe_position(),
        'batch': program.batch,
        'mesh': {axis: size for axis, size in mesh.shape.items() if size > 1},
    }
    held = {
        name: _gib(
            sum(
                math.prod(leaf.sharding.shard_shape(leaf.shape)) * leaf.dtype.itemsize
                for leaf in jax.tree.leaves(tree)
            )
        )
        for name, tree in program.state(mesh).items()
    }
    found |= {f'{name}_gib': size for name, size in held.items()}
    start = time.perf_counter()
    try:
        if not (isinstance(program, Step) and _fits_itself(program)):
            return found | analyse(program, mesh)
        chosen = fitted(program, mesh)
        found |= {'remat': chosen.model.remat, **analyse(chosen, mesh)}
        return found | {'compile_seconds': round(time.perf_counter() - start, 1)}
    except Exception as error:  # the compiler's own message is the result
        largest = max(held, key=lambda name: held[name])
        return found | {'fits': False, 'error': str(error)[:500], 'largest': largest}


def _gib(size: float) -> float:
    return round(size / GIB, 3)


def _sizes(mesh: str) -> dict[str, int]:
    """'fsdp=8,context=2' -> its axes."""
    pairs = [part.partition('=') for part in mesh.split(',') if part]
    for axis, _, size in pairs:
        if axis not in sharding.AXES or not size.isdigit():
            raise SystemExit(
                f'--mesh={mesh}: accepted is AXIS=SIZE,... with {", ".join(sharding.AXES)}'
            )
    return {axis: int(size) for axis, _, size in pairs}
