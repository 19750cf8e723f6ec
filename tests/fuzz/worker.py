"""Cases of one target in a process of its own, under limits of memory and time.

    python -m tests.fuzz.worker TARGET FIRST LAST SEED FOLDER

Runs the cases [FIRST, LAST). Standard output: a line of JSON for every wrong case. FOLDER/now says
which case runs, LAST at the end, and how many were accepted, for whoever watches.
"""

from __future__ import annotations

import contextlib
import gc
import json
import mmap
import os
import pathlib
import re
import resource
import struct
import sys
import time
import traceback
import zlib
from collections.abc import Callable, Iterator

import numpy as np

from tests.fuzz import targets
from tests.fuzz.case import Case, Wrong

MOST_SECONDS = 5.0  # of a case, of the processor
MOST_BYTES = 1 << 30  # that a case may need beside what the process has
ROOM_BYTES = 6 << 30  # of addresses, so that what asks for more does not take the machine
NOW = 'now'
PROGRESS = struct.Struct('<qq')


def draw_of(target: str, number: int, seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, zlib.crc32(target.encode()), number])


def outcome(case: Case, draw: np.random.Generator) -> tuple[str, str]:
    """('accepted' | 'refused' | 'wrong', why) of one case, its time and its memory."""
    with contextlib.suppress(OSError):  # not every kernel lets the peak be set back
        pathlib.Path('/proc/self/clear_refs').write_text('5')
    before, began = _bytes('VmRSS'), time.process_time()
    try:
        found, why = ('accepted' if case(draw) else 'refused'), ''
    except Wrong as error:
        found, why = 'wrong', str(error)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a library's panic is no Exception
        place = traceback.extract_tb(error.__traceback__)[-4:]
        where = ' < '.join(f'{pathlib.Path(f.filename).name}:{f.lineno}' for f in reversed(place))
        found, why = 'wrong', f'{type(error).__name__}: {str(error)[:300]} ({where})'
    seconds, grown = time.process_time() - began, _bytes('VmHWM') - before
    if seconds > MOST_SECONDS:
        return 'wrong', f'{seconds:.1f} s; {found} {why}'
    if grown > MOST_BYTES:
        return 'wrong', f'{grown >> 20} MiB; {found} {why}'
    return found, why


def run(name: str, first: int, last: int, seed: int, folder: pathlib.Path) -> None:
    with _now(folder / NOW) as tell:
        case = targets.by_name(name).make(folder)
        gc.collect()
        gc.freeze()
        room = _bytes('VmSize') + ROOM_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (room, room))
        accepted = 0
        for number in range(first, last):
            tell(number, accepted)
            found, why = outcome(case, draw_of(name, number, seed))
            accepted += found == 'accepted'
            if found == 'wrong':
                print(json.dumps({'case': number, 'why': why}), flush=True)
        tell(last, accepted)


@contextlib.contextmanager
def _now(path: pathlib.Path) -> Iterator[Callable[[int, int], None]]:
    """Writes two numbers where another process sees them at once; -1 and 0 before the first."""
    path.write_bytes(PROGRESS.pack(-1, 0))
    with path.open('r+b') as file, mmap.mmap(file.fileno(), PROGRESS.size) as shared:

        def tell(number: int, accepted: int) -> None:
            shared[:] = PROGRESS.pack(number, accepted)

        yield tell


def progress(path: pathlib.Path) -> tuple[int, int]:
    """(case that runs, cases accepted) of the process that writes there."""
    content = path.read_bytes() if path.exists() else b''
    return PROGRESS.unpack(content) if len(content) == PROGRESS.size else (-1, 0)


_STATUS = pathlib.Path('/proc/self/status')


def _bytes(field: str) -> int:
    found = re.search(rf'{field}:\s+(\d+) kB', _STATUS.read_text())
    return int(found[1]) << 10 if found else 0


if __name__ == '__main__':
    _, target, first, last, seed, where = sys.argv
    run(target, int(first), int(last), int(seed), pathlib.Path(where))
    sys.stdout.flush()
    os._exit(0)  # threads that libraries have left are not waited for
