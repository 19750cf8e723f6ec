"""Compiles all that configs run on the devices for TPUs or GPUs that are not there.

    pip install libtpu
    python tools/compile_ahead.py --config=fig4:paper --topology=v5e:4x4
    pip install --no-deps jax-cuda13-plugin jax-cuda13-pjrt  # of JAX's version; Python 3.12
    python tools/compile_ahead.py --config=fig4:paper --topology=h200:16

A real compilation of every training step, search step and evaluation pass, with the shardings of
a real mesh. Prints one JSON line a program: GiB per device of arguments and temporaries. Exits
with 1 where one does not compile (a TPU's compiler rejects what does not fit into the device's
memory; a GPU's does not).
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import sys
import time
from typing import Any

os.environ.setdefault('JAX_PLATFORMS', 'cpu')

from _programs import Program, programs
from jax.sharding import Mesh

from experiments.build import Experiment, build
from nope import sharding, targets


def compile_program(program: Program, mesh: Mesh) -> dict[str, float]:
    """GiB per device and seconds taken."""
    start = time.perf_counter()
    with sharding.use(mesh, program.rules):
        compiled = program.lower(mesh).compile()
    memory: Any = compiled.memory_analysis()
    gib = 2.0**30
    return {
        'arguments_gib': round(memory.argument_size_in_bytes / gib, 3),
        'temporary_gib': round(memory.temp_size_in_bytes / gib, 3),
        'seconds': round(time.perf_counter() - start, 1),
    }


def load(config: str) -> Experiment:
    """The experiment of NAME:SIZE. Shapes alone matter: no shards and no tokenizer are read."""
    name, _, size = config.partition(':')
    found = importlib.import_module(f'configs.{name}').get_config(size or 'paper')
    found.data.mixture = ()
    found.data.tokenizer = 'bytes'
    for name in found.get('corpora', {}):
        found.corpora[name] = {'source': 'stdlib'}
    return build(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n')[0])
    parser.add_argument(
        '--config', action='append', required=True, help='NAME:SIZE below configs/; may be repeated'
    )
    parser.add_argument('--topology', default='v5e:4x4', help='as nope.targets.devices takes it')
    parser.add_argument(
        '--only', default='', help='a regular expression for "PROGRAM POSITION", as printed'
    )
    arguments = parser.parse_args()
    devices = targets.devices(arguments.topology)
    failed = False
    done: set[tuple[Program, Mesh]] = set()
    for config in arguments.config:
        experiment = load(config)
        mesh = sharding.make_mesh(experiment.compute.mesh, devices)
        for program in programs(experiment, mesh):
            title = f'{program.describe()} {program.model.describe_position()}'
            if (program, mesh) in done or not re.search(arguments.only, title):
                continue
            done.add((program, mesh))
            found: dict = {
                'config': config,
                'program': program.describe(),
                'position': program.model.describe_position(),
                'batch': program.batch,
                'topology': arguments.topology,
            }
            try:
                found |= compile_program(program, mesh)
            except Exception as error:  # the compiler's own message is the result
                found['error'], failed = str(error)[:500], True
            print(json.dumps(found), flush=True)
    return int(failed)


if __name__ == '__main__':
    sys.exit(main())
