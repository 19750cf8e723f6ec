"""Tuned block sizes of attention kernels, by device.

`tools/bench/tune.py` writes its measurements into a table of the device, which is read here:
tuned/DEVICE.json, {kernel: {pass: {bytes of an entry: {head dim: blocks}}}}. All devices of one
data sheet share a table, a device that is compiled for and not there among them. Each kernel
defines the meaning of its `blocks`. A head dim without an entry takes the next larger one's.
"""

from __future__ import annotations

import functools
import json
import pathlib
import re
from collections.abc import Callable
from typing import Any, TypeVar

from nope.runtime import hardware
from nope.runtime.platform import target_device

T = TypeVar('T')
FOLDER = pathlib.Path(__file__).parent / 'tuned'


def measured(kernel: str, kind_of_pass: str, itemsize: int, head_dim: int) -> list[int] | None:
    """Fastest blocks on the target device of the traced program; None where none were measured."""
    by_head_dim = (
        _table(file_name(target_device()[1]))
        .get(kernel, {})
        .get(kind_of_pass, {})
        .get(str(itemsize), {})
    )
    enough = [int(size) for size in by_head_dim if int(size) >= head_dim]
    return by_head_dim[str(min(enough))] if enough else None


def given(
    kernel: str,
    kind_of_pass: str,
    chosen: tuple[tuple[str, T], ...],
    blocks: Callable[..., T],
    itemsize: int,
    head_dim: int,
) -> T | None:
    """Blocks chosen for the pass, or else measured on the device, as a kernel's own `blocks`; None
    where it has to guess."""
    found = dict(chosen).get(kind_of_pass)
    if found is not None:
        return found
    numbers = measured(kernel, kind_of_pass, itemsize, head_dim)
    return None if numbers is None else blocks(*numbers)


def file_name(device_kind: str) -> str:
    """'NVIDIA H100 80GB HBM3' -> 'h100.json'; 'NVIDIA L4', which has no data sheet here ->
    'nvidia_l4.json'."""
    name = hardware.sheet_name(device_kind) or device_kind
    return re.sub(r'[^a-z0-9]+', '_', name.lower()).strip('_') + '.json'


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
