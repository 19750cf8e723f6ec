"""Tasks of lm_eval: those of Table 1, or others."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING, Any

from experiments.evaluations import HarnessSpec
from experiments.measures.base import Measurement, generator, model_of, open_log
from nope.data import load_tokenizer
from nope.evals import harness
from nope.records import Records

if TYPE_CHECKING:
    from experiments.lab import Lab


def check(lab: Lab, spec: HarnessSpec) -> None:
    del lab
    harness.check(
        spec.tasks,
        load_tokenizer(spec.run.data.tokenizer),
        bos=spec.bos,
        include=_folder(spec.include),
        data=_folder(spec.files),
    )


def measurement(lab: Lab, spec: HarnessSpec) -> Measurement:
    lab.best_scale(spec.scale)  # a grid is measured before the folder is locked

    def measure(folder: pathlib.Path) -> tuple[Records, dict[str, Any]]:
        variables, more = model_of(lab, spec)
        found = harness.run(
            spec.tasks,
            generator(lab, spec, variables),
            load_tokenizer(spec.run.data.tokenizer),
            window=spec.window,
            bos=spec.bos,
            limit=spec.limit or None,
            log=open_log(folder),
            progress=lab.bar('tasks'),
            include=_folder(spec.include),
            data=_folder(spec.files),
        )
        return found, more

    return measure


def _folder(path: str) -> pathlib.Path | None:
    return pathlib.Path(path) if path else None
