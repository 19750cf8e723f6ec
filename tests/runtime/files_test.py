from __future__ import annotations

import fcntl
import os
import pathlib
import subprocess
import sys
import time

import pytest

from nope.runtime import files
from tests.runtime.lfs import pointer

MAKER = """
import pathlib, sys, time
from nope.runtime import files
from tests.runtime.lfs import pointer
with files.unfinished_folder(pathlib.Path(sys.argv[1])) as partial:
    (partial / 'half').touch()
    print(partial.name, flush=True)
    time.sleep(60)
"""
HOLDER = """
import pathlib, sys, time
from nope.runtime import files
from tests.runtime.lfs import pointer
files.share_until_exit(pathlib.Path(sys.argv[1]))
print('held', flush=True)
time.sleep(60)
"""


def test_who_shares_a_lock_is_waited_for_until_it_ends(tmp_path: pathlib.Path) -> None:
    lock = tmp_path / 'lock'
    holders = [
        subprocess.Popen(
            [sys.executable, '-c', HOLDER, str(lock)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    for holder in holders:  # both at a time
        assert holder.stdout is not None and holder.stdout.readline() == 'held\n'
    taker = subprocess.Popen(
        [
            sys.executable,
            '-c',
            'import pathlib, sys; from nope.runtime import files\n'
            'with files.exclusive(pathlib.Path(sys.argv[1])): print("taken")',
            str(lock),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    holders[0].kill()
    time.sleep(1.0)
    assert taker.poll() is None
    holders[1].kill()
    assert taker.communicate(timeout=30)[0] == 'taken\n'
    for holder in holders:
        holder.communicate()


def test_a_file_is_replaced_whole_and_leaves_nothing_beside_it(tmp_path: pathlib.Path) -> None:
    path = tmp_path / 'folder' / 'file'
    files.write_bytes(path, b'one')
    files.write_text(path, 'zw\u00f6lf')
    assert path.read_text(encoding='utf-8') == 'zw\u00f6lf'
    assert list(path.parent.iterdir()) == [path]


MOUNTS = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
40 22 0:52 / /bucket rw,nosuid shared:9 - fuse.gcsfuse gcsfuse rw,user_id=0
41 22 0:53 / /home rw - nfs4 server:/home rw,vers=4.2
42 22 0:54 / /scratch rw - lustre mgs@tcp:/scratch rw,localflock
44 22 0:56 / /tmp rw - tmpfs  rw
45 22 0:57 / /old rw - nfs server:/old rw,vers=3,nolock,local_lock=all
46 22 0:58 / /nfs3 rw - nfs server:/nfs3 rw,vers=3,local_lock=none
47 22 0:59 / /share rw - cifs //server/share rw,vers=3.1.1,nobrl
43 22 0:55 / /work rw - lustre mgs@tcp:/work rw,flock
"""


@pytest.mark.parametrize(
    ('number', 'local'),
    [
        *(('22', False), ('40', True), ('41', True), ('42', True), ('43', False)),
        *(('44', False), ('45', True), ('46', False), ('47', True), ('9', False)),
    ],
)
def test_locks_that_another_machine_would_not_see(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, number: str, local: bool
) -> None:
    """A bucket that is mounted, Lustre, NFS and SMB where told to, NFS 4 always; none that is not
    known."""
    mount = files._mount
    (tmp_path / 'mountinfo').write_text('')
    monkeypatch.setattr(files, 'MOUNTS', tmp_path / 'mountinfo')
    monkeypatch.setattr(files, '_mount', lambda *_: mount(MOUNTS, number))
    with files.exclusive(tmp_path / 'lock') as locked:
        assert locked is not local


def test_without_a_list_of_mounts_no_lock_is_known_to_hold_for_all(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setattr(files, 'MOUNTS', tmp_path / 'none')
    with files.exclusive(tmp_path / 'lock') as locked:
        assert not locked


@pytest.mark.skipif(not files.MOUNTS.exists(), reason='needs Linux')
def test_what_the_kernel_says_of_mounts_is_read(tmp_path: pathlib.Path) -> None:
    mounts = pathlib.Path('/proc/self/mountinfo').read_text()
    kinds = {files._mount(mounts, line.split()[0])[0] for line in mounts.splitlines()}
    assert 'proc' in kinds
    with (tmp_path / 'file').open('w') as file:
        assert files._file_system(file.fileno())[0] in kinds


def test_a_damaged_file_is_named(tmp_path: pathlib.Path) -> None:
    path = tmp_path / 'spec.json'
    assert files.read_json(path) is None
    path.write_text('')
    with pytest.raises(ValueError, match=r'spec\.json is damaged: Expecting value'):
        files.read_json(path)
    path.write_bytes(b'"\xff"')
    with pytest.raises(ValueError, match=r'spec\.json is damaged: .*decode byte 0xff'):
        files.read_json(path)


@pytest.mark.parametrize('text', ['null', '[]', '"x"', '0', '[' * 100_000, '{"a":' * 100_000])
def test_what_holds_no_object_is_named(tmp_path: pathlib.Path, text: str) -> None:
    path = tmp_path / 'spec.json'
    assert files.read_object(path) is None
    path.write_text(text)
    with pytest.raises(ValueError, match=r'spec\.json is damaged: it'):
        files.read_object(path)
    path.write_text('{}')
    assert files.read_object(path) == {}


def test_what_killed_writers_left_is_swept(tmp_path: pathlib.Path) -> None:
    files.write_text(tmp_path / 'goodput.json', '{}')
    files.unfinished(tmp_path / 'goodput.json').write_text('{"sec')
    (tmp_path / 'notes.partial-ly-done').mkdir()
    files.sweep(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {'goodput.json', 'notes.partial-ly-done'}


def test_a_folder_is_made_beside_those_of_living_makers_and_without_those_of_killed_ones(
    tmp_path: pathlib.Path,
) -> None:
    path = tmp_path / 'model [1]'
    makers = [
        subprocess.Popen(
            [sys.executable, '-c', MAKER, str(path)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    names = [maker.stdout.readline().strip() for maker in makers]  # type: ignore[union-attr]
    makers[0].kill()
    makers[0].communicate()
    (tmp_path / 'model [1].partial-file').touch()
    with files.unfinished_folder(path) as partial:
        assert {p.name for p in tmp_path.iterdir()} == {
            *('model [1].partial-file', names[1], partial.name)
        }
        partial.rename(path)
    makers[1].kill()
    makers[1].communicate()
    with pytest.raises(KeyError), files.unfinished_folder(path) as partial:
        raise KeyError
    assert {p.name for p in tmp_path.iterdir()} == {'model [1].partial-file', path.name}


@pytest.mark.parametrize('before', ['open', 'flock'])
def test_a_folder_that_another_maker_removes_before_it_is_held_is_made_again(
    before: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = {'open': os, 'flock': fcntl}[before]
    function = getattr(module, before)

    def late(*args):
        monkeypatch.undo()
        (first,) = tmp_path.iterdir()
        first.rmdir()
        return function(*args)

    monkeypatch.setattr(module, before, late)
    with files.unfinished_folder(tmp_path / 'model') as partial:
        assert list(tmp_path.iterdir()) == [partial]


@pytest.mark.parametrize('kind', ['nfs', 'lustre', 'cifs', ''])
def test_a_folder_in_the_making_is_left_where_another_machine_may_be_its_maker(
    kind: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = files.unfinished(tmp_path / 'model')
    left.mkdir()
    monkeypatch.setattr(files, '_mount', lambda *_: (kind, []))
    with files.unfinished_folder(tmp_path / 'model') as partial:
        assert left.is_dir() and partial != left
    monkeypatch.undo()
    with files.unfinished_folder(tmp_path / 'model'):
        assert not left.exists()


@pytest.mark.parametrize(
    'encoding', ['utf-8', 'utf-8-sig', 'utf-16-le', 'utf-16-be', 'utf-32-le', 'utf-32-be']
)
def test_text_is_read_as_utf8_with_its_line_ends_and_no_mark(
    encoding: str, tmp_path: pathlib.Path
) -> None:
    mark = '\ufeff' if encoding.endswith('e') else ''
    text = 'one\r\ntwo\né→\U0001f600'
    (tmp_path / 'a.txt').write_bytes(f'{mark}{text}'.encode(encoding))
    assert files.read_utf8(tmp_path / 'a.txt') == text.encode()


def test_bytes_that_are_no_utf8_are_read_as_they_are(tmp_path: pathlib.Path) -> None:
    (tmp_path / 'a.txt').write_bytes(b'\xff\n\x80')
    assert files.read_utf8(tmp_path / 'a.txt') == b'\xff\n\x80'


@pytest.mark.parametrize('read', [files.read_bytes, files.read_utf8, files.read_json])
def test_a_pointer_of_git_lfs_is_no_content(read, tmp_path: pathlib.Path) -> None:
    path = tmp_path / 'a.json'
    path.write_bytes(pointer(548_105_171))
    with pytest.raises(files.ContentError, match=rf'^{path} is a Git LFS .*\(548,105,171 bytes\)'):
        read(path)
    path.write_bytes(b'"' + pointer() + b'"')
    assert files.read_bytes(path) == b'"' + pointer() + b'"'


def test_a_text_with_the_name_of_a_file_in_another_encoding_is_written(
    tmp_path: pathlib.Path,
) -> None:
    files.write_text(tmp_path / 'a', 'caf\udce9 \xe9')
    assert (tmp_path / 'a').read_bytes() == b'caf\\udce9 \xc3\xa9'
