"""Configs with a run on a synthetic task, for tests."""

from __future__ import annotations

from typing import Any

from ml_collections import ConfigDict

from configs.second_paper import b_mrr
from experiments.build import Experiment
from experiments.evaluations.exact_match import ExactMatchSpec


def config(**entry: Any) -> ConfigDict:
    """b_mrr with one run, changed."""
    found = b_mrr.get_config('quick')
    found.seeds = (0,)
    found.runs = {'one': {'task': {'name': 'cmc', 'longest': 4}, 'train': {'length': 20}} | entry}
    found.evals = {'one/': {'kind': 'exact_match', 'run': 'one'}}
    found.figure = {'kind': 'encoding_ranks', 'curves': ({'group': 'one', 'label': 'NoPE'},)}
    return found


def spec_of(experiment: Experiment) -> ExactMatchSpec:
    (spec,) = experiment.evals.values()
    assert isinstance(spec, ExactMatchSpec)
    return spec


def with_run(**more: Any) -> ConfigDict:
    found = config()
    found.runs.update(more)
    return found
