from __future__ import annotations

import pathlib
import subprocess
import sys
import time

from nope import files

HOLDER = """
import pathlib, sys, time
from nope import files
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
            'import pathlib, sys; from nope import files\n'
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
