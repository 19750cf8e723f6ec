"""What a case has to come to: a refusal in words, that names the file or the field, or the data."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tests.fuzz.mutation import Draw

# What `experiments.command` prints as one message; anything else ends a command with a traceback.
# A checkpoint's own kind of refusal is given where checkpoints are read.
REFUSALS = (ValueError, OSError, ImportError)
LONGEST_MESSAGE = 8000

# Runs one case; True where its input was accepted, and read rightly.
Case = Callable[[Draw], bool]


class Target(NamedTuple):
    """name: of the target. cases: how many are run. make: from an empty folder, the case."""

    name: str
    cases: int
    make: Callable[[pathlib.Path], Case]


class Wrong(AssertionError):
    """Outcome of a case that is neither a refusal in words nor the data."""


def attempt(
    read: Callable[[], Any], *names: object, also: tuple[type[Exception], ...] = ()
) -> tuple[bool, Any]:
    """(True, result) of `read`, or (False, the refusal). Wrong for a refusal that has none of
    `names` in its message. also: kinds of refusals beside `REFUSALS`."""
    try:
        return True, read()
    except (*REFUSALS, *also) as error:
        message = str(error)
        if not any(str(name) in message for name in names):
            raise Wrong(f'names none of {list(map(str, names))}: {message[:500]!r}') from error
        if len(message) > LONGEST_MESSAGE:
            raise Wrong(f'a message of {len(message)} characters: {message[:200]!r}') from error
        return False, error


def expect(fine: object, what: str) -> None:
    """Wrong unless what was read is what it should be."""
    if not fine:
        raise Wrong(what)


def fresh(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """Folders that have not been there, for what keeps what it has read by its path."""
    number = 0
    while True:
        number += 1
        yield folder / f'case{number}'
