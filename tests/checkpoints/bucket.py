"""An emulator of Google's storage, with a bucket `bucket`, in a process of its own.

Reads of the emulator's do not say which generation of an object they are of, as Google's do;
TensorStore, which writes a checkpoint after another to one bucket, cannot do without.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator

from tests.distributed import launching

SERVER = """
import sys
from gcp_storage_emulator.handlers import objects

answer = objects.download

def download(request, response, storage, *args, **kwargs):
    answer(request, response, storage, *args, **kwargs)
    if response.status.value < 300:
        read = storage.get_file_obj(request.params['bucket_name'], request.params['object_id'])
        response['x-goog-generation'] = read['generation']

objects.download = download  # before the server puts its table of answers together
from gcp_storage_emulator.server import create_server

host, port = sys.argv[1].split(':')
server = create_server(host, int(port), in_memory=True, default_bucket='bucket')
server.start()
print('ready', flush=True)
sys.stdin.read()
server.stop()
"""


@contextlib.contextmanager
def running() -> Iterator[dict[str, str]]:
    """The environment of processes for which gs://bucket is the emulator's."""
    address = launching.free_address()
    with subprocess.Popen(
        [sys.executable, '-c', SERVER, address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdin and server.stdout
        try:
            assert server.stdout.readline() == 'ready\n', 'the emulator did not start'
            yield {
                'STORAGE_EMULATOR_HOST': f'http://{address}',
                'TENSORSTORE_GCS_HTTP_URL': f'http://{address}',
            }
        finally:
            server.stdin.close()
