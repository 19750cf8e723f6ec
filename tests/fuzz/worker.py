"""Cases of targets in a process of its own, under limits of memory and time.

    python -m tests.fuzz.worker SEED FOLDER TARGET:FIRST:LAST ...

Standard output: a line of JSON for every wrong case, and one at the end of each target. FOLDER/now
says which case runs, for whoever watches.
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
import shutil
import struct
import sys
import time
import traceback
import zlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from tests.fuzz import targets
from tests.fuzz.case import Case, Wrong

MOST_SECONDS = 5.0  # of a case, of the processor
MOST_BYTES = 1 << 30  # that a case may need beside what the process has
ROOM_BYTES = 6 << 30  # of addresses, so that what asks for more does not take the machine
NOW = 'now'
PROGRESS = struct.Struct('<qqq')
_BEFORE = (0, -1, 0)


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


def run(seed: int, folder: pathlib.Path, spans: Sequence[tuple[str, int, int]]) -> None:
    """Runs the cases [first, last) of each target in turn; the limits are above what the process
    has when a target begins."""
    with _now(folder / NOW) as tell:
        for index, (name, first, last) in enumerate(spans):
            began, accepted = time.perf_counter(), 0
            tell(index, first - 1, 0)
            home = folder / name
            home.mkdir()
            _, hard = resource.getrlimit(resource.RLIMIT_AS)
            resource.setrlimit(resource.RLIMIT_AS, (hard, hard))  # a target begins without a limit
            case = targets.by_name(name).make(home)
            gc.collect()
            gc.freeze()
            resource.setrlimit(resource.RLIMIT_AS, (_bytes('VmSize') + ROOM_BYTES, hard))
            for number in range(first, last):
                tell(index, number, accepted)
                found, why = outcome(case, draw_of(name, number, seed))
                accepted += found == 'accepted'
                if found == 'wrong':
                    _say(target=name, case=number, why=why)
            tell(index, last, accepted)
            _say(target=name, accepted=accepted, seconds=time.perf_counter() - began)
            shutil.rmtree(home, ignore_errors=True)


def _say(**what: object) -> None:
    print(json.dumps(what), flush=True)


@contextlib.contextmanager
def _now(path: pathlib.Path) -> Iterator[Callable[[int, int, int], None]]:
    """Writes three numbers where another process sees them at once."""
    path.write_bytes(PROGRESS.pack(*_BEFORE))
    with path.open('r+b') as file, mmap.mmap(file.fileno(), PROGRESS.size) as shared:

        def tell(*numbers: int) -> None:
            shared[:] = PROGRESS.pack(*numbers)

        yield tell


def progress(path: pathlib.Path) -> tuple[int, int, int]:
    """(index of the target, its case that runs, those accepted) of the process that writes there;
    the case before the first where it has yet to begin."""
    content = path.read_bytes() if path.exists() else b''
    index, case, accepted = PROGRESS.unpack(content) if len(content) == PROGRESS.size else _BEFORE
    return index, case, accepted


_STATUS = pathlib.Path('/proc/self/status')


def _bytes(field: str) -> int:
    """0 where the system does not say."""
    if not _STATUS.exists():
        return 0
    found = re.search(rf'{field}:\s+(\d+) kB', _STATUS.read_text())
    return int(found[1]) << 10 if found else 0


if __name__ == '__main__':
    _, seed, where, *asked = sys.argv
    parts = (span.split(':') for span in asked)
    run(int(seed), pathlib.Path(where), [(name, int(a), int(b)) for name, a, b in parts])
    sys.stdout.flush()
    os._exit(0)  # threads that libraries have left are not waited for
