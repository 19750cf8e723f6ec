"""Speed and memory of training, of the search of lambda and of evaluation, next to PyTorch.

    python tools/bench_train.py [--only=train] [--repeats=5] [--peer-python=PATH]

Prints one JSON line a measurement: median seconds, tokens per second, compilation apart, the
share of the float32 matrix-product rate measured in the same run, memory above what was there
before. --peer-python is an interpreter with torch and transformers; its runs are timed in turn
with ours, and `ratio` is how many times faster ours is. `others` is how many cores other
processes kept busy meanwhile: above 0.2 a figure is better measured again.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import pathlib
import subprocess
import sys
from collections.abc import Callable, Iterator

import _bench
import jax
import numpy as np

from nope import hardware, huge_pages, optim, sharding
from nope.evals.forward import means
from nope.model import ModelConfig
from nope.state import fresh_state, fresh_variables
from nope.step import make_step

SMALL = ModelConfig(
    layers=4, width=128, heads=4, kv_heads=4, mlp_width=344, vocab_size=258, head_dim=32
)
LARGE = ModelConfig(
    layers=8, width=512, heads=8, kv_heads=8, mlp_width=1376, vocab_size=4096, head_dim=64
)
LONG = ModelConfig(
    layers=4,
    width=256,
    heads=4,
    kv_heads=4,
    mlp_width=688,
    vocab_size=4096,
    head_dim=64,
    remat='full',
)


@dataclasses.dataclass(frozen=True)
class Case:
    """One measurement. kind: 'train', 'head_scale' or 'evaluate'; entropy: of evaluations.
    peer: whether the other side is asked too (`peer_entropy`: with its eager attention)."""

    name: str
    kind: str
    model: ModelConfig
    length: int
    batch: int
    entropy: bool = False
    peer: bool = True
    peer_entropy: bool = False


def cases() -> list[Case]:
    evaluations = [
        Case(f'evaluate_{length}', 'evaluate', LARGE, length, 1, entropy=True, peer=length <= 4096)
        for length in (1024, 2048, 4096, 8192, 16384)
    ]
    eager = [
        dataclasses.replace(case, name=f'{case.name}_eager', peer_entropy=True)
        for case in evaluations
        if case.peer
    ]
    return [
        Case('train_small', 'train', SMALL, 64, 32),
        Case('train_large', 'train', LARGE, 512, 4),
        Case('head_scale', 'head_scale', LARGE, 2048, 1),
        Case('full_step', 'train', LARGE, 2048, 1),
        *evaluations,
        *eager,
        Case('evaluate_4096_loss', 'evaluate', LARGE, 4096, 1),
        Case('head_scale_16384', 'head_scale', LONG, 16384, 1, peer=False),
    ]


def prepare(case: Case) -> Callable[[], None]:
    """Our side of a case: a call that returns when its work is done."""
    mesh = sharding.make_mesh(sharding.MeshConfig(), jax.devices()[:1])
    shape = (case.batch, case.length + 1)
    blocks = np.random.default_rng(0).integers(case.model.vocab_size, size=shape, dtype=np.int32)
    variables = fresh_variables(case.model, mesh, seed=0)
    if case.kind == 'evaluate':

        def evaluate() -> None:
            means(
                case.model,
                variables,
                blocks,
                mesh=mesh,
                batch_size=case.batch,
                entropy=case.entropy,
            )

        return evaluate

    if case.kind == 'train':
        optimizer = optim.OptimizerConfig(learning_rate=1e-3, decay_steps=1000, weight_decay=0.1)
    else:
        optimizer = optim.OptimizerConfig(
            learning_rate=0.1, decay_steps=200, trains='lam', bound=1.0
        )
    state = fresh_state(variables, optim.make_optimizer(optimizer), mesh)
    step_fn = jax.jit(make_step(case.model, optimizer), donate_argnums=0)
    batch = blocks[None]

    def step() -> None:
        nonlocal state
        with sharding.use(mesh):
            state, metrics = step_fn(state, batch)
        jax.block_until_ready((state, metrics))

    return step


@contextlib.contextmanager
def peer(case: Case, python: str | None) -> Iterator[tuple[Callable[[], float], dict] | None]:
    """The other side: a call that times one of its runs, and what it said of its first."""
    if python is None or not case.peer:
        yield None
        return
    shape = {
        name: getattr(case.model, name)
        for name in ('layers', 'width', 'heads', 'kv_heads', 'mlp_width', 'vocab_size')
    }
    request = {
        'kind': case.kind,
        'shape': shape,
        'length': case.length,
        'batch': case.batch,
        'entropy': case.peer_entropy,
    }
    script = pathlib.Path(__file__).with_name('bench_peer.py')
    with subprocess.Popen(
        [python, str(script), json.dumps(request)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        requests, answers = process.stdin, process.stdout

        def answer() -> dict:
            line = answers.readline()
            if not line:
                raise RuntimeError(f'{script.name} ended; its own message is above')
            return json.loads(line)

        def run() -> float:
            requests.write('\n')
            requests.flush()
            return answer()['seconds']

        yield run, answer()
        requests.close()


def measure(case: Case, python: str | None, repeats: int) -> dict:
    """One line of the report."""
    step = prepare(case)
    first = _bench.seconds(step)
    memory = _bench.peak_above_base(step)
    load = _bench.Load()
    with peer(case, python) as other:
        timers = {'ours': lambda: _bench.seconds(step)}
        if other is not None:
            timers['peer'] = other[0]
        medians = _bench.interleaved(timers, repeats, budget=120.0)
        others = load.others() if other is None else None
    tokens = case.batch * case.length
    flops = tokens * flops_per_token(case)
    record = {
        'case': case.name,
        'length': case.length,
        'batch': case.batch,
        'seconds': medians['ours'],
        'compile_seconds': first - medians['ours'],
        'tokens_per_second': tokens / medians['ours'],
        'matmul_share': flops / medians['ours'] / hardware.measured_matmul_flops(),
        'memory_mib': memory,
        'peak_rss_mib': _bench.peak(),
        'others': others,
    }
    if other is not None:
        record['peer'] = {
            'seconds': medians['peer'],
            'memory_mib': other[1]['memory_mib'],
            'versions': other[1]['versions'],
        }
        record['ratio'] = medians['peer'] / medians['ours']
    return record


def flops_per_token(case: Case) -> float:
    """Work without recomputation: 3 passes to train, 2 for lambda alone, 1 to evaluate."""
    passes = {'train': 3, 'head_scale': 2, 'evaluate': 1}[case.kind]
    return passes / 3 * case.model.training_flops_per_token(case.length)


def main() -> None:
    huge_pages.restart_with_huge_pages()  # as experiments.run does
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--only', default='', help='cases whose name holds this')
    parser.add_argument('--repeats', type=int, default=5)
    parser.add_argument('--peer-python', help='interpreter with torch and transformers')
    parser.add_argument('--case', help=argparse.SUPPRESS)  # one case, in this process
    arguments = parser.parse_args()
    chosen = {case.name: case for case in cases() if arguments.only in case.name}
    if not chosen:
        parser.error(f'--only={arguments.only}: the cases are {[c.name for c in cases()]}')
    if arguments.case:
        _bench.emit(measure(chosen[arguments.case], arguments.peer_python, arguments.repeats))
        return
    for name in chosen:  # a process each: memory of one does not hide in another's
        subprocess.run([sys.executable, __file__, *sys.argv[1:], f'--case={name}'], check=True)


if __name__ == '__main__':
    main()
