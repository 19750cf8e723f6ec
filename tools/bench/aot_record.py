"""Record of programs that were compiled ahead of time, a JSON line each."""

from __future__ import annotations

import hashlib
import json
import pathlib
from collections.abc import Callable, Mapping
from typing import Any


class Record:
    """Lines in the file `path`, none where it is None. place: what they were compiled for and by;
    lines of other places are kept and not found. SystemExit where it is no such file, or cannot be
    written to."""

    def __init__(self, path: pathlib.Path | None, place: Mapping[str, str]) -> None:
        self._path, self._place = path, place
        self._lines: dict[str, dict[str, Any]] = {}
        try:
            if path is not None:
                path.open('a').close()  # refused before hours of work
                for text in path.read_text().splitlines():
                    found = json.loads(text)
                    if all(found[name] == value for name, value in place.items()):
                        self._lines[found['digest']] = found
        except OSError as error:
            raise SystemExit(f'--out={path}: {error.strerror}') from None
        except (KeyError, TypeError, ValueError) as error:
            raise SystemExit(f'--out={path}: not lines of this tool: {error!r}') from None

    def get(self, program: str, line: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The line of a program: as recorded, whatever code has changed, or `line` made now.
        program: its name."""
        digest = hashlib.sha256(program.encode()).hexdigest()[:16]
        if digest not in self._lines:
            self._lines[digest] = {**line(), **self._place, 'digest': digest}
            if self._path is not None:
                with self._path.open('a') as file:
                    file.write(json.dumps(self._lines[digest]) + '\n')
        return self._lines[digest]
