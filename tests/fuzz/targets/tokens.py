"""Token shards, and preparations that were stopped and go on."""

from __future__ import annotations

import json
import pathlib
import shutil
from typing import Any

import numpy as np

from nope.data import DataConfig, prepare, shards, stores
from nope.data.sources import JsonLines, Shards
from tests.fuzz.case import Case, Target, attempt, expect, fresh
from tests.fuzz.mutation import Draw, choice, json_bytes, mutated, one_in

ROWS = [f'document {i} ' * (i % 9 + 1) for i in range(40)]


def prepared(folder: pathlib.Path) -> tuple[pathlib.Path, JsonLines]:
    """A folder of token shards of several parts, and what they were made of."""
    lines = folder / 'corpus.jsonl'
    lines.write_text(''.join(json.dumps({'text': row}) + '\n' for row in ROWS))
    source, out = JsonLines(str(lines)), folder / 'prepared'
    prepare.prepare(source, 'bytes', out, cache=folder, part_bytes=700, progress=False)
    return out, source


def _read(folder: pathlib.Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    config = DataConfig((Shards(str(folder)),))
    config.sources[0].identity()
    store = stores.open_store(config, 0, 'train', folder / 'cache')
    starts, lengths = store.document_spans()
    whole = store.windows(np.asarray([0]), store.tokens)[0]
    expect(store.begins(np.asarray([0]), store.tokens).sum() == len(starts), 'other first tokens')
    return whole, starts, lengths


def _plainly(out: pathlib.Path, metadata: Any) -> np.ndarray:
    """The train stream that the metadata list, of the shards as they were written."""
    from array_record.python import array_record_module

    pieces = []
    for entry in metadata['splits']['train']:
        stem = shards.shard_stem('train', entry['part'], metadata['parts'])
        reader = array_record_module.ArrayRecordReader(str(out / f'{stem}.array_record'))
        pieces += [np.frombuffer(page, '<u2') for page in reader.read_all()]
        reader.close()
    return np.concatenate(pieces)


def _shards(folder: pathlib.Path) -> Case:
    out, _ = prepared(folder)
    files = {p.name: p.read_bytes() for p in out.iterdir()}
    names = [name for name in files if not name.startswith(('unit', 'plan'))]
    names = [name for name in names if not name.startswith(('validation', 'test'))]
    shards_of = [name for name in names if name != 'metadata.json']
    original = _read(out)
    homes = fresh(folder)

    def case(draw: Draw) -> bool:
        name = 'metadata.json' if draw.integers(3) == 0 else choice(draw, shards_of)
        sound = one_in(draw, 16)
        data = files[name]
        if not sound and name == 'metadata.json':
            data = json_bytes(draw, json.loads(data))
        elif not sound:
            data = mutated(draw, data, [files[choice(draw, shards_of)]])
        home = next(homes)
        shutil.copytree(out, home)
        (home / name).write_bytes(data)
        try:
            accepted, found = attempt(lambda: _read(home), home)
        finally:
            shutil.rmtree(home)
        expect(accepted or not sound, f'sound shards are refused: {found}')
        if accepted and not all(map(np.array_equal, found, original)):
            expect(name == 'metadata.json', f'{name}: other tokens than were written')
            expect(np.array_equal(found[0], _plainly(out, json.loads(data))), 'other tokens')
        return accepted

    return case


def _restarts(folder: pathlib.Path) -> Case:
    """A preparation without its metadata goes on from a plan and units of which one is changed."""
    out, source = prepared(folder)
    metadata = (out / 'metadata.json').read_bytes()
    (out / 'metadata.json').unlink()
    files = {p.name: p.read_bytes() for p in out.iterdir()}
    names = [name for name in files if name.startswith(('unit', 'plan'))]
    homes = fresh(folder)

    def case(draw: Draw) -> bool:
        name = choice(draw, names)
        sound = one_in(draw, 16)
        data = files[name] if sound else json_bytes(draw, json.loads(files[name]))
        home = next(homes)
        shutil.copytree(out, home)
        (home / name).write_bytes(data)
        try:
            accepted, found = attempt(lambda: _go_on(home, source, folder), home)
        finally:
            shutil.rmtree(home)
        expect(accepted or not sound, f'a sound plan is refused: {found}')
        if accepted:
            known = json.loads(metadata)
            same = {**found, 'description': known['description']} == known
            expect(same, f'{name}: other metadata: {data[:200]!r}')
        return accepted

    return case


def _go_on(home: pathlib.Path, source: JsonLines, folder: pathlib.Path) -> Any:
    return prepare.prepare(source, 'bytes', home, cache=folder, part_bytes=700, progress=False)


TARGETS = (
    Target('tokens.shards', 600, _shards),
    Target('tokens.restarts', 150, _restarts),
)
