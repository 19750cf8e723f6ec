"""Progress bars: lively on a terminal, a line every twenty seconds in a log."""

from __future__ import annotations

import sys
from typing import Any

from tqdm import tqdm


def bar(items: Any = None, **options: Any) -> tqdm:
    """A `tqdm` over `items` (or by hand, with `total`), updated as often as the reader wants."""
    interval = 0.5 if sys.stderr.isatty() else 20.0
    return tqdm(items, **{'mininterval': interval, 'dynamic_ncols': True, **options})
