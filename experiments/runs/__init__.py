"""Runs: pre-training, searches of lambda, fine-tuning, imported models, laws of lambda, other
temperatures, silenced heads.

`spec` says what a run is; the other files make it from an entry of a config's `runs`.
"""

from experiments.runs.spec import (
    OWN,
    ChangedSpec,
    CheckpointSpec,
    HeadScores,
    ImportSpec,
    LawSpec,
    MultipliedSpec,
    MultiplierChoice,
    RunSpec,
    SilencedSpec,
    Source,
    TemperatureSpec,
    Typed,
    check_same_gates,
    check_same_table,
    first_run,
    text_of,
)

__all__ = [
    'OWN',
    'ChangedSpec',
    'CheckpointSpec',
    'HeadScores',
    'ImportSpec',
    'LawSpec',
    'MultipliedSpec',
    'MultiplierChoice',
    'RunSpec',
    'SilencedSpec',
    'Source',
    'TemperatureSpec',
    'Typed',
    'check_same_gates',
    'check_same_table',
    'first_run',
    'text_of',
]
