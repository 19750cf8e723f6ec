"""Safetensors files."""

from __future__ import annotations

import json
import pathlib

import ml_dtypes
import numpy as np

from nope.interop import safetensors
from tests.fuzz.case import Case, Target, attempt, expect
from tests.fuzz.mutation import Draw, json_mutated, mutated

FLOATS = {'F32': np.float32, 'BF16': ml_dtypes.bfloat16, 'F16': np.float16}


def framed(header: bytes, data: bytes = b'') -> bytes:
    return len(header).to_bytes(8, 'little') + header + data


def read_file(path: pathlib.Path) -> dict[str, tuple[str, list[int], bytes | None]]:
    """(dtype, shape, bytes) by name; None for the bytes of what is listed and not read."""
    found = {}
    for name, entry in safetensors.read_header(path).items():
        data = None
        if entry.code in FLOATS:
            array = safetensors.read(path, entry)
            assert array.shape == entry.shape and array.dtype == FLOATS[entry.code]
            data = array.tobytes()
        found[name] = (entry.code, list(entry.shape), data)
    return found


def read_plainly(data: bytes) -> dict[str, tuple[str, list[int], bytes | None]]:
    """What `read_file` gives of the bytes of a file that is in order."""
    begin = 8 + int.from_bytes(data[:8], 'little')
    header = json.loads(data[8:begin])
    header.pop('__metadata__', None)
    found = {}
    for name, fields in header.items():
        start, stop = fields['data_offsets']
        part = data[begin + start : begin + stop] if fields['dtype'] in FLOATS else None
        found[name] = (fields['dtype'], fields['shape'], part)
    return found


def whole_file(path: pathlib.Path) -> bytes:
    shapes = {
        'a.weight': ('F32', (2, 3)),
        'b': ('BF16', (12,)),
        'c': ('F16', ()),
        'd': ('F16', (0,)),
    }
    planned = {name: (np.dtype(FLOATS[code]), shape) for name, (code, shape) in shapes.items()}
    safetensors.write(path, planned, lambda name: np.ones(*reversed(planned[name])), {'of': 'us'})
    return path.read_bytes()


def _file(folder: pathlib.Path) -> Case:
    path = folder / 'model.safetensors'
    whole = whole_file(path)
    begin = 8 + int.from_bytes(whole[:8], 'little')
    header = json.loads(whole[8:begin])

    def case(draw: Draw) -> bool:
        kind = draw.integers(8)
        if kind == 0:
            data = whole
        elif kind < 4:
            data = mutated(draw, whole, [whole])
        elif kind < 6:
            data = framed(mutated(draw, whole[8:begin], [whole]), whole[begin:])
        else:
            data = framed(json.dumps(json_mutated(draw, header)).encode(), whole[begin:])
        path.write_bytes(data)
        accepted, found = attempt(lambda: read_file(path), path)
        expect(accepted or kind, 'a sound file is refused')
        expect(not accepted or found == read_plainly(data), 'other tensors than the file holds')
        return accepted

    return case


TARGETS: tuple[Target, ...] = (Target('weights.safetensors', 120, _file),)
