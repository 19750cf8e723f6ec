"""A target that ends its process, to try the harness on; no reader is behind it."""

from __future__ import annotations

import os
import pathlib

from tests.fuzz.case import Case, Target, Wrong
from tests.fuzz.mutation import Draw

ABORTED, WRONG, ACCEPTED, REFUSED = range(4)


def _case(folder: pathlib.Path) -> Case:
    def case(draw: Draw) -> bool:
        kind = draw.integers(4)
        if kind == ABORTED:
            os.abort()
        if kind == WRONG:
            raise Wrong('as asked')
        return bool(kind == ACCEPTED)

    return case


TARGETS = (Target('dying.now_and_then', 12, _case),)
