"""Kind of figure of position encodings on tasks: its options are curves."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from experiments.figures.base import Figure
from experiments.figures.given import Known
from experiments.figures.read.encoding_tasks import curves

D = TypeVar('D')


class EncodingFigure(Figure[D]):
    """Options: curves, [{group, label, paper}], each the name of records '<group>/<seed>' of one
    encoding. paper: the second paper's name of the encoding, '' for one that it has not. Every task
    has the same encodings.

    EVALUATION: of its records. FACTS: those that tell what a record reads.
    """

    OPTIONS: Collection[str] = ('curves',)
    NEEDED: Collection[str] = ('curves',)
    EVALUATION = 'exact_match'
    FACTS: tuple[str, ...] = ('task',)

    def needs(self, name: str, options: Mapping[str, Any]) -> dict[str, str]:
        return curves.needs(name, options, self.EVALUATION)

    def check_known(self, name: str, options: Mapping[str, Any], known: Known) -> None:
        curves.check_known(name, options, known, self.FACTS)
