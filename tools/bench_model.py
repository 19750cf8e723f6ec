"""Speed of the 1.1B model on an accelerator: one kind of work with one attention backend.

    python tools/bench_model.py --work=step --length=2048 --batch=16 --attention=library
    python tools/bench_model.py --work=entropy --length=131072 --batch=1 [--seconds=20]
    python tools/bench_model.py --work=greedy --length=2048 --batch=16
    python tools/bench_model.py --work=step --length=2048 --batch=16 --peer
    python tools/bench_model.py --work=step --small      # the same program of a small model

Work: a training step ('step'), one of a search of HeadScale ('search'), the loss by position
('loss'), that with every head's entropy ('entropy'), and greedy decoding after prompts of that
length ('greedy'). One JSON line: median seconds of a call, compilation apart, tokens a second, and
the model's products a second as a share of the data sheet's (MFU; recomputed ones not counted); of
greedy decoding milliseconds a token and the share of the data sheet's memory bandwidth. A process
measures one thing, so that one that does not fit into memory leaves the others alone; a trial of a
small model (--small) takes --work several times. --peer: the same in PyTorch and Hugging Face's
Llama on the same device, in bfloat16 by autocast where ours is; needs torch and transformers in
this interpreter.
"""

from __future__ import annotations

from nope.runtime import door

if __name__ == '__main__':  # before what it imports
    door.enter(__file__)

import argparse
import dataclasses
import functools
import sys

import _bench
import _decoding
import jax
from _peer import Peer
from _shapes import LARGE, QUICK
from bench_train import (
    FULL_STEP,
    HEAD_SCALE,
    LOSS,
    LOSS_AND_ENTROPY,
    MOST_TURNS,
    Case,
    Program,
    start_peer,
)

from nope.attention.api import BACKENDS
from nope.model import counts
from nope.runtime import hardware

WORKS = {'step': FULL_STEP, 'search': HEAD_SCALE, 'loss': LOSS, 'entropy': LOSS_AND_ENTROPY}
GREEDY = 'greedy'
NEW_TOKENS, NEW_TOKENS_SMALL = 128, 16


def measure(case: Case, name: str, seconds: float) -> None:
    """Ours: compiles, runs and prints."""
    program = Program(case, WORKS[name])
    program()
    timer = functools.partial(_bench.seconds, program)
    taken = _bench.interleaved({name: timer}, MOST_TURNS, seconds)[name]
    rate = program.flops / taken
    _bench.emit(
        {
            **facts(case, name),
            'attention': case.model.attention or 'chosen',
            'seconds': taken,
            'tokens_per_second': case.tokens / taken,
            'compile_seconds': program.compile_seconds,
            'temp_gib': None if program.temp_mib is None else program.temp_mib / 1024,
            'mfu': rate / hardware.peak_flops() / jax.device_count(),
            'jax': jax.__version__,
        }
    )


def measure_peer(case: Case, name: str, seconds: float) -> None:
    """PyTorch's, in a process of its own."""
    on = 'cuda' if jax.default_backend() == 'gpu' else 'cpu'
    peer: Peer = start_peer(sys.executable, case, WORKS[name], on=on, dtype=case.model.dtype)
    taken = _bench.interleaved({name: peer.seconds}, MOST_TURNS, seconds)[name]
    peer.close()
    _bench.emit(
        {
            **facts(case, name),
            'attention': peer.versions,
            'seconds': taken,
            'tokens_per_second': case.tokens / taken,
        }
    )


def measure_decoding(case: Case, seconds: float, new_tokens: int) -> None:
    """Greedy decoding of ours."""
    found = _decoding.measure(case.model, case.length, case.batch, new_tokens, MOST_TURNS, seconds)
    attention = {'attention': case.model.attention or 'chosen', 'new_tokens': new_tokens}
    _bench.emit(facts(case, GREEDY) | attention | found | {'jax': jax.__version__})


def facts(case: Case, name: str) -> dict:
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
    parser.add_argument('--seconds', type=float, default=20.0)
    parser.add_argument('--small', action='store_true', help='a model of 228 thousand parameters')
    parser.add_argument('--peer', action='store_true', help='PyTorch instead')
    options = parser.parse_args()
    for name in ('length', 'batch'):
        if getattr(options, name) < 1:
            parser.error(f'--{name} is {getattr(options, name)}; accepted: 1 and more')
    if options.peer and GREEDY in options.work:
        parser.error(f'--work {GREEDY} has no --peer; bench_eval.py has one on a CPU')
    if len(options.work) > 1 and not options.small:
        parser.error(f'--work is given {len(options.work)} times; accepted: once, or with --small')
    model = QUICK if options.small else LARGE
    model = dataclasses.replace(model, attention=options.attention)
    for name in options.work:
        case = Case('1.1b', model, options.length, options.batch, ())
        if name == GREEDY:
            new_tokens = NEW_TOKENS_SMALL if options.small else NEW_TOKENS
            measure_decoding(case, options.seconds, new_tokens)
        else:
            (measure_peer if options.peer else measure)(case, name, options.seconds)


if __name__ == '__main__':
    main()
