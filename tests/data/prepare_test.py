from __future__ import annotations

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest

from nope.data import prepare, sources
from nope.data.sources import JsonLines, Text
from tests.data.tokenizers_test import hugging_face_json

PART_BYTES = 4000
PROGRAM = """
import pathlib, sys
from nope.data import prepare, sources
from nope.data.sources import Text

if __name__ == '__main__':
    corpus, out, workers = sys.argv[1:]
    prepare.prepare(
        Text(corpus), 'bytes', pathlib.Path(out), cache=pathlib.Path(out),
        workers=int(workers), part_bytes=4000,
    )
"""


def run(corpus, out, **options) -> dict:
    source = Text(str(corpus))
    defaults = {'tokenizer': 'bytes', 'part_bytes': PART_BYTES}
    return prepare.prepare(source, out=out, cache=out, **(defaults | options))


def contents(folder: pathlib.Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope='module')
def reference(corpus, tmp_path_factory) -> pathlib.Path:
    out = tmp_path_factory.mktemp('reference') / 'shards'
    run(corpus, out)
    return out


@pytest.mark.parametrize('workers', [2, 3])
def test_files_are_the_same_for_any_number_of_workers(corpus, reference, tmp_path, workers):
    run(corpus, tmp_path / 'out', workers=workers)
    assert contents(tmp_path / 'out') == contents(reference)


def test_small_files_share_a_shard(tmp_path):
    folder = tmp_path / 'rows'
    folder.mkdir()
    for number in range(30):
        (folder / f'{number:02}.jsonl').write_text('{"text": "a document of its own"}\n' * 20)
    out = tmp_path / 'out'
    made = prepare.prepare(JsonLines(str(folder)), 'bytes', out, cache=out, part_bytes=PART_BYTES)
    assert made['parts'] == 6  # of five files each
    assert sum(shard['documents'] for shards in made['splits'].values() for shard in shards) == 600


def test_finished_shards_are_used_however_the_work_was_divided(corpus, reference, tmp_path):
    out = tmp_path / 'out'
    shutil.copytree(reference, out)
    plan = json.loads((out / 'plan.json').read_text())
    (out / 'plan.json').write_text(json.dumps(plan | {'parts': plan['parts'] + 1}))
    assert run(corpus, out) == json.loads((out / 'metadata.json').read_text())
    (out / 'metadata.json').unlink()
    with pytest.raises(ValueError, match=r'begun for other .*parts'):
        run(corpus, out)


def test_one_worker_starts_no_process(corpus, tmp_path, monkeypatch):
    monkeypatch.delattr(prepare.multiprocessing, 'get_context')
    run(corpus, tmp_path / 'out', workers=1)


@pytest.mark.parametrize('workers', [1, 2])
def test_killed_and_started_again_leaves_the_same_files(corpus, reference, tmp_path, workers):
    program = tmp_path / 'program.py'
    program.write_text(PROGRAM)
    out = tmp_path / 'out'
    command = [sys.executable, str(program), str(corpus), str(out), str(workers)]
    environment = os.environ | {'PYTHONPATH': os.pathsep.join(sys.path)}
    killed = []
    for finished in (3, 12):  # parts done when the process dies
        process = subprocess.Popen(command, env=environment)
        while process.poll() is None and len(list(out.glob('unit-*.json'))) < finished:
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        killed.append(process.wait() == -signal.SIGKILL)
    assert killed[0]
    run(corpus, out)
    assert contents(out) == contents(reference)


def test_unfinished_work_of_a_killed_process_is_cleared(corpus, reference, tmp_path):
    out = tmp_path / 'out'
    run(corpus, out)
    (out / 'metadata.json').unlink()
    unit = sorted(out.glob('unit-*.json'))[2]
    unit.unlink()
    shard = unit.stem.replace('unit', 'train') + '.array_record'
    (out / shard).unlink(missing_ok=True)
    (out / f'{shard}.partial-1').write_bytes(b'half a page')
    run(corpus, out)
    assert contents(out) == contents(reference)


def test_finished_parts_are_not_made_again(corpus, tmp_path, monkeypatch):
    out = tmp_path / 'out'
    run(corpus, out)
    units = sorted(out.glob('unit-*.json'))
    (out / 'metadata.json').unlink()
    units[1].unlink()
    made = []
    tokenise = prepare._tokenise_part
    monkeypatch.setattr(prepare, '_tokenise_part', lambda *a: (made.append(a[1]), tokenise(*a))[1])
    run(corpus, out)
    assert made == [1]


def test_finished_folder_is_read_only(corpus, tmp_path, monkeypatch):
    metadata = run(corpus, tmp_path / 'out')
    monkeypatch.delattr(prepare, '_tokenise_parts')
    assert run(corpus, tmp_path / 'out') == metadata


def test_metadata_counts_what_is_there(reference, corpus):
    metadata = json.loads((reference / 'metadata.json').read_text())
    entries = [entry for split in metadata['splits'].values() for entry in split]
    files = list(corpus.rglob('*.txt'))
    assert sum(entry['documents'] for entry in entries) == len(files)
    sizes = [path.stat().st_size for path in files]
    assert sum(entry['tokens'] for entry in entries) == sum(sizes) + len(files)
    assert max(entry['longest'] for entry in entries) == max(sizes)
    assert metadata['dtype'] == '<u2'
    assert metadata['vocab_size'] == 258


def test_empty_documents_are_left_out(tmp_path):
    rows = ['', 'one', '', 'two']
    (tmp_path / 'rows.jsonl').write_text(''.join(json.dumps({'text': r}) + '\n' for r in rows))
    source = JsonLines(str(tmp_path / 'rows.jsonl'))
    metadata = prepare.prepare(source, 'bytes', tmp_path / 'out', cache=tmp_path)
    entries = [entry for split in metadata['splits'].values() for entry in split]
    assert sum(entry['documents'] for entry in entries) == 2


def test_corpus_without_text_is_refused(tmp_path):
    (tmp_path / 'text').mkdir()
    (tmp_path / 'text' / 'empty.txt').touch()
    with pytest.raises(ValueError, match=r'data\.source: .* no file .*in it: 1 empty \(empty\.txt'):
        run(tmp_path / 'text', tmp_path / 'out')


@pytest.mark.parametrize('kind', [Text, JsonLines])
def test_a_folder_in_the_corpus_is_refused_unless_it_is_hidden(corpus, tmp_path, kind):
    copy = tmp_path / 'corpus'
    shutil.copytree(corpus, copy)
    (copy / 'a.jsonl').write_text('{"text": "a"}\n' * 20)
    source, scratch = kind(str(copy)), tmp_path / 'scratch'
    with pytest.raises(ValueError, match=r"data\.source: '.*corpus' holds '.*shards', into which"):
        prepare.prepare(source, 'bytes', copy / 'shards', cache=scratch)
    assert not (copy / 'shards').exists()
    for _ in range(2):  # the second finds the corpus as it was
        prepare.prepare(source, 'bytes', copy / '.shards', cache=scratch)


def test_a_corpus_that_changes_meanwhile_is_refused(corpus, tmp_path, monkeypatch):
    copy, out = tmp_path / 'corpus', tmp_path / 'out'
    shutil.copytree(corpus, copy)
    tokenise = prepare._tokenise_parts

    def edited(*given):
        tokenise(*given)
        (copy / 'more.txt').write_text('more ' * 100)

    monkeypatch.setattr(prepare, '_tokenise_parts', edited)
    with pytest.raises(ValueError, match='changed while they were tokenised; start again'):
        run(copy, out)
    assert not list(out.iterdir())
    monkeypatch.undo()
    run(copy, out)


def test_the_present_folder_is_taken(corpus, reference, tmp_path, monkeypatch):
    (tmp_path / 'here').mkdir()
    monkeypatch.chdir(tmp_path / 'here')
    run(corpus, pathlib.Path())
    assert contents(tmp_path / 'here') == contents(reference)


def test_folder_begun_for_something_else_is_refused(corpus, tmp_path):
    run(corpus, tmp_path / 'out')
    with pytest.raises(ValueError, match=r'begun for other .*part_bytes: 4000 there, 5000 now'):
        run(corpus, tmp_path / 'out', part_bytes=5000)


@pytest.mark.parametrize('workers', [1, 2])
def test_error_in_a_part_reaches_the_caller(tmp_path, workers):
    lines = [json.dumps({'text': 'words ' * 50}) + '\n' for _ in range(100)]
    (tmp_path / 'rows.jsonl').write_text(''.join([*lines, 'broken\n']))
    source = JsonLines(str(tmp_path / 'rows.jsonl'))
    with pytest.raises(ValueError, match='not a line of JSON'):
        prepare.prepare(
            source, 'bytes', tmp_path / 'out', cache=tmp_path, workers=workers, part_bytes=4000
        )
    assert not (tmp_path / 'out' / 'metadata.json').exists()


LIMITED = """
import resource, sys
from experiments.cli import prepare

resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
prepare.main(sys.argv[2:])
"""


@pytest.mark.parametrize('limit', [300, 1000, 70_000])
def test_shards_that_cannot_be_written_are_one_message_and_no_shards(corpus, tmp_path, limit):
    """A limit on the size of a file fails writes as a full disk does."""
    out = tmp_path / 'out'
    arguments = ['--source=text', f'--path={corpus}', f'--out={out}', '--workers=1']
    done = subprocess.run(
        [sys.executable, '-c', LIMITED, str(limit), *arguments],
        cwd=pathlib.Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1 and 'Traceback' not in done.stderr
    assert last.startswith('error: ') and str(out) in last and 'File too large' in last
    assert not list(out.glob('unit-*')) and not list(out.glob('metadata.json'))
    assert not list(out.glob('*.partial-*'))
    for folder in (out, tmp_path / 'whole'):
        run(corpus, folder, part_bytes=sources.PART_BYTES)
    assert contents(out) == contents(tmp_path / 'whole')


@pytest.mark.parametrize('content', ['', '{}', 'null', '[1]', '{"counts": {}}', '[' * 100_000])
def test_a_damaged_unit_is_made_again(corpus, reference, tmp_path, content):
    """A unit that said of fewer splits would take their documents away without a word."""
    out = tmp_path / 'out'
    shutil.copytree(reference, out)
    (out / 'metadata.json').unlink()
    unit = sorted(out.glob('unit-*.json'))[2]
    unit.write_text(content)
    run(corpus, out)
    assert contents(out) == contents(reference)


def test_a_plan_of_one_split_is_not_that_of_all(corpus, reference, tmp_path):
    out = tmp_path / 'out'
    shutil.copytree(reference, out)
    plan = json.loads((out / 'plan.json').read_text())
    (out / 'plan.json').write_text(json.dumps({**plan, 'split': 'train'}))
    with pytest.raises(ValueError, match=r"was begun for other .*split: 'train' there, None now"):
        run(corpus, out)


def test_a_folder_in_which_nothing_was_made_takes_other_settings(corpus, tmp_path):
    out = tmp_path / 'out'
    out.mkdir()
    (out / 'plan.json').write_text(json.dumps({'source': 'another'}))
    run(corpus, out)
    with pytest.raises(ValueError, match=r'begun for other data or settings .* or remove it'):
        run(corpus, out, part_bytes=2 * PART_BYTES)


@pytest.mark.parametrize('workers', [1, 2])
def test_text_that_is_no_utf_8_is_counted_in_a_warning(tmp_path, caplog, workers):
    tokenizer = tmp_path / 'tokenizer.json'
    tokenizer.write_text(hugging_face_json(['<s>', '</s>']))
    corpus = tmp_path / 'corpus'
    corpus.mkdir()
    for number in range(40):
        text = 'caf\u00e9 and more of it ' * 5
        (corpus / f'{number}.txt').write_bytes(text.encode('latin-1' if number % 2 else 'utf-8'))
    run(corpus, tmp_path / 'bytes', workers=workers)
    assert not caplog.records
    found = run(corpus, tmp_path / 'out', tokenizer=str(tokenizer), workers=workers)
    assert 'replaced' not in json.dumps(found)  # what is made of it is the same
    (warning,) = (each for each in caplog.records if 'special tokens' not in each.getMessage())
    assert '20 documents of' in warning.getMessage() and 'U+FFFD' in warning.getMessage()
