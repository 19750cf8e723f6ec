"""Log of an evaluation's finished samples, so that a killed evaluation resumes without repeats."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Mapping
from typing import Any

from nope.runtime import processes
from nope.runtime.files import logged_rows

NAME = 'samples.jsonl'


class SampleLog:
    """An append-only file of JSON lines, one a sample: {"key": ..., the sample's own fields}.

    What is in the file when the log is opened counts as finished. A line that a kill cut short
    is removed: its sample is not finished. Of several processes, which all read the file and
    append the same samples, the first one writes.
    """

    def __init__(self, path: pathlib.Path) -> None:
        """ValueError, naming the line, for a file that holds something else, and where processes
        do not find the same samples."""
        self._path = path
        self._rows: dict[str, dict[str, Any]] = {}
        if processes.is_first():
            path.parent.mkdir(parents=True, exist_ok=True)
            content = path.read_bytes() if path.exists() else b''
            if content and not content.endswith(b'\n'):
                with path.open('r+b') as stream:
                    stream.truncate(content.rfind(b'\n') + 1)
        processes.meet('opening the samples')
        for number, row in logged_rows(path):
            if row is None or 'key' not in row:
                raise ValueError(f'{path}, line {number}: not a finished sample')
            self._rows[row.pop('key')] = row
        found = processes.exchange(len(self._rows), 'reading the samples')
        if len(set(found)) > 1:
            raise ValueError(f'{path}: the processes find {found} samples; is the folder shared?')

    def __contains__(self, key: str) -> bool:
        return key in self._rows

    def __getitem__(self, key: str) -> dict[str, Any]:
        return self._rows[key]

    def __len__(self) -> int:
        return len(self._rows)

    def append(self, rows: Mapping[str, Mapping[str, Any]]) -> None:
        """Adds finished samples; they are on the disk when this returns.

        ValueError for a key that is there already.
        """
        again = [key for key in rows if key in self._rows]
        if again:
            raise ValueError(f'{self._path}: the sample {again[0]!r} is finished already')
        lines = [json.dumps({'key': key, **row}, allow_nan=False) for key, row in rows.items()]
        self._rows.update({key: dict(row) for key, row in rows.items()})
        if not processes.is_first():
            return
        with self._path.open('a', encoding='utf-8') as stream:
            stream.write(''.join(f'{line}\n' for line in lines))
            stream.flush()
            os.fsync(stream.fileno())
