"""Perplexity in sliding windows over documents."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING, Any

from experiments.evaluations import PerplexitySpec
from experiments.measures.base import Measurement, model_of, open_log
from nope.data.documents import Documents, open_documents
from nope.evals import sliding
from nope.records import Records

if TYPE_CHECKING:
    from experiments.lab import Lab


def check(lab: Lab, spec: PerplexitySpec) -> None:
    documents = _documents(lab, spec)
    for length in spec.lengths:
        sliding.plan(documents.lengths, length, stride=spec.stride, budget=spec.budget)


def measurement(lab: Lab, spec: PerplexitySpec) -> Measurement:
    lab.best_scale(spec.scale)  # a grid is measured before the folder is locked

    def measure(folder: pathlib.Path) -> tuple[Records, dict[str, Any]]:
        variables, more = model_of(lab, spec)
        found = sliding.run(
            spec.model,
            variables,
            _documents(lab, spec),
            spec.lengths,
            stride=spec.stride,
            budget=spec.budget,
            mesh=lab.mesh,
            batch_tokens=lab.batch_tokens,
            log=open_log(folder),
            progress=lab.bar('perplexity'),
        )
        return found, more

    return measure


def _documents(lab: Lab, spec: PerplexitySpec) -> Documents:
    return open_documents(spec.corpus, split=spec.split, cache=lab.workspace.data, bos=spec.bos)
