"""How one process ends; several are in tests/distributed."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import sys, threading
from nope.runtime import ending

ending.LEAVE_SECONDS = 0.5

def command():
    threading.Thread(target=threading.Event().wait).start()  # as of a save that nobody finishes
    print('begun')
    {}

sys.exit(ending.run(command))
"""


@pytest.mark.parametrize(
    ('way', 'status', 'said'),
    [
        ("raise ending.Failure(4, 'the disk is gone')", 4, 'error: the disk is gone\n'),
        ('raise RuntimeError("nobody expected it")', 1, 'RuntimeError: nobody expected it\n'),
        ('return 2', 2, ''),
    ],
)
def test_threads_that_wait_do_not_keep_a_command_that_failed(
    way: str, status: int, said: str
) -> None:
    ended = subprocess.run(
        [sys.executable, '-c', SCRIPT.format(way)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == status
    assert ended.stdout == 'begun\n'
    assert ended.stderr.endswith(said)
