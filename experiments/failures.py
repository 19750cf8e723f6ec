"""Pieces that could not be made, and what is left out for their sake.

A command tries each piece once. A failure is noted in a file beside the piece, for
`nope status`, until it is made after all. A training that diverges does so wherever
it runs: once one command has noted that, the others that were already at work leave it alone.
"""

from __future__ import annotations

import datetime
import errno
import logging
import os
import pathlib
import socket
from collections.abc import Iterable, Sequence
from typing import Any

from experiments.specs import Spec
from experiments.statuses import DIVERGED
from experiments.workspace import Workspace
from nope.checkpoints.errors import CheckpointError
from nope.checkpoints.lease import LostLeaseError
from nope.interop import CheckpointFileError
from nope.runtime import processes
from nope.runtime.errors import brief
from nope.runtime.files import read_object, write_json
from nope.training.reporting import TrainingDiverged
from nope.training.train import Interrupted

# Of a stop, of the command as a whole, or of its processes.
_ENDING = (Interrupted, LostLeaseError, processes.MissingProcessError, processes.OtherProcessError)
_EXPECTED = (CheckpointError, CheckpointFileError, MemoryError, OSError, TrainingDiverged)
# Of a disk to which nothing else could be written either.
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ESTALE, errno.EFBIG)

log = logging.getLogger(__name__)


class Failures:
    """Failed pieces of a command, with the reasons.

    pieces: all that it may make. What had failed before is tried again. Of several processes all
    note the same pieces; the files are the first one's.
    """

    def __init__(self, workspace: Workspace, pieces: Iterable[Spec]) -> None:
        self._workspace = workspace
        self._why: dict[Spec, str] = {}
        self._diverged: set[Spec] = set()  # of these
        self._before = {spec: self._read(spec) for spec in pieces} if processes.is_first() else {}

    def __contains__(self, spec: Spec) -> bool:
        return spec in self._why

    def add(self, spec: Spec, error: Exception) -> None:
        """Notes why a piece could not be made. Raises `error` where the command cannot go on: a
        stop, a lost lease, a full disk, or what only one of several processes may have met."""
        if isinstance(error, _ENDING) or _of_disk(error):
            raise error
        if processes.count() > 1 and not isinstance(error, TrainingDiverged):
            raise error
        unexpected = not isinstance(error, (*_EXPECTED, ValueError))
        self._why[spec] = f'{type(error).__name__}: {error!s:.500}' if unexpected else str(error)
        if isinstance(error, MemoryError):
            self._why[spec] = f'not enough memory: {brief(error)}. What was saved is kept'
        if isinstance(error, TrainingDiverged):
            self._diverged.add(spec)
        log.error('%s failed: %s', spec.slug(), self._why[spec], exc_info=unexpected)
        note = {
            'error': type(error).__name__,
            'message': str(error)[:2000],
            'again': not isinstance(error, TrainingDiverged),
            'at': datetime.datetime.now(datetime.UTC).isoformat(timespec='seconds'),
            'host': socket.gethostname(),
        }
        processes.from_first(lambda: write_json(self._file(spec), note))
        # All of them have failed here, or this one ends the command.
        processes.exchange(spec.slug(), f'the end of {spec.slug()}')

    def remove(self, spec: Spec) -> None:
        """Forgets an earlier attempt at a piece that has been made."""
        processes.from_first(lambda: self._file(spec).unlink(missing_ok=True))

    def look(self, pieces: Iterable[Spec]) -> None:
        """Takes over what other commands have found out since the start. For the first process."""
        for spec in pieces:
            found = None if spec in self._why else self._read(spec)
            if found and not found.get('again', True) and found != self._before.get(spec):
                self._why[spec] = f'{found.get("message")} (on {found.get("host")})'
                self._diverged.add(spec)
                log.error('%s failed in another command: %s', spec.slug(), self._why[spec])

    def given_up(self, missing: Iterable[Spec]) -> list[Spec]:
        """Missing pieces that failed, or need one of these at any remove. missing: each after its
        needs."""
        found: list[Spec] = []
        for spec in missing:
            if spec in self._why or not set(spec.needs).isdisjoint(found):
                found.append(spec)
        return found

    def status(self, pieces: Sequence[Spec]) -> int:
        """Exit status where `describe` tells of failures. DIVERGED: another try, elsewhere or
        later, meets the same. Else it is 1. The same in all processes."""
        return processes.from_first(lambda: self._status(self._missing(pieces)))

    def _status(self, missing: Sequence[Spec]) -> int:
        failed = [spec for spec in missing if spec in self._why]
        return DIVERGED if failed and self._diverged.issuperset(failed) else 1

    def _missing(self, pieces: Sequence[Spec]) -> list[Spec]:
        # What failed here may have been made by another command since.
        return [spec for spec in pieces if not self._workspace.finished(spec)]

    def describe(self, pieces: Sequence[Spec]) -> str:
        """Message naming failed pieces with their reasons and those left out; '' where nothing
        failed. The same in all processes."""
        return processes.from_first(lambda: self._described(pieces))

    def _described(self, pieces: Sequence[Spec]) -> str:
        given_up = self.given_up(self._missing(pieces))
        failed = [spec for spec in given_up if spec in self._why]
        if not failed:
            return ''
        told = [f'{spec.slug()}: {self._why[spec]}' for spec in failed]
        number = f'{len(failed)} of {len(pieces)} pieces failed'
        if len(told) == 1:
            lines = [f'{number}, and the same command tries it again: {told[0]}']
        else:
            lines = [f'{number}, and the same command tries them again:']
            lines += [f'  {line}' for line in told]
        left_out = [spec for spec in given_up if spec not in self._why]
        if left_out:
            lines.append('left out, because they need what failed:')
            lines += [f'  {spec.slug()}' for spec in left_out]
        return '\n'.join(lines)

    def _file(self, spec: Spec) -> pathlib.Path:
        return spec.failure(self._workspace.folder(spec))

    def _read(self, spec: Spec) -> dict[str, Any] | None:
        try:
            return read_object(self._file(spec))
        except (OSError, ValueError):  # a note that is damaged says nothing
            return None


def _of_disk(error: BaseException | None) -> bool:
    """True where the error, or one that led to it, is a disk's, or says so in its text."""
    while error is not None:
        if getattr(error, 'errno', None) in _DISK:
            return True
        if any(os.strerror(code) in str(error) for code in _DISK):
            return True
        error = error.__cause__ or error.__context__
    return False
