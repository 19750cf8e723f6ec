"""Cost of a position encoding: seconds and bytes of a training step and of an evaluation pass.

    python -m tools.bench positions [--only=RoPE --only=t5] [--length=256] [--batch=8]
        [--seconds=120]

One JSON line for each encoding of the registry, on a model of 4 layers and width 128. Encodings
have their defaults; `split` has ALiBi in half of the heads, `learned` a table of the length. A line
has the median seconds of a call without compilation, the bytes of the program's temporaries, the
number of parameters, and the ratios to NoPE in the same run. All take turns, so that a busy machine
slows all alike.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from nope.model import ModelConfig, counts
from nope.positions.registry import KINDS, from_section
from tools.bench import harness
from tools.bench.shapes import SMALL
from tools.bench.train import FULL_STEP, LOSS, Runnable, Workload

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
        (name, what): Runnable(Workload(name, model, length, batch), work)
        for name, model in found.items()
        for what, work in WORKS.items()
    }
    timers = {key: functools.partial(harness.seconds, program) for key, program in programs.items()}
    taken, others = harness.beside_load(timers, budget)
    lines = []
    for name, model in found.items():
        line: dict[str, Any] = {
            'position': name,
            'layers': model.layers,
            'width': model.width,
            'length': length,
            'batch': batch,
            'parameters': counts.parameters(model),
        }
        for what in WORKS:
            room, base_room = programs[name, what].temp_mib, programs[BASE, what].temp_mib
            line |= {
                f'{what}_seconds': taken[name, what],
                f'{what}_seconds_over_none': taken[name, what] / taken[BASE, what],
                f'{what}_temp_bytes': None if room is None else round(room * harness.MIB),
                f'{what}_temp_over_none': room / base_room if room and base_room else None,
                f'{what}_compile_seconds': programs[name, what].compile_seconds,
            }
        lines.append({**line, 'cores_busy_elsewhere': others, **harness.about()})
    return lines


def main() -> None:
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
        harness.emit(line)
