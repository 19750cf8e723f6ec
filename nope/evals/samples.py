"""Finished samples of an evaluation, kept as they come: a kill loses none and repeats none."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Mapping
from typing import Any

NAME = 'samples.jsonl'


class SampleLog:
    """An append-only file of JSON lines, one a sample: {"key": ..., the sample's own fields}.

    What is in the file when the log is opened counts as finished. A line that a kill cut short
    is removed: its sample is not finished.
    """

    def __init__(self, path: pathlib.Path) -> None:
        """ValueError, naming the line, for a file that holds something else."""
        self._path = path
        self._rows: dict[str, dict[str, Any]] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        self._read()

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
        with self._path.open('a', encoding='utf-8') as stream:
            stream.write(''.join(f'{line}\n' for line in lines))
            stream.flush()
            os.fsync(stream.fileno())
        self._rows.update({key: dict(row) for key, row in rows.items()})

    def _read(self) -> None:
        if not self._path.exists():
            return
        content = self._path.read_bytes()
        whole = content.rfind(b'\n') + 1
        if whole < len(content):
            with self._path.open('r+b') as stream:
                stream.truncate(whole)
        for number, line in enumerate(content[:whole].splitlines(), 1):
            try:
                row = json.loads(line)
                self._rows[row.pop('key')] = row
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise ValueError(f'{self._path}, line {number}: not a finished sample') from error
