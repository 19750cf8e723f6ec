"""How many queries and keys a kernel works on at a time: measured on the device, or else a guess.

`tools/tune_attention.py` writes what it measures on a device into a table of its kind, which is
read here ever after: tuned/KIND.json, {kernel: {pass: {bytes of an entry: {head dim: blocks}}}}.
What `blocks` means is the kernel's own. A head dim takes the next larger one's.
"""

from __future__ import annotations

import functools
import json
import pathlib
import re
from typing import Any

from nope.runtime.platform import target_device

FOLDER = pathlib.Path(__file__).parent / 'tuned'


def measured(kernel: str, kind_of_pass: str, itemsize: int, head_dim: int) -> list[int] | None:
    """The fastest blocks on the device that the program being traced is for; None: not measured."""
    by_head_dim = (
        _table(file_name(target_device()[1]))
        .get(kernel, {})
        .get(kind_of_pass, {})
        .get(str(itemsize), {})
    )
    enough = [int(size) for size in by_head_dim if int(size) >= head_dim]
    return by_head_dim[str(min(enough))] if enough else None


def file_name(device_kind: str) -> str:
    """'NVIDIA H200' -> 'nvidia_h200.json'."""
    return re.sub(r'[^a-z0-9]+', '_', device_kind.lower()).strip('_') + '.json'


@functools.cache
def _table(name: str) -> dict[str, Any]:
    path = FOLDER / name
    return json.loads(path.read_text()) if path.exists() else {}


def fit(length: int, unit: int, largest: int) -> int:
    """The smallest power of two times `unit` that holds `length`, at most `largest`."""
    size = unit
    while size < length and size < largest:
        size *= 2
    return size
