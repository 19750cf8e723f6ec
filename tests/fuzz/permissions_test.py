"""Files that a user may not read and folders that he may not write are named.

Tests may run as root, who may do anything: the cases run in a process that becomes `nobody`.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import pytest

PROGRAM = """
import os, pathlib, sys
import array_record.python.array_record_module, pyarrow.parquet, sentencepiece, tokenizers
from nope import records
from nope.checkpoints import folders
from nope.data import DataConfig, load_tokenizer, prepare, sources
from nope.evals.samples import SampleLog
from nope.interop import open_directory
from nope.records import Measure, Records
from nope.runtime import files
from nope.training.goodput import Goodput
from nope.training.metrics import MetricsWriter
from experiments.workspace import Workspace

if os.getuid() == 0:  # whose files the interpreter may be: it is loaded by now
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
here = pathlib.Path(sys.argv[1])
locked, closed = here / 'locked', here / 'closed'

def read_all(source):
    source.identity()
    return [document for part in source.list_parts(here) for document in part.documents()]

def tokenise(out):
    return prepare.prepare(sources.JsonLines(str(here / 'a.jsonl')), 'bytes', out, cache=here)

CASES = {
    'a line file': (locked / 'a.jsonl', lambda p: read_all(sources.JsonLines(str(p)))),
    'a packed file': (locked / 'a.jsonl.gz', lambda p: read_all(sources.JsonLines(str(p)))),
    'a table': (locked / 'a.parquet', lambda p: read_all(sources.Parquet(str(p)))),
    'a text': (locked / 'a.txt', lambda p: read_all(sources.Text(str(p)))),
    'a folder of lines': (locked, lambda p: read_all(sources.JsonLines(str(p)))),
    'a closed folder': (closed, lambda p: read_all(sources.Text(str(p)))),
    'a tokenizer': (locked / 'tokenizer.json', lambda p: load_tokenizer(str(p))),
    'a piece model': (locked / 'tokenizer.model', lambda p: load_tokenizer(str(p))),
    'records': (locked, records.load),
    'a checkpoint': (locked, open_directory),
    'samples': (locked / 'samples.jsonl', SampleLog),
    'places': (locked / 'checkpoints_in.json', lambda p: folders.of_run(p.parent)),
    'a spec': (locked / 'spec.json', files.read_object),
    'a work folder': (closed, Workspace),
    'a work folder below': (closed / 'work', Workspace),
    'shards': (closed / 'out', tokenise),
    'records below': (closed / 'records', lambda p: records.save(
        Records({}, {'a': Measure(records.np.zeros(2), ('x',), '1')}), p)),
    'metrics': (closed / 'run', lambda p: MetricsWriter(p, 0)),
    'times': (closed, lambda p: Goodput(p).write()),
}
for name, (path, act) in CASES.items():
    try:
        act(path)
    except (OSError, ValueError) as error:
        print(name, 'named' if str(path) in str(error) else f'unnamed: {error}', sep=': ')
    else:
        print(name, 'done', sep=': ')
"""
NAMES = (
    *('a.jsonl', 'a.jsonl.gz', 'a.parquet', 'a.txt', 'tokenizer.json', 'tokenizer.model'),
    *('records.json', 'records.npz', 'config.json', 'model.safetensors', 'samples.jsonl'),
    *('checkpoints_in.json', 'spec.json'),
)


@pytest.fixture
def place() -> Iterator[pathlib.Path]:
    """A folder that everyone may enter, as those of pytest are not."""
    folder = pathlib.Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


def test_what_may_not_be_read_or_written_is_named(place: pathlib.Path) -> None:
    (place / 'a.jsonl').write_text('{"text": "a"}\n')
    for name in ('locked', 'closed'):
        (place / name).mkdir()
    for name in NAMES:
        path = place / 'locked' / name
        path.write_bytes(b'{}')
        path.chmod(0)
    (place / 'closed').chmod(0o111)
    result = subprocess.run(
        [sys.executable, '-c', PROGRAM, str(place)],
        capture_output=True,
        text=True,
        cwd=place,
        env={'PYTHONPATH': os.pathsep.join(sys.path), 'HOME': str(place), 'JAX_PLATFORMS': 'cpu'},
    )
    (place / 'closed').chmod(0o755)
    assert result.returncode == 0, result.stderr
    found = dict(line.split(': ', 1) for line in result.stdout.splitlines())
    assert len(found) == 19
    assert set(found.values()) == {'named'}, found
