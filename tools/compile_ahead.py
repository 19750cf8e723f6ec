"""Compiles every run of a config for a TPU that is not there, and reports its memory.

    pip install libtpu
    python tools/compile_ahead.py --config=fig4:paper --topology=v5e:4x4

A real compilation of the training step, with the shardings of a real mesh. Prints one JSON line
a run: bytes per device for arguments, outputs and temporaries. Exits with 1 where one does not
compile (what does not fit into a device's memory is rejected by the compiler).
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

os.environ.setdefault('JAX_PLATFORMS', 'cpu')
os.environ.setdefault('TPU_SKIP_MDS_QUERY', '1')

import jax
import jax.numpy as jnp
from jax.experimental import topologies
from jax.sharding import Mesh

from experiments.build import build
from experiments.spec import EvalSpec, GridSpec, LengthsSpec, PositionsSpec, RunSpec
from nope import optim, sharding
from nope.state import TrainState, abstract_variables
from nope.step import make_step


def runs_of(spec: EvalSpec) -> Iterator[RunSpec]:
    """The runs an evaluation needs, in any order, with repetitions."""
    run: RunSpec | None = spec.run
    while run is not None:
        yield run
        if isinstance(run.lam_start, GridSpec):
            yield from runs_of(run.lam_start)
        run = run.init
    if isinstance(spec, PositionsSpec) and isinstance(spec.scale, GridSpec):
        yield from runs_of(spec.scale)
    for grid in spec.scales if isinstance(spec, LengthsSpec) else ():
        yield from runs_of(grid)


def abstract_state(run: RunSpec, mesh: Mesh) -> TrainState:
    """The training state as shapes and shardings: moments lie where their variables do."""
    variables = abstract_variables(run.model, mesh)
    moments = jax.eval_shape(optim.make_optimizer(run.train.optimizer).init, variables)
    places = {(leaf.shape, leaf.dtype): leaf.sharding for leaf in jax.tree.leaves(variables)}
    everywhere = sharding.replicated(mesh)
    placed = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(
            leaf.shape, leaf.dtype, sharding=places.get((leaf.shape, leaf.dtype), everywhere)
        ),
        moments,
    )
    step: Any = jax.ShapeDtypeStruct((), jnp.int32, sharding=everywhere)
    return TrainState(step, variables, placed)


def compile_step(run: RunSpec, mesh: Mesh, accumulate: int) -> dict[str, float]:
    """Compiles the step at the run's longest length; GiB per device and seconds taken."""
    blocks = jax.ShapeDtypeStruct(
        (accumulate, run.train.batch_size // accumulate, run.train.block + 1),
        jnp.int32,
        sharding=sharding.micro_batches(mesh),
    )
    start = time.perf_counter()
    with sharding.use(mesh):
        step = jax.jit(make_step(run.model, run.train.optimizer), donate_argnums=0)
        compiled = step.lower(abstract_state(run, mesh), blocks).compile()
    memory: Any = compiled.memory_analysis()
    gib = 2.0**30
    return {
        'arguments_gib': round(memory.argument_size_in_bytes / gib, 3),
        'temporary_gib': round(memory.temp_size_in_bytes / gib, 3),
        'seconds': round(time.perf_counter() - start, 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--config', default='fig1:paper', help='NAME:SIZE below configs/')
    parser.add_argument('--topology', default='v5e:4x4')
    parser.add_argument('--accumulate', type=int, default=0, help="0: the config's own")
    arguments = parser.parse_args()
    name, _, size = arguments.config.partition(':')
    config = importlib.import_module(f'configs.{name}').get_config(size or 'paper')
    config.data.mixture = ()  # shapes alone matter: no shards and no tokenizer are read
    config.data.tokenizer = 'bytes'
    experiment = build(config)
    devices = topologies.get_topology_desc(arguments.topology, 'tpu').devices
    mesh = sharding.make_mesh(experiment.compute.mesh, devices)
    accumulate = arguments.accumulate or experiment.compute.accumulate
    failed = False
    runs = dict.fromkeys(run for spec in experiment.evals.values() for run in runs_of(spec))
    for run in runs:
        found: dict = {'run': run.slug(), 'topology': arguments.topology}
        try:
            found |= compile_step(run, mesh, 1 if run.searches else accumulate)
        except Exception as error:  # the compiler's own message is the result
            found['error'], failed = str(error)[:500], True
        print(json.dumps(found), flush=True)
    return int(failed)


if __name__ == '__main__':
    sys.exit(main())
