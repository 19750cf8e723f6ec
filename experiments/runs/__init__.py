"""Runs: pre-training, a search of lambda, fine-tuning, imported models, laws of lambda, other
temperatures.

`spec` says what a run is; a file for each kind makes it from an entry of a config's `runs`.
"""

from experiments.runs.spec import (
    ChangedSpec,
    ImportSpec,
    LawSpec,
    MultiplierChoice,
    RunSpec,
    Source,
    TemperatureSpec,
    Typed,
    check_same_table,
)

__all__ = [
    'ChangedSpec',
    'ImportSpec',
    'LawSpec',
    'MultiplierChoice',
    'RunSpec',
    'Source',
    'TemperatureSpec',
    'Typed',
    'check_same_table',
]
