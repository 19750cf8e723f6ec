"""matplotlib, loaded by the first figure that is drawn: it is a quarter of what a command loads.

`mpl.Line2D` is the class of that name, and so are the others of `mpl_names`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from experiments.figures.look.mpl_names import *  # noqa: F403
else:

    def __getattr__(name):
        return getattr(importlib.import_module('experiments.figures.look.mpl_names'), name)
