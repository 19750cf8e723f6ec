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
import dataclasses
import importlib
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from typing import Any

os.environ.setdefault('JAX_PLATFORMS', 'cpu')

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding

from experiments.build import Experiment, build
from experiments.lab import compute_for, eval_batch
from experiments.spec import (
    EvalSpec,
    ImportSpec,
    LengthsSpec,
    PositionsSpec,
    RunSpec,
    Source,
    needs,
)
from nope import optim, sharding, targets
from nope.evals import forward
from nope.model import ModelConfig
from nope.state import TrainState, abstract_variables
from nope.step import make_step


@dataclasses.dataclass(frozen=True)
class Step:
    """A training step. Equal for runs that differ in their seeds alone."""

    model: ModelConfig
    optimizer: optim.OptimizerConfig
    length: int
    batch: int
    accumulate: int

    def describe(self) -> str:
        return f'{"search" if self.optimizer.trains == "lam" else "train"} {self.length}'

    def lower(self, mesh: Mesh) -> jax.stages.Lowered:
        shape = (self.accumulate, self.batch // self.accumulate, self.length + 1)
        blocks = _array(shape, jnp.int32, sharding.micro_batches(mesh))
        step = jax.jit(make_step(self.model, self.optimizer), donate_argnums=0)
        return step.lower(abstract_state(self.model, self.optimizer, mesh), blocks)


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """An evaluation pass over one batch of windows."""

    model: ModelConfig
    entropy: bool
    length: int
    batch: int

    def describe(self) -> str:
        return f'evaluate {self.length}{" with entropy" if self.entropy else ""}'

    def lower(self, mesh: Mesh) -> jax.stages.Lowered:
        rows = sharding.rows(mesh)
        return forward.batch_sums.lower(
            self.model,
            self.entropy,
            abstract_variables(self.model, mesh),
            _array((self.batch, self.length + 1), jnp.int32, rows),
            _array((self.batch,), jnp.float32, rows),
        )


def programs(experiment: Experiment, mesh: Mesh) -> Iterator[Step | Evaluation]:
    """What the experiment runs on the devices, in any order, with repetitions."""

    def of(spec: Source | EvalSpec) -> Iterator[Step | Evaluation]:
        if isinstance(spec, RunSpec):
            train, micro = spec.train, compute_for(spec, experiment.compute).accumulate
            yield Step(spec.model, train.optimizer, train.block, train.batch_size, micro)
        elif not isinstance(spec, ImportSpec):
            lengths = spec.lengths if isinstance(spec, LengthsSpec) else (spec.windows.length,)
            for length in lengths:
                batch = eval_batch(experiment.batch_tokens, length, mesh)
                yield Evaluation(spec.model, isinstance(spec, PositionsSpec), length, batch)
        for part in needs(spec):
            yield from of(part)

    for spec in experiment.evals.values():
        yield from of(spec)


def abstract_state(model: ModelConfig, optimizer: optim.OptimizerConfig, mesh: Mesh) -> TrainState:
    """The training state as shapes and shardings: moments lie where their variables do."""
    variables = abstract_variables(model, mesh)
    moments = jax.eval_shape(optim.make_optimizer(optimizer).init, variables)
    places = {(leaf.shape, leaf.dtype): leaf.sharding for leaf in jax.tree.leaves(variables)}
    everywhere = sharding.replicated(mesh)
    placed = jax.tree.map(
        lambda leaf: _array(
            leaf.shape, leaf.dtype, places.get((leaf.shape, leaf.dtype), everywhere)
        ),
        moments,
    )
    return TrainState(_array((), jnp.int32, everywhere), variables, placed)


def _array(shape: tuple[int, ...], dtype: Any, place: NamedSharding) -> Any:
    return jax.ShapeDtypeStruct(shape, dtype, sharding=place)


def compile_program(program: Step | Evaluation, mesh: Mesh) -> dict[str, float]:
    """GiB per device and seconds taken."""
    start = time.perf_counter()
    with sharding.use(mesh):
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
    done: set[tuple[Step | Evaluation, Mesh]] = set()
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
