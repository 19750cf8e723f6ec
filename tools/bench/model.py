"""Speed of the 1.1B model on an accelerator: one kind of work with one attention backend.

    python -m tools.bench model --work=step --length=2048 --batch=16 --attention=library
    python -m tools.bench model --work=entropy --length=131072 --batch=1 [--seconds=20]
    python -m tools.bench model --work=greedy --length=2048 --batch=16
    python -m tools.bench model --work=step --length=2048 --batch=16 --remat=full
    python -m tools.bench model --work=step --length=2048 --batch=16 --peer
    python -m tools.bench model --work=step --small      # the same program of a small model

'step' is a training step and 'search' one of HeadScale. 'loss' is the loss by position, 'entropy'
adds every head's entropy, and 'greedy' decodes after prompts of that length. One JSON line has the
median seconds of a call without compilation, tokens a second, and the MFU, in which recomputed
products do not count. Greedy decoding has milliseconds a token and the share of the data sheet's
memory bandwidth.

A process measures one kind of work, so that a failure for lack of memory leaves the others alone.
Only with --small may it measure several. --peer measures PyTorch and Hugging Face's Llama on the
same device, on a GPU steps and losses with torch.compile: in bfloat16 by autocast, decoding in
bfloat16 whole. It
needs torch and transformers in this interpreter.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import sys
from collections.abc import Callable, Mapping

import jax
import numpy as np

from nope import sharding
from nope.attention.api import BACKENDS
from nope.evals import batching
from nope.evals.generation import Generator, Options
from nope.model import ModelConfig, counts
from nope.runtime import hardware
from nope.training.remat import LEAST_FIRST
from nope.variables import fresh_variables
from tools.bench import harness
from tools.bench.shapes import LARGE, QUICK
from tools.bench.train import (
    FULL_STEP,
    HEAD_SCALE,
    LOSS,
    LOSS_AND_ENTROPY,
    Runnable,
    Work,
    Workload,
    start_peer,
)

WORKS = {'step': FULL_STEP, 'search': HEAD_SCALE, 'loss': LOSS, 'entropy': LOSS_AND_ENTROPY}
GREEDY = 'greedy'
DECODE = Work(GREEDY, 'decode')
REMAT = (*LEAST_FIRST, 'fit')
NEW_TOKENS, NEW_TOKENS_SMALL = 128, 16


def measure(case: Workload, name: str, seconds: float) -> None:
    """Ours: compiles, runs and prints."""
    program = Runnable(case, WORKS[name])
    program()
    timer = functools.partial(harness.seconds, program)
    taken = harness.interleaved({name: timer}, seconds)[name]
    rate = program.flops / taken
    harness.emit(
        {
            **facts(case, name),
            'attention': case.model.attention or 'chosen',
            'seconds': taken,
            'tokens_per_second': case.tokens / taken,
            **({'remat': program.model.remat} if WORKS[name].kind != 'evaluate' else {}),
            'compile_seconds': program.compile_seconds,
            'temp_gib': None if program.temp_mib is None else program.temp_mib / 1024,
            'mfu': rate / hardware.peak_flops() / jax.device_count(),
            'jax': jax.__version__,
        }
    )


def measure_peer(case: Workload, name: str, seconds: float) -> None:
    """PyTorch's, in a process of its own."""
    on = 'cuda' if jax.default_backend() == 'gpu' else 'cpu'
    peer = start_peer(sys.executable, case, WORKS[name], on=on, dtype=case.model.dtype)
    taken = harness.interleaved({name: peer.seconds}, seconds)[name]
    peer.close()
    harness.emit(
        {
            **facts(case, name),
            'attention': peer.versions,
            'seconds': taken,
            'tokens_per_second': case.tokens / taken,
        }
    )


def measure_decoding(case: Workload, seconds: float, new_tokens: int) -> None:
    """Greedy decoding of ours with random weights and prompts: seconds to the first token, then
    milliseconds of each of `new_tokens` more, and the rate of reading memory meanwhile."""
    config, prompt, rows = case.model, case.length, case.batch
    mesh = sharding.make_mesh(sharding.MeshConfig(fsdp=jax.device_count()))
    tokens = rows * (batching.padded_length(prompt) + new_tokens + 1)
    generator = Generator(config, fresh_variables(config, mesh, 0), mesh, batch_tokens=tokens)
    draw = np.random.default_rng(0)
    prompts = [*draw.integers(config.vocab_size, size=(rows, prompt), dtype=np.int32)]

    def timer(count: int) -> Callable[[], float]:
        run = functools.partial(generator.generate, prompts, Options(count))
        return functools.partial(harness.seconds, run)

    timers = {'first': timer(1), 'all': timer(1 + new_tokens)}
    compiling = sum(run() for run in timers.values())
    taken = harness.interleaved(timers, seconds)
    read = bytes_per_step(config, rows, prompt + new_tokens // 2)
    harness.emit(
        {
            **facts(case, GREEDY),
            'attention': config.attention or 'chosen',
            'new_tokens': new_tokens,
            **figures(taken, rows, new_tokens, read),
            'compile_seconds': max(compiling - sum(taken.values()), 0.0),
            'jax': jax.__version__,
        }
    )


def measure_peer_decoding(case: Workload, seconds: float, new_tokens: int) -> None:
    """PyTorch's, in two processes of its own, as `measure_decoding`."""
    on = 'cuda' if jax.default_backend() == 'gpu' else 'cpu'
    start = functools.partial(start_peer, sys.executable, case, DECODE, on, case.model.dtype)
    peers = {'first': start(1), 'all': start(1 + new_tokens)}
    taken = harness.interleaved({name: x.seconds for name, x in peers.items()}, seconds)
    for peer in peers.values():
        peer.close()
    read = bytes_per_step(case.model, case.batch, case.length + new_tokens // 2)
    harness.emit(
        {
            **facts(case, GREEDY),
            'attention': peers['all'].versions,
            'new_tokens': new_tokens,
            **figures(taken, case.batch, new_tokens, read),
        }
    )


def figures(
    taken: Mapping[str, float], rows: int, new_tokens: int, read: float
) -> dict[str, float | None]:
    """Rates from the seconds to the first token ('first') and to all of them ('all')."""
    step = max(taken['all'] - taken['first'], 1e-9) / new_tokens
    sheet = hardware.known(jax.devices()[0].device_kind)
    rate = read / step / jax.device_count()
    return {
        'first_seconds': taken['first'],
        'ms_per_token': 1e3 * step,
        'tokens_per_second': rows / step,
        'gb_per_second': rate / 1e9,
        'share_of_bandwidth': None if sheet is None else rate / sheet.bandwidth,
    }


def bytes_per_step(config: ModelConfig, rows: int, length: int) -> float:
    """That a step of decoding reads: matrices once, and the keys and values of every row's `length`
    tokens."""
    numbers = counts.training_flops(config, 0) / 6
    cached = 2 * rows * length * config.layers * config.kv_heads * config.head_dim
    return (numbers + cached) * (4 if config.dtype == 'float32' else 2)


def facts(case: Workload, name: str) -> dict:
    return {
        'work': name,
        'parameters': counts.parameters(case.model),
        'length': case.length,
        'batch': case.batch,
        'dtype': case.model.dtype,
        'device': jax.devices()[0].device_kind,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n')[0])
    parser.add_argument('--work', action='append', choices=[*WORKS, GREEDY], required=True)
    parser.add_argument('--length', type=int, default=2048)
    parser.add_argument('--batch', type=int, default=1)
    parser.add_argument('--attention', choices=BACKENDS, help='default: what nope chooses')
    parser.add_argument('--remat', choices=REMAT, default='fit', help='of training and search')
    parser.add_argument('--seconds', type=float, default=20.0)
    parser.add_argument('--small', action='store_true', help='a model of 228 thousand parameters')
    parser.add_argument('--peer', action='store_true', help='PyTorch instead')
    options = parser.parse_args()
    for name in ('length', 'batch'):
        if getattr(options, name) < 1:
            parser.error(f'--{name} is {getattr(options, name)}; accepted: 1 and more')
    if len(options.work) > 1 and not options.small:
        parser.error(f'--work is given {len(options.work)} times; accepted: once, or with --small')
    model = QUICK if options.small else LARGE
    model = dataclasses.replace(model, attention=options.attention, remat=options.remat)
    for name in options.work:
        case = Workload('1.1b', model, options.length, options.batch)
        if name == GREEDY:
            new_tokens = NEW_TOKENS_SMALL if options.small else NEW_TOKENS
            decoding = measure_peer_decoding if options.peer else measure_decoding
            decoding(case, options.seconds, new_tokens)
        else:
            (measure_peer if options.peer else measure)(case, name, options.seconds)
