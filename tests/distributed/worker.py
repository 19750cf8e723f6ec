"""One process of a small study: trains, searches lambda, measures; writes what it found.

python -m tests.distributed.worker FOLDER MESH ACCUMULATE    MESH as 'fsdp=2,context=2'
"""

from __future__ import annotations

import dataclasses
import functools
import json
import pathlib
import sys
from typing import Any

import jax
import numpy as np

from nope import data, sharding
from nope.data import DataConfig
from nope.data.documents import open_documents
from nope.data.sources import Text
from nope.evals import positions, sliding
from nope.evals.generation import Generator, Options
from nope.evals.samples import SampleLog
from nope.model import ModelConfig
from nope.runtime import processes
from nope.training import metrics
from nope.training.config import Compute, TrainConfig
from nope.training.optim import OptimizerConfig
from nope.training.train import train
from nope.variables import Variables, fresh_variables
from tests.distributed import launching

LENGTH, BATCH, STEPS, SEARCH_STEPS = 32, 8, 50, 12
MODEL = ModelConfig(
    layers=2, width=16, heads=4, kv_heads=2, mlp_width=32, vocab_size=258, head_dim=4
)
PRETRAINING = TrainConfig(
    lengths=(LENGTH,),
    batch_size=BATCH,
    steps=STEPS,
    optimizer=OptimizerConfig(learning_rate=3e-3, warmup_steps=5, decay_steps=STEPS),
)
SEARCH = TrainConfig(
    lengths=(2 * LENGTH,),
    batch_size=BATCH,
    steps=SEARCH_STEPS,
    optimizer=OptimizerConfig(
        learning_rate=0.1, trains='lam', decay_steps=SEARCH_STEPS, weight_decay=0.0, bound=1.0
    ),
)


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    processes.start()
    mesh_config = sharding.MeshConfig(**{'data': 1, **launching.sizes(sys.argv[2])})
    mesh = sharding.make_mesh(mesh_config)
    compute = Compute(mesh=mesh_config, accumulate=int(sys.argv[3]), log_every=1)
    source = DataConfig((Text(str(folder / 'text')),))
    seen: list[np.ndarray] = []

    def run(
        name: str,
        config: TrainConfig,
        accumulate: int,
        initial: Variables | None,
        documents: DataConfig = source,
    ) -> Variables:
        def batches(start: int) -> Any:
            stream = data.training_batches(
                documents,
                length=config.block,
                batch_size=config.batch_size,
                seed=1,
                start=start,
                cache=folder / 'data',
                rows=sharding.rows_here(mesh, accumulate, config.batch_size),
            )
            for batch in stream:
                placed = sharding.place_micro_batches(mesh, accumulate, config.batch_size, batch)
                arrays = [array.reshape(-1, config.block) for array in sharding.fetch(placed[:2])]
                seen.append(np.concatenate([arrays[0], arrays[1][:, -1:]], axis=1))
                yield batch

        return train(
            MODEL,
            config,
            dataclasses.replace(compute, accumulate=accumulate),
            mesh=mesh,
            initial=lambda: fresh_variables(MODEL, mesh, 0) if initial is None else initial,
            batches=batches,
            folder=folder / name,
            identity={'name': name},
            title=name,
        )

    variables = run('pretraining', PRETRAINING, compute.accumulate, None)
    apart = dataclasses.replace(source, documents='apart')
    searched = run('search', SEARCH, 1, variables, apart)
    blocks = data.eval_blocks(
        source, split='validation', length=2 * LENGTH, count=16, seed=0, cache=folder / 'data'
    ).tokens
    windows = np.arange(len(blocks))
    found = positions.run(MODEL, searched, blocks, mesh=mesh, batch_size=8, of_document=windows)
    perplexity = sliding.run(
        MODEL,
        searched,
        open_documents(source, split='test', cache=folder / 'data', bos=True),
        (LENGTH,),
        stride=8,
        budget=160,
        mesh=mesh,
        batch_tokens=8 * LENGTH,
        log=SampleLog(folder / 'samples.jsonl'),
    )
    generator = Generator(MODEL, searched, mesh, batch_tokens=256)
    prompts = [np.arange(3 + i, dtype=np.int32) + 40 for i in range(5)]
    made = generator.generate(prompts, Options(new_tokens=6))
    scores = generator.score(prompts, [np.arange(60, 64, dtype=np.int32)] * len(prompts))
    if processes.is_first():
        write = functools.partial(np.savez, folder / 'found.npz')
        write(
            examples=np.concatenate([block[:, : LENGTH + 1] for block in seen]),
            loss=found['loss'],
            entropy=found['entropy'],
            resampled=found['loss_resampled'],
            lam=found['multiplier'],
            perplexity=perplexity['loss'],
            made=np.stack(made),
            scores=np.stack([score.log_probs for score in scores]),
        )
        losses = {
            name: [row['loss'] for row in metrics.read(folder / name)]
            for name in ('pretraining', 'search')
        }
        (folder / 'losses.json').write_text(json.dumps(losses))
    processes.meet('the end')


if __name__ == '__main__':
    jax.config.update('jax_threefry_partitionable', True)
    main()
