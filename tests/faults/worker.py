"""A real training that faults are made in.

    python -m tests.faults.worker FOLDER [MESH]    MESH as 'fsdp=4,tensor=2'

Prints where it goes on from. Leaves `examples.jsonl`, a digest of the examples of every step it
made, and at the end `final.npz`, the state. Exit status 3, with the message, for what a command
reports as an error; 143 for a stop.
"""

from __future__ import annotations

import hashlib
import json
import pathlib
import signal
import sys
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from nope import sharding
from nope.checkpoints.errors import CheckpointError
from nope.data import Batch
from nope.model import ModelConfig
from nope.runtime import ending, processes
from nope.training.config import Compute, TrainConfig
from nope.training.optim import OptimizerConfig
from nope.training.train import Interrupted, train
from nope.variables import fresh_variables
from tests.distributed import launching

STEPS, BATCH, LENGTH = 60, 8, 16
# Four megabytes of weights and moments: saving takes as long as some steps.
MODEL = ModelConfig(
    layers=2, width=96, heads=4, kv_heads=4, mlp_width=256, vocab_size=512, head_dim=24
)
CONFIG = TrainConfig(
    lengths=(LENGTH,),
    batch_size=BATCH,
    steps=STEPS,
    optimizer=OptimizerConfig(learning_rate=1e-3, warmup_steps=5, decay_steps=STEPS),
)


def main() -> int:
    folder = pathlib.Path(sys.argv[1])
    sizes = launching.sizes(sys.argv[2] if len(sys.argv) > 2 else '')
    processes.start()
    mesh = sharding.make_mesh(sharding.MeshConfig(**sizes))
    rows = sharding.rows_here(mesh, 1, BATCH)
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: asked.append(number))

    def batches(start: int) -> Iterator[Batch]:
        print(json.dumps({'start': start}), flush=True)
        for step in range(start, STEPS):
            draw = np.random.default_rng(step)
            blocks = draw.integers(MODEL.vocab_size, size=(BATCH, LENGTH + 1)).astype(np.int32)
            digest = hashlib.sha256(blocks.tobytes()).hexdigest()[:16]
            if processes.is_first():
                with (folder / 'examples.jsonl').open('a') as file:
                    file.write(json.dumps({'step': step + 1, 'examples': digest}) + '\n')
            yield Batch.of_blocks(blocks[rows])

    try:
        folder.mkdir(parents=True, exist_ok=True)
        variables = train(
            MODEL,
            CONFIG,
            Compute(checkpoint_every=2, log_every=5, keep=3),
            mesh=mesh,
            initial=lambda: fresh_variables(MODEL, mesh, 0),
            batches=batches,
            folder=folder,
            identity={'model': 'faults'},
            title='faults',
            should_stop=processes.StopTogether(lambda: bool(asked)),
        )
    except Interrupted as error:
        print(error, file=sys.stderr)
        return 143
    except (CheckpointError, OSError, ValueError) as error:
        print(f'error: {error}', file=sys.stderr)
        return 3
    leaves: Any = jax.tree_util.tree_leaves_with_path(sharding.fetch(variables))
    if processes.is_first():
        arrays = {jax.tree_util.keystr(path): leaf for path, leaf in leaves}
        np.savez(folder / 'final.npz', **arrays)
    processes.meet('the end')
    return 0


if __name__ == '__main__':
    sys.exit(ending.run(main, fine=(0, 143)))
