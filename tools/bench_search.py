"""Memory and checkpoints of a search of lambda: one JSON line per model.

    python tools/bench_search.py [--only=8x512] [--steps=2]

Searches on random weights and tokens, and reports in bytes: the weights; all arrays on the device
between two steps; of the compiled step its arguments, the temporaries beside them, and the results
that take no argument's place; one checkpoint, in files, and the same with all weights in it.
`bench_train.py` has the seconds and the resident memory of such steps, `aot.py` their memory on
devices that are not there.
"""

from __future__ import annotations

from nope.runtime import door

if __name__ == '__main__':  # before what it imports
    door.enter(__file__)

import argparse
import pathlib
import sys
import tempfile
from collections.abc import Iterator
from typing import Any, NamedTuple

import _bench
import jax
import jax.numpy as jnp
import numpy as np
from _shapes import LOOPED, QUICK

from nope import sharding
from nope.checkpoints.manager import Checkpoints
from nope.data.batch import Batch
from nope.model import ModelConfig
from nope.training.config import Compute, TrainConfig
from nope.training.optim import OptimizerConfig
from nope.training.state import fresh_state
from nope.training.stepping import jitted_step
from nope.training.train import train
from nope.variables import Variables, fresh_variables


class Case(NamedTuple):
    """Sequences of `length` tokens, `batch` at a time."""

    name: str
    model: ModelConfig
    length: int
    batch: int


CASES = (
    Case('quick_4x64', QUICK, 256, 8),
    Case('8x512_2k', LOOPED, 2048, 1),
)


def measure(case: Case, steps: int, folder: pathlib.Path) -> dict[str, Any]:
    """A search of so many steps in `folder`."""
    mesh = sharding.make_mesh(sharding.MeshConfig())
    variables = fresh_variables(case.model, mesh, 0)
    config = TrainConfig(
        lengths=(case.length,),
        batch_size=case.batch,
        steps=steps,
        optimizer=OptimizerConfig(0.1, trains='lam', decay_steps=steps, bound=1.0),
    )
    live: list[int] = []

    def should_stop() -> bool:
        live.append(held(jax.live_arrays()))
        return False

    found = train(
        case.model,
        config,
        Compute(),
        mesh=mesh,
        initial=lambda: variables,
        batches=lambda start: batches(case, start),
        folder=folder / 'search',
        identity={'case': case.name},
        title=case.name,
        should_stop=should_stop,
    )
    state, _ = fresh_state(found, config.optimizer, mesh)
    with Checkpoints(folder / 'whole', {'case': case.name}) as checkpoints:
        checkpoints.save(steps, {**found, 'opt_state': state.opt_state}, {})
    return {
        'case': case.name,
        'layers': case.model.layers,
        'width': case.model.width,
        'length': case.length,
        'batch': case.batch,
        'weights': held(jax.tree.leaves(variables['params'])),
        'arrays_between_steps': max(live),
        **step_memory(case, config, variables, mesh),
        'checkpoint': written(folder / 'search' / 'checkpoints' / str(steps)),
        'checkpoint_with_weights': written(folder / 'whole' / str(steps)),
        'device': jax.devices()[0].device_kind,
        'jax': jax.__version__,
    }


def step_memory(
    case: Case, config: TrainConfig, variables: Variables, mesh: jax.sharding.Mesh
) -> dict[str, int]:
    """Of the compiled step, as XLA plans it."""
    state, frozen = fresh_state(variables, config.optimizer, mesh)
    shape = (1, case.batch, case.length)
    tokens = jax.ShapeDtypeStruct(shape, jnp.int32, sharding=sharding.micro_batches(mesh))
    step = jitted_step(case.model, config.optimizer, state)
    with sharding.use(mesh):
        memory: Any = step.lower(state, frozen, Batch(tokens, tokens)).compile().memory_analysis()
    return {
        'step_arguments': memory.argument_size_in_bytes,
        'step_temporaries': memory.temp_size_in_bytes,
        'step_results_elsewhere': memory.output_size_in_bytes - memory.alias_size_in_bytes,
    }


def batches(case: Case, start: int) -> Iterator[Batch]:
    draw = np.random.default_rng(start)
    shape = (case.batch, case.length + 1)
    while True:
        yield Batch.of_blocks(draw.integers(case.model.vocab_size, size=shape, dtype=np.int32))


def held(arrays: list[jax.Array]) -> int:
    return sum(array.nbytes for array in arrays)


def written(folder: pathlib.Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob('*') if path.is_file())


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n')[0])
    names = ', '.join(case.name for case in CASES)
    parser.add_argument('--only', default='', help=f'part of a name: {names}')
    parser.add_argument('--steps', type=int, default=2)
    options = parser.parse_args()
    cases = [case for case in CASES if options.only in case.name]
    if not cases:
        parser.error(f'--only={options.only} names no case; there are {names}')
    for case in cases:
        with tempfile.TemporaryDirectory() as folder:
            _bench.emit(measure(case, options.steps, pathlib.Path(folder)))
    return 0


if __name__ == '__main__':
    sys.exit(main())
