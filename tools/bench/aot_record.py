"""Record of programs that were compiled ahead of time, a JSON line each.

A digest names a program as the code of its time writes it. After a change of the code a line is
found by the digest of its lowered text.
"""

from __future__ import annotations

import functools
import hashlib
import json
import pathlib
import re
from collections.abc import Callable, Mapping
from typing import Any

import jax

from tools.bench.harness import ROOT

_KERNEL = re.compile(r'"(?:[^"\\]|\\.){1000,}"')  # in bytes, as a string
_PLACE = re.compile(r'/\S+?\.py:\d+|0x[0-9a-f]+')  # of a source line, of an object

# What a program is made of; experiments name them and choose their sizes.
SOURCES = 'nope', 'experiments/programs.py'


@functools.cache
def code() -> str:
    """Digest of the sources of programs and of JAX's version."""
    total = hashlib.sha256(jax.__version__.encode())
    for source in SOURCES:
        place = ROOT / source
        for path in sorted(place.rglob('*.py')) if place.is_dir() else (place,):
            total.update(f'{path.relative_to(ROOT)}\0'.encode() + path.read_bytes())
    return total.hexdigest()[:16]


def digest(*texts: str) -> str:
    return hashlib.sha256('\0'.join(texts).encode()).hexdigest()[:16]


def program_digest(lowered: str, jaxpr: str) -> str:
    """Digest of a program's module and jaxpr, without places in source files. Kernels in the module
    contain such places, so that the jaxpr alone stands for them."""
    return digest(_KERNEL.sub('""', lowered), _PLACE.sub('', jaxpr))


class Record:
    """Lines in the file `path`, none where it is None. place: what they were compiled for and by;
    lines of other places are kept and not found. SystemExit where it is no such file, or cannot be
    written to."""

    def __init__(self, path: pathlib.Path | None, place: Mapping[str, str]) -> None:
        self._path, self._place = path, place
        self._lines: dict[tuple[str, str], dict[str, Any]] = {}
        try:
            if path is not None:
                path.open('a').close()  # refused before hours of work
                for text in path.read_text().splitlines():
                    self._keep(json.loads(text))
        except OSError as error:
            raise SystemExit(f'--out={path}: {error.strerror}') from None
        except (KeyError, TypeError, ValueError) as error:
            raise SystemExit(f'--out={path}: not lines of this tool: {error!r}') from None

    def get(
        self, name: str, lowered: Callable[[], str], line: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        """The line of a program: as recorded, or `line` made now. name: digest of the program as
        this code writes it. lowered: digest of what it lowers to."""
        found = self._lines.get(('digest', f'{code()} {name}'))
        if found is None:
            text = lowered()
            made = self._lines.get(('lowered', text)) or line()
            found = {**made, **self._place, 'digest': name, 'code': code(), 'lowered': text}
            self._keep(found)
            if self._path is not None:
                with self._path.open('a') as file:
                    file.write(json.dumps(found) + '\n')
        return found

    def _keep(self, found: dict[str, Any]) -> None:
        if all(found[name] == value for name, value in self._place.items()):
            self._lines['digest', f'{found["code"]} {found["digest"]}'] = found
            self._lines['lowered', found['lowered']] = found
