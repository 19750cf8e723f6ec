"""Atomic files, lock files for several processes, and what a person's files hold."""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import functools
import glob
import io
import json
import logging
import os
import pathlib
import re
import resource
import shutil
import uuid
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, TypeVar

log = logging.getLogger(__name__)

Made = TypeVar('Made')

# Kinds of mounts, and options of others (Lustre, NFS, SMB, OCFS2), by which locks are the machine's
# own. One of NFS 4 is lost, and its holder not told, where the server is out of reach for long.
MOUNTS = pathlib.Path('/proc/self/mountinfo')
OPEN_FILES = 4096
LOCAL_KINDS = ('fuse', 'fuseblk', 'beegfs', 'gpfs', 'virtiofs', '9p', 'nfs4')
LOCAL_LOCKS = frozenset(
    {'localflock', 'localflocks', 'nolock', 'nobrl', 'local_lock=flock', 'local_lock=all'}
)
# Kinds that one machine alone has. Elsewhere a lock on a folder is seldom seen by others.
OWN_DISKS = ('ext4', 'xfs', 'btrfs', 'zfs', 'f2fs', 'overlay', 'tmpfs')

RECODED_BYTES = 64 << 20  # of a text that is not UTF-8, which is held in memory
_MARK = codecs.BOM_UTF8
# Those of UTF-32 come first: they begin as those of UTF-16.
_MARKS = {
    codecs.BOM_UTF32_LE: 'utf-32',
    codecs.BOM_UTF32_BE: 'utf-32',
    codecs.BOM_UTF16_LE: 'utf-16',
    codecs.BOM_UTF16_BE: 'utf-16',
}
_POINTER = b'version https://git-lfs.github.com/spec/v1'
_POINTER_BYTES = 1 << 10


class BusyError(Exception):
    """Someone else is at work there."""


class ContentError(ValueError):
    """A file's content is not there, a pointer of Git LFS in its place, or too large to recode."""


@contextlib.contextmanager
def exclusive(path: pathlib.Path, *, wait: bool = True) -> Iterator[bool]:
    """Holds the lock file `path`. The lock is the kernel's and ends with the process. wait: waits
    for the holder, and says so; else BusyError.

    Yields False where other machines may not know of it, and without waiting on a file system
    without locks. Makers must therefore write under a name of their own and rename, so that at
    worst work is done twice.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open('a') as file:
        locked = _lock(file.fileno(), path, wait)
        yield locked and not _lock_is_local(file.fileno())


def _lock(descriptor: int, path: pathlib.Path, wait: bool) -> bool:
    """Takes the lock; False on a file system without locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        if not wait:
            raise BusyError(f'another process is at work on {path.parent}') from None
        log.info('another process is at work on %s; waiting for it', path.parent)
    except OSError:
        return False
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return True


def is_locked(path: pathlib.Path) -> bool:
    """True where some process holds the lock file `path`; False also where there is no such file,
    or no lock that can be seen. Who tries to take it at this very instant finds it held."""
    try:
        with path.open('rb') as file:
            fcntl.flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def share_until_exit(path: pathlib.Path) -> None:
    """Holds the lock file `path` as long as this process lives, together with all others that do
    so; `exclusive` waits for the last of them. Does nothing where there are no locks."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_SH)


def move_into_place(finished: pathlib.Path, final: pathlib.Path) -> None:
    """Renames a finished folder; where another process was first, drops this one."""
    try:
        os.rename(finished, final)
    except OSError:
        if not final.is_dir():
            raise
        shutil.rmtree(finished)


@contextlib.contextmanager
def writing(path: pathlib.Path, *failures: type[Exception]) -> Iterator[None]:
    """Lets errors of writing say the path, as an OSError. failures: what else a library raises
    where a write fails."""
    try:
        yield
    except failures as error:
        raise OSError(f'cannot write {path}: {error}') from error
    except OSError as error:
        if error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def write_bytes(path: pathlib.Path, data: bytes) -> None:
    """Writes a file that is either absent or whole; makes its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = unfinished(path)
    try:
        with writing(path), partial.open('wb') as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # else it may be empty where the power fails
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def check_present(path: pathlib.Path) -> None:
    """ContentError where Git LFS left its pointer in the place of a file."""
    if path.stat().st_size >= _POINTER_BYTES:
        return
    with path.open('rb') as file:
        content = file.read(_POINTER_BYTES)
    if content.startswith(_POINTER):
        size = re.search(rb'^size (\d+)', content, re.MULTILINE)
        real = f'{int(size[1]):,} bytes' if size else 'of unknown size'
        raise ContentError(
            f'{path} is a Git LFS pointer, not the file itself ({real}); get that by '
            '`git lfs pull` in its repository, or download it'
        )


def read_bytes(path: pathlib.Path) -> bytes:
    """The content of a file; ContentError where only the pointer of Git LFS is there."""
    check_present(path)
    return path.read_bytes()


def read_utf8(path: pathlib.Path) -> bytes:
    """The text of a file, as `utf8` gives it but without a byte order mark; line ends as they are.
    ContentError where only the pointer of Git LFS is there."""
    check_present(path)
    with open_utf8(path) as file:
        return without_mark(file.read())


@contextlib.contextmanager
def open_utf8(path: pathlib.Path) -> Iterator[BinaryIO]:
    """The text of a file, as `utf8` gives it."""
    with path.open('rb') as file:
        yield utf8(file, path)


def utf8_size(path: pathlib.Path) -> int:
    """Bytes of the text that `open_utf8` gives."""
    with open_utf8(path) as file:
        return file.seek(0, os.SEEK_END)


def utf8(file: Any, path: pathlib.Path) -> BinaryIO:
    """The text of an open binary file, which has `peek`, as UTF-8: the file itself, or the bytes of
    one that begins with the byte order mark of UTF-16 or UTF-32. path: for messages.

    UnicodeDecodeError for a damaged one of these, ContentError for one above `RECODED_BYTES`. Other
    files may hold bytes that are no UTF-8, and a mark of it (`without_mark`).
    """
    begin = file.peek(4)[:4]
    coding = next((coding for mark, coding in _MARKS.items() if begin.startswith(mark)), None)
    if coding is None:
        return file
    data = file.read(RECODED_BYTES + 1)
    if len(data) > RECODED_BYTES:
        raise ContentError(
            f'{path} is in {coding.upper()} and has more than {RECODED_BYTES >> 20} MiB; write it '
            'as UTF-8 (iconv), or cut it'
        )
    return io.BytesIO(data.decode(coding).encode())


def without_mark(text: bytes) -> bytes:
    """A text in UTF-8 without the byte order mark that it may begin with."""
    return text.removeprefix(_MARK)


def sync(path: pathlib.Path) -> None:
    """Waits until a file's content is on disk (fsync)."""
    with path.open('rb') as file:
        os.fsync(file.fileno())


def unfinished(path: pathlib.Path) -> pathlib.Path:
    """Temporary name beside `path`, unique among processes and containers."""
    return path.with_name(f'{path.name}.partial-{uuid.uuid4().hex[:12]}')


@contextlib.contextmanager
def unfinished_folder(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A new folder under a temporary name beside `path` for a `with` block, which renames it;
    removed where the block fails. Remains of killed makers are removed first on a disk of this
    machine, where a maker holds its folder by a lock."""
    for left in path.parent.glob(f'{glob.escape(path.name)}.partial-????????????'):
        with contextlib.suppress(OSError):
            held = os.open(left, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _file_system(held)[0] in OWN_DISKS:
                    shutil.rmtree(left)
            finally:
                os.close(held)
    while True:
        partial = unfinished(path)
        partial.mkdir(parents=True)
        # Before it is held another maker may take it for a killed one's.
        try:
            descriptor = os.open(partial, os.O_RDONLY)
        except FileNotFoundError:
            continue
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if partial.exists():
            break
        os.close(descriptor)
    try:
        yield partial
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    finally:
        os.close(descriptor)


def sweep(folder: pathlib.Path) -> None:
    """Removes what killed writers left in a folder that this process alone holds."""
    for path in folder.glob('*.partial-????????????'):
        if path.is_file():
            path.unlink(missing_ok=True)


def write_text(path: pathlib.Path, text: str) -> None:
    """`write_bytes` of a text in UTF-8. Characters without bytes are escaped, as in the name of a
    file in another encoding."""
    write_bytes(path, text.encode(errors='backslashreplace'))


def write_json(path: pathlib.Path, value: Any) -> None:
    """`write_text` of a JSON value, for people too."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True) + '\n')


def read_json(path: pathlib.Path) -> Any | None:
    """The file's value, or None where there is no such file; ValueError where it is no JSON."""
    try:
        return parse_json(read_utf8(path).decode())
    except FileNotFoundError:
        return None
    except ContentError:
        raise
    except ValueError as error:
        raise ValueError(f'{path} is damaged: {error}') from error


def read_object(path: pathlib.Path) -> dict[str, Any] | None:
    """The file's JSON object, or None where there is no such file; ValueError where it is none."""
    value = read_json(path)
    if isinstance(value, dict) or (value is None and not path.exists()):
        return value
    raise ValueError(f'{path} is damaged: it holds no JSON object')


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text; ValueError for what is none, and for values nested too deep to be
    read, which Python tells by a RecursionError."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError('its values are nested too deep') from error


def json_rows(path: pathlib.Path, made: Callable[[dict[str, Any]], Made]) -> Iterator[Made]:
    """Rows of a JSON lines file, as `made` makes them of each object. Blank lines are left out.
    ValueError, naming the line, for one without an object, and for what `made` refuses by one."""
    check_present(path)
    with path.open('rb') as file:
        for number, line in enumerate(file, 1):
            try:
                if line.strip():
                    yield made(_parse_row(line))
            except ValueError as error:
                raise ValueError(f'{path}, line {number}: {error}') from error


def logged_rows(path: pathlib.Path) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Number and object of every line of a log, None for a line that holds none; nothing where
    there is no file. What a kill left of the last line is left out."""
    lines = path.read_bytes().split(b'\n') if path.exists() else []
    for number, line in enumerate(lines, 1):
        try:
            yield number, _parse_row(line)
        except ValueError:
            if number < len(lines):
                yield number, None


def are_texts(value: Any) -> bool:
    """Whether a JSON value is a list of texts alone."""
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _parse_row(line: bytes) -> dict[str, Any]:
    """The object of a line of JSON; ValueError, saying what is wrong with the line, for others."""
    try:
        row = parse_json(line)
    except ValueError as error:
        raise ValueError(f'not a line of JSON ({error})') from error
    if not isinstance(row, dict):
        raise ValueError(f'a JSON {type(row).__name__}; it must be an object')
    return row


def _lock_is_local(descriptor: int) -> bool:
    """True where a lock on a shared file system may hold on this machine alone: FUSE (mounted
    buckets) and other kinds by default, Lustre and NFS with such mount options. Also where no list
    of mounts tells, as on macOS."""
    if not MOUNTS.exists():
        return True
    kind, options = _file_system(descriptor)
    return kind.partition('.')[0] in LOCAL_KINDS or not LOCAL_LOCKS.isdisjoint(options)


@functools.cache
def most_open() -> int:
    """Files that this process may have open, raised to `OPEN_FILES` where that is allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return OPEN_FILES if soft == resource.RLIM_INFINITY else soft
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return soft


def _file_system(descriptor: int) -> tuple[str, list[str]]:
    """Type and options of an open file's; empty where the kernel does not tell."""
    facts = pathlib.Path(f'/proc/self/fdinfo/{descriptor}')
    if not MOUNTS.exists() or not facts.exists():
        return '', []
    found = re.search(r'^mnt_id:\s*(\d+)', facts.read_text(), re.MULTILINE)
    return _mount(MOUNTS.read_text(), found[1]) if found else ('', [])


def _mount(mounts: str, number: str) -> tuple[str, list[str]]:
    """Type and options of a mount. Lines of mountinfo have number, parent, device, root, place,
    options, any tags, a hyphen, type, source, its options."""
    for line in mounts.splitlines():
        mount, _, system = line.partition(' - ')
        if mount.split()[0] == number:
            kind, _, options = system.split(' ')[:3]
            return kind, [*mount.split()[5].split(','), *options.split(',')]
    return '', []
