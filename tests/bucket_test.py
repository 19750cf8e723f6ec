"""Checkpoints in a bucket: saved, read, found damaged and set aside.

Against an emulator of Google's storage, where it and the `gcs` extra are installed
(pip install gcp-storage-emulator).
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

from tests.distributed import launching

pytest.importorskip('gcp_storage_emulator')
pytest.importorskip('gcsfs')

SCRIPT = """
import json, sys
from gcp_storage_emulator.server import create_server

host, port = sys.argv[1].split(':')
server = create_server(host, int(port), in_memory=True, default_bucket='bucket')
server.start()
try:
    from etils import epath
    from tests import checkpoint_test, tiny
    from nope.checkpoint import Checkpoints

    def open_there():
        return Checkpoints('gs://bucket/work/run', checkpoint_test.IDENTITY)

    with open_there() as checkpoints:
        for step in (1, 2):
            checkpoints.save(checkpoint_test.state_at(step), {'examples': step})
            checkpoints.wait()
    found = []
    with open_there() as checkpoints:
        for step in (2, 1):
            state, data = checkpoints.restore(checkpoint_test.state_at(0))
            tiny.assert_same(state, checkpoint_test.state_at(step))
            found.append([checkpoints.steps(), data])
            document = epath.Path('gs://bucket/work/run/2/data/metadata')
            if step == 2:
                document.write_text(document.read_text().replace('2', '3'))
    aside = [path.name for path in epath.Path('gs://bucket/work/damaged').iterdir()]
    print(json.dumps([found, aside]))
finally:
    server.stop()
"""


def test_a_damaged_checkpoint_in_a_bucket_is_set_aside() -> None:
    address = launching.free_address()
    there = {'STORAGE_EMULATOR_HOST': f'http://{address}'}
    ended = subprocess.run(
        [sys.executable, '-c', SCRIPT, address],
        cwd=pathlib.Path(__file__).parents[1],
        env={**os.environ, **there, 'TENSORSTORE_GCS_HTTP_URL': f'http://{address}'},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    found, aside = json.loads(ended.stdout.strip().splitlines()[-1])
    assert found == [[[1, 2], {'examples': 2}], [[1], {'examples': 1}]]
    assert aside == ['2']
