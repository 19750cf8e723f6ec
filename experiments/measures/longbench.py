"""LongBench, from local files."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING, Any

from experiments.evaluations import LongbenchSpec
from experiments.measures.base import Measurement, generator, model_of, open_log
from nope.data import load_tokenizer
from nope.evals import longbench
from nope.evals.longbench.prompts import check_settings
from nope.records import Records

if TYPE_CHECKING:
    from experiments.lab import Lab


def check(lab: Lab, spec: LongbenchSpec) -> None:
    del lab
    check_settings(load_tokenizer(spec.run.data.tokenizer), spec.max_length, spec.bos)


def measurement(lab: Lab, spec: LongbenchSpec) -> Measurement:
    lab.best_scale(spec.scale)  # a grid is measured before the folder is locked

    def measure(folder: pathlib.Path) -> tuple[Records, dict[str, Any]]:
        variables, more = model_of(lab, spec)
        samples = longbench.read(pathlib.Path(spec.folder), spec.datasets, spec.limit or None)
        found = longbench.run(
            generator(lab, spec, variables),
            load_tokenizer(spec.run.data.tokenizer),
            samples,
            max_length=spec.max_length,
            beams=spec.beams,
            log=open_log(folder),
            bos=spec.bos,
            window=None if spec.beyond else spec.window,
            progress=lab.bar('LongBench'),
        )
        return found, more

    return measure
