"""How each kind of evaluation is made: what it reads, and the function of `nope.evals` it calls.

`check(lab, spec)` raises what the measurement would raise about text and files, before anything
is trained. `measurement(lab, spec)` makes what the measurement depends on and returns a function
from the records' folder to the records and more attributes of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from experiments.evaluations import (
    EvalSpec,
    HarnessSpec,
    LengthsSpec,
    LongbenchSpec,
    NeedlesSpec,
    PerplexitySpec,
    PositionsSpec,
)
from experiments.measures import longbench, needles, perplexity, tasks, windows
from experiments.measures.base import Measurement
from experiments.spec import GridSpec

if TYPE_CHECKING:
    from experiments.lab import Lab

_KINDS: dict[type, tuple[Any, Any]] = {
    GridSpec: (windows.check, windows.grid),
    PositionsSpec: (windows.check, windows.positions),
    LengthsSpec: (windows.check, windows.lengths),
    PerplexitySpec: (perplexity.check, perplexity.measurement),
    NeedlesSpec: (needles.check, needles.measurement),
    LongbenchSpec: (longbench.check, longbench.measurement),
    HarnessSpec: (tasks.check, tasks.measurement),
}


def check(lab: Lab, spec: EvalSpec) -> None:
    _KINDS[type(spec)][0](lab, spec)


def measurement(lab: Lab, spec: EvalSpec) -> Measurement:
    return _KINDS[type(spec)][1](lab, spec)
