"""Claims that ignorance would bear out: two models that have learned nothing are alike in much."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence

from experiments.figures.claims.decided import Decided
from experiments.figures.claims.verdict import FAILS, HOLDS, UNDECIDED
from nope.records import FLOOR, INSIDE, Records


def borne_out(claims: Sequence[Decided], records: Collection[Records]) -> list[Decided]:
    """The claims of a figure, drawn from `records`. None is decided where a training learned
    nothing, and `measured` says whose loss is not below its floor."""
    idle = unlearned(records)
    return [
        dataclasses.replace(
            claim,
            measured={
                **(claim.measured if isinstance(claim.measured, Mapping) else {}),
                'learned_nothing': idle,
            },
            verdict=UNDECIDED,
        )
        if idle and claim.verdict in (HOLDS, FAILS)
        else claim
        for claim in claims
    ]


def unlearned(records: Collection[Records]) -> list[str]:
    """'NoPE, 4 layers ...: loss 3.31, floor 3.24 nats', for every training of which no record has a
    loss inside L below its floor. Trainings without a record that has both are left out."""
    best: dict[str, tuple[float, str]] = {}
    for found in records:
        facts, loss = found.attributes, inside(found)
        if loss is None or facts.get(FLOOR) is None:
            continue
        key = str(facts.get('trained_id', facts['run_id']))
        said = f'{facts["model"]}: loss {loss:.3g}, floor {facts[FLOOR]:.3g} nats'
        best[key] = min(best.get(key, (float('inf'), '')), (loss - facts[FLOOR], said))
    return sorted({said for above, said in best.values() if above >= 0})


def inside(records: Records) -> float | None:
    """Loss inside L, nats: the mean over positions to L, or that of the windows up to L; the lowest
    under several multipliers. None where none was measured."""
    if INSIDE in records.attributes:
        return float(records.attributes[INSIDE])
    for name in ('loss', 'loss_window'):
        measure = records.measures.get(name)
        axis = measure.axes[-1] if measure else ''
        if measure is None or axis not in ('position', 'length'):
            continue
        places = records.along(axis, measure.values.shape[-1])
        values = measure.values[..., places <= (records.attributes['train_length'] or 0)]
        if values.size:
            return float((values.mean(axis=-1) if axis == 'position' else values).min())
    return None
