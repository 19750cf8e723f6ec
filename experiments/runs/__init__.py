"""Runs: pre-training, a search of lambda, fine-tuning, and models that are imported.

`spec` says what a run is; a file for each kind makes it from an entry of a config's `runs`.
"""

from experiments.runs.spec import ImportSpec, MultiplierChoice, RunSpec, Source, check_same_table

__all__ = ['ImportSpec', 'MultiplierChoice', 'RunSpec', 'Source', 'check_same_table']
