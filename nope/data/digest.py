"""Content digests: short hexadecimal names for bytes, files and JSON-able values."""

from __future__ import annotations

import functools
import hashlib
import json
import pathlib
from typing import Any

import numpy as np

DIGEST_BYTES = 16
WHOLE_FILE_BYTES = 64 << 20
SAMPLE_BYTES = 1 << 20
SAMPLES = 64


def of_bytes(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).hexdigest()


def of_json(value: Any) -> str:
    """Digest of a JSON-able value; dictionaries count as unordered."""
    return of_bytes(json.dumps(value, sort_keys=True, separators=(',', ':')).encode())


def of_file(path: pathlib.Path) -> str:
    """Digest of a file's size and content; not of its name or times.

    Files of at most 64 MiB are read whole. A larger one counts by 64 evenly spaced samples of 1
    MiB, the first and the last included. They tell corpora apart without reading terabytes at every
    start.
    """
    status = path.stat()
    return _of_file(path, status.st_size, status.st_mtime_ns)


def fraction(data: bytes) -> float:
    """A number in [0, 1), uniform over `data`, the same in every process and on every
    machine."""
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), 'big') / 2**64


@functools.lru_cache(maxsize=1 << 20)
def _of_file(path: pathlib.Path, size: int, mtime_ns: int) -> str:
    """Kept while a file's size and time stand, so that one process reads it once."""
    del mtime_ns
    digest = hashlib.blake2b(str(size).encode(), digest_size=DIGEST_BYTES)
    with path.open('rb') as file:
        if size <= WHOLE_FILE_BYTES:
            digest.update(file.read())
        else:
            for offset in np.linspace(0, size - SAMPLE_BYTES, SAMPLES).astype(np.int64):
                file.seek(int(offset))
                digest.update(file.read(SAMPLE_BYTES))
    return digest.hexdigest()
