"""Soak test: trains, saves, restores and measures repeatedly in one process, and checks its memory.

    python tools/soak.py --minutes=60 --workdir=work/soak [--steps=1000 --save-every=400]

A round: training steps with checkpoints, by default many times as often as a config asks for them,
restored from the one before; loss and entropy by position; perplexity; scores of prompts. The
resident memory is noted every few seconds and, at rest, after every round, so that what it is
just doing makes no difference. Leaves memory.jsonl and memory.png there, prints one JSON
line, and exits with 1 where the memory at rest in the last fifth lies more than 2 percent above
that in the fifth after the warm-up (a quarter of the time).
"""

from __future__ import annotations

from nope.runtime import door, memory

if __name__ == '__main__':  # before the imports below, whose threads allocate
    door.enter(__file__)
    memory.restart_with_huge_pages()
    memory.few_arenas()

import argparse
import contextlib
import json
import logging
import pathlib
import sys
import threading
import time

import jax
import numpy as np
from _shapes import MIDDLE, SMALL

from nope import data, sharding
from nope.checkpoints.manager import Checkpoints
from nope.data import DataConfig
from nope.data.documents import open_documents
from nope.evals import positions, sliding
from nope.evals.generation import Generator
from nope.evals.samples import SampleLog
from nope.training.config import Compute, TrainConfig
from nope.training.optim import OptimizerConfig
from nope.training.train import Interrupted, train
from nope.variables import abstract_variables, fresh_variables

MODELS = {'small': SMALL, 'middle': MIDDLE}
LENGTH, BATCH = 64, 32  # tokens, sequences
WARM_UP, PART = 0.25, 0.2  # shares of the time
MOST_DRIFT = 0.02
IDENTITY = {'tool': 'soak'}
STATUS = pathlib.Path('/proc/self/status')


class Memory:
    """Resident memory of this process over time."""

    def __init__(self, path: pathlib.Path, every: float) -> None:
        self.rows: list[dict[str, float]] = []
        self._file, self._every = path.open('w', buffering=1), every
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._file.close()

    def note(self, at_rest: bool) -> None:
        with self._lock:
            seconds = time.monotonic() - self._began
            row = {'seconds': seconds, 'mib': resident_mib(), 'at_rest': at_rest}
            self.rows.append(row)
            self._file.write(json.dumps(row) + '\n')

    def _look(self) -> None:
        while not self._over.wait(self._every):
            self.note(at_rest=False)


def resident_mib() -> float:
    for line in STATUS.read_text().splitlines():
        if line.startswith('VmRSS:'):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f'{STATUS} has no VmRSS')


def drift(rows: list[dict[str, float]]) -> dict[str, float]:
    """Medians at rest of the fifth after the warm-up and of the last fifth, MiB, and their
    relation; the most at any time."""
    resting = [row for row in rows if row['at_rest']]
    seconds = np.array([row['seconds'] for row in resting])
    mib = np.array([row['mib'] for row in resting])
    end = rows[-1]['seconds']
    early = mib[(seconds >= WARM_UP * end) & (seconds < (WARM_UP + PART) * end)]
    late = mib[seconds >= (1 - PART) * end]
    if not early.size or not late.size:
        raise SystemExit(f'{len(resting)} rounds are too few; give more --minutes')
    first, last = float(np.median(early)), float(np.median(late))
    return {
        'early_mib': first,
        'late_mib': last,
        'most_mib': max(row['mib'] for row in rows),
        'drift': last / first - 1,
    }


def one_round(number: int, options: argparse.Namespace, mesh: jax.sharding.Mesh) -> None:
    """Trains `options.steps` on, then measures what came out."""
    model, folder = MODELS[options.model], options.workdir
    cache = folder / 'data'
    corpus = DataConfig()
    asked = iter(range(1, options.steps + 1))
    config = TrainConfig(
        lengths=(LENGTH,),
        batch_size=BATCH,
        steps=10**6,
        optimizer=OptimizerConfig(learning_rate=1e-3, warmup_steps=100, decay_steps=10**6),
    )
    with contextlib.suppress(Interrupted):
        train(
            model,
            config,
            Compute(checkpoint_every=options.save_every, log_every=50),
            mesh=mesh,
            initial=lambda: fresh_variables(model, mesh, 0),
            batches=lambda start: data.training_batches(
                corpus, length=LENGTH, batch_size=BATCH, seed=0, start=start, cache=cache
            ),
            folder=folder / 'run',
            identity=IDENTITY,
            title=f'round {number}',
            should_stop=lambda: next(asked) == options.steps,
        )
    with Checkpoints(folder / 'run' / 'checkpoints', IDENTITY) as checkpoints:
        variables = checkpoints.read(abstract_variables(model, mesh))
    blocks = data.eval_blocks(
        corpus, split='validation', length=2 * LENGTH, count=64, seed=0, cache=cache
    ).tokens
    positions.run(model, variables, blocks, mesh=mesh, batch_size=32)
    sliding.run(
        model,
        variables,
        open_documents(corpus, split='test', cache=cache, bos=True),
        (2 * LENGTH,),
        stride=16,
        budget=16 * 64,
        mesh=mesh,
        batch_tokens=8192,
        log=SampleLog(folder / 'samples' / f'{number}.jsonl'),
    )
    prompts = [block[:LENGTH] for block in blocks[:16]]
    Generator(model, variables, mesh, batch_tokens=8192).score(
        prompts, [b[-8:] for b in blocks[:16]]
    )
    memory.give_back()  # as after every evaluation of a config


def draw(rows: list[dict[str, float]], found: dict[str, float], path: pathlib.Path) -> None:
    from matplotlib import pyplot

    minutes = np.array([row['seconds'] for row in rows]) / 60
    mib = np.array([row['mib'] for row in rows])
    resting = np.array([row['at_rest'] for row in rows], bool)
    figure, axes = pyplot.subplots(figsize=(7, 3.2), layout='constrained')
    axes.plot(minutes, mib, color='#2a6f97', linewidth=0.6, alpha=0.5, label='within rounds')
    axes.plot(
        minutes[resting], mib[resting], '.', color='#c1121f', markersize=4, label='after a round'
    )
    axes.legend(loc='lower right', fontsize=8)
    for begin, end in ((WARM_UP, WARM_UP + PART), (1 - PART, 1)):
        axes.axvspan(begin * minutes[-1], end * minutes[-1], color='#2a6f97', alpha=0.12)
    axes.set_ylim(bottom=0)
    axes.set_xlabel('minutes')
    axes.set_ylabel('resident memory (MiB)')
    axes.set_title(
        f'training, checkpoints and evaluations in turn: {100 * found["drift"]:+.2f} % between '
        'the shaded parts',
        fontsize=9,
    )
    figure.savefig(path, dpi=150)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n')[0])
    parser.add_argument('--minutes', type=float, default=60)
    parser.add_argument('--workdir', type=pathlib.Path, required=True)
    parser.add_argument('--model', choices=sorted(MODELS), default='small')
    parser.add_argument('--steps', type=int, default=200, help='of training in a round')
    parser.add_argument('--save-every', type=int, default=50, help='steps')
    options = parser.parse_args()
    if not STATUS.exists():
        parser.error(f'it needs Linux, whose {STATUS} says what is resident')
    options.workdir.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(level=logging.WARNING)
    mesh = sharding.make_mesh(sharding.MeshConfig())
    end = time.monotonic() + 60 * options.minutes
    rounds = 0
    with Memory(options.workdir / 'memory.jsonl', every=min(5.0, options.minutes)) as watched:
        while time.monotonic() < end:
            one_round(rounds, options, mesh)
            rounds += 1
            watched.note(at_rest=True)
    found = drift(watched.rows)
    draw(watched.rows, found, options.workdir / 'memory.png')
    print(
        json.dumps(
            {
                'minutes': options.minutes,
                'rounds': rounds,
                'steps': rounds * options.steps,
                'save_every': options.save_every,
                **found,
            }
        )
    )
    return int(found['drift'] > MOST_DRIFT)


if __name__ == '__main__':
    sys.exit(main())
