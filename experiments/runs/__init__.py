"""Runs: pre-training, a search of lambda, fine-tuning, imported models, and laws of lambda.

`spec` says what a run is; a file for each kind makes it from an entry of a config's `runs`.
"""

from experiments.runs.spec import (
    ImportSpec,
    LawSpec,
    MultiplierChoice,
    RunSpec,
    Source,
    Typed,
    check_same_table,
)

__all__ = [
    'ImportSpec',
    'LawSpec',
    'MultiplierChoice',
    'RunSpec',
    'Source',
    'Typed',
    'check_same_table',
]
