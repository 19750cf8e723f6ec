"""Cost of a position encoding: seconds and bytes of a training step and of an evaluation pass.

    python tools/bench_positions.py [--only=rotary --only=t5] [--length=256] [--batch=8]
        [--seconds=120]

One JSON line for each encoding of the registry with its defaults (split: ALiBi in half of the
heads; learned: a table of the length) on a model of 4 layers and width 128: median seconds of one
call, compilation apart; bytes of the compiled program's temporaries; number of parameters; and
each over what the same model takes without position encoding in the same run. All encodings take
turns, so that a busy machine slows all alike.
"""

from __future__ import annotations

from nope.runtime import door, memory

if __name__ == '__main__':  # before the imports below, whose threads allocate
    door.enter(__file__)
    memory.restart_with_huge_pages()
    memory.few_arenas()

import argparse
import dataclasses
import functools
import sys
from collections.abc import Mapping
from typing import Any

import _bench
import jax
from _shapes import SMALL
from bench_train import FULL_STEP, LOSS, MOST_TURNS, Case, Program

from nope.model import ModelConfig, counts
from nope.positions.registry import KINDS, from_section

BASE = 'none'
WORKS = {'step': FULL_STEP, 'evaluation': LOSS}


def models(names: list[str], length: int, base: ModelConfig = SMALL) -> dict[str, ModelConfig]:
    """The model under each encoding, NoPE first. ValueError for a name that is no encoding."""
    for name in names:
        if name not in KINDS:
            raise ValueError(f'--only={name} is no encoding; accepted: {", ".join(KINDS)}')
    wanted = dict.fromkeys([BASE, *(names or KINDS)])
    fields: dict[str, dict[str, Any]] = {
        'learned': {'size': length},
        'split': {'local': {'kind': 'alibi'}},
    }
    found = {
        name: from_section({'kind': name, **fields.get(name, {})}, length, name) for name in wanted
    }
    return {name: dataclasses.replace(base, position=position) for name, position in found.items()}


def measure(
    found: Mapping[str, ModelConfig], length: int, batch: int, budget: float
) -> list[dict[str, Any]]:
    """JSON fields of every encoding. budget: seconds after which no further turn starts."""
    programs = {
        (name, what): Program(Case(name, model, length, batch, ()), work)
        for name, model in found.items()
        for what, work in WORKS.items()
    }
    timers = {
        f'{name} {what}': functools.partial(_bench.seconds, program)
        for (name, what), program in programs.items()
    }
    load = _bench.Load()
    taken = _bench.interleaved(timers, MOST_TURNS, budget)
    others = load.others()
    return [
        {
            'position': name,
            'layers': model.layers,
            'width': model.width,
            'length': length,
            'batch': batch,
            'parameters': counts.parameters(model),
            **_costs(programs, taken, name),
            'cores_busy_elsewhere': others,
            'device': jax.devices()[0].device_kind,
            'jax': jax.__version__,
        }
        for name, model in found.items()
    ]


def _costs(
    programs: Mapping[tuple[str, str], Program], taken: Mapping[str, float], name: str
) -> dict[str, Any]:
    """Seconds, temporaries and compilation of an encoding's work, and over those of NoPE."""
    costs: dict[str, Any] = {}
    for what in WORKS:
        seconds, base_seconds = (taken[f'{x} {what}'] for x in (name, BASE))
        room, base_room = (programs[x, what].temp_mib for x in (name, BASE))
        costs |= {
            f'{what}_seconds': seconds,
            f'{what}_seconds_over_none': seconds / base_seconds,
            f'{what}_temp_bytes': None if room is None else round(room * _bench.MIB),
            f'{what}_temp_over_none': room / base_room if room and base_room else None,
            f'{what}_compile_seconds': programs[name, what].compile_seconds,
        }
    return costs


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n')[0])
    parser.add_argument('--only', action='append', default=[], help=f'of {", ".join(KINDS)}')
    parser.add_argument('--length', type=int, default=256, help='tokens of a sequence')
    parser.add_argument('--batch', type=int, default=8, help='sequences')
    parser.add_argument('--seconds', type=float, default=120.0, help='of measuring, about')
    options = parser.parse_args()
    for name in ('length', 'batch'):
        if getattr(options, name) < 1:
            parser.error(f'--{name} is {getattr(options, name)}; it must be at least 1')
    try:
        found = models(options.only, options.length)
    except ValueError as error:
        parser.error(str(error))
    for line in measure(found, options.length, options.batch, options.seconds):
        _bench.emit(line)
    return 0


if __name__ == '__main__':
    sys.exit(main())
