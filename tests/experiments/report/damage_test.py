"""Damaged files: a row with the file's name among the problems, and all else is shown."""

from __future__ import annotations

import json
import pathlib
import random
import shutil

import numpy as np
import pytest

from experiments.report import page
from nope import records
from nope.records import Measure, Records
from nope.runtime import files
from tests.experiments.figures import synthetic
from tests.experiments.report import work
from tests.experiments.report.work import Page

DAMAGED = (
    *('figures/fig5/summary.json', 'figures/fig5/inputs.json', 'figures/fig5/spec.json'),
    *('figures/fig5/fig5.png', 'records/lengths-512-0/records.json'),
    *('records/lengths-512-0/records.npz', 'records/passkey-4096-5/samples.jsonl'),
    *(f'runs/{work.RUN}/metrics.jsonl', f'runs/{work.RUN}/bad_steps.jsonl'),
    *(f'runs/{work.RUN}/goodput.json', f'runs/{work.RUN}/spec.json', f'runs/{work.RUN}/done.json'),
)
CONTENTS = {
    'noise': b'\x00\xff{]\n{"a": 1\n\n\x89PNG',
    'list': b'[1, 2]\n[3]\n',
    'deep': b'[' * 100_000 + b'\n[]\n',
    'empty': b'\n\n',
}


@pytest.fixture(scope='module')
def made(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return work.make(tmp_path_factory.mktemp('work'))


@pytest.fixture
def root(made: pathlib.Path, tmp_path: pathlib.Path) -> pathlib.Path:
    return pathlib.Path(shutil.copytree(made, tmp_path / 'work'))


def problems(root: pathlib.Path) -> str:
    return Page(page.render([root], root / 'report.html')).text['problems']


@pytest.mark.parametrize('content', CONTENTS)
@pytest.mark.parametrize('name', DAMAGED)
def test_a_damaged_file_is_named(name: str, content: str, root: pathlib.Path) -> None:
    (root / name).write_bytes(CONTENTS[content])
    told = problems(root)
    where = pathlib.PurePath(name)
    assert name in told or str(where.parent) in told


@pytest.mark.parametrize('name', DAMAGED)
def test_a_folder_in_the_place_of_a_file_is_named(name: str, root: pathlib.Path) -> None:
    (root / name).unlink()
    (root / name).mkdir()
    assert str(pathlib.PurePath(name).parent) in problems(root)


def test_a_line_cut_short_by_a_kill_is_no_damage(root: pathlib.Path) -> None:
    path = root / 'runs' / work.RUN / 'metrics.jsonl'
    path.write_bytes(path.read_bytes()[:-9])
    assert 'metrics.jsonl' not in problems(root)


def test_records_of_another_checksum_are_named(root: pathlib.Path) -> None:
    path = root / 'records/positions-256-nope/records.npz'
    other = root / 'records/positions-256-headscale/records.npz'
    path.write_bytes(other.read_bytes())
    told = problems(root)
    assert 'has not the checksum that records.json says' in told
    assert "its records of 'nope' (records/positions-256-nope) are not readable here" in told


NAN = np.full((2, 2, 8), np.nan)
ODD = {
    'not_finite': {'entropy': Measure(NAN, ('layer', 'head', 'position'), 'nats')},
    'no_positions': {'entropy': Measure(NAN[..., :0], ('layer', 'head', 'position'), 'nats')},
    'falling': {'entropy': Measure(0 * NAN, ('layer', 'head', 'position'), 'nats')},
    'loss': {'loss': Measure(NAN[0, 0], ('position',), 'nats')},
    'map': {'accuracy': Measure(NAN[0], ('length', 'depth'), '')},
    'short_map': {'accuracy': Measure(np.ones((2, 3)), ('length', 'depth'), '')},
}


@pytest.mark.parametrize('name', ODD)
def test_whole_records_of_impossible_values_are_named(
    name: str, root: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, 'CSV_MAX_AXES', 0)  # a table of them cannot be written
    position = np.arange(1, 9)[:: -1 if name == 'falling' else 1]
    along = {'position': position, 'length': np.arange(2), 'depth': np.arange(8)}
    facts = {**synthetic.attributes(), 'evaluation': 'positions'}
    odd = Records(facts, ODD[name], along)
    records.save(odd, root / 'records' / name)
    assert f'records/{name}' in problems(root)


def test_records_without_facts_are_shown_or_named(root: pathlib.Path) -> None:
    for name, facts in (('none', {}), ('odd', {'train_length': 'x', 'evaluation': ['lengths']})):
        made = synthetic.positions_records(64)
        records.save(Records(facts, made.measures, made.coordinates), root / 'records' / name)
        assert f'records/{name}' in problems(root)


CLAIM = {
    'id': 'onset', 'number': 2, 'paper': '', 'measured': {}, 'holds': None, 'statement': '',
    'verdict': 'undecided',
}  # fmt: skip


@pytest.mark.parametrize(
    'claims', [{'a': 1}, [1], [None], [{}], [CLAIM | {'verdict': '<b>'}], [CLAIM | {'number': [1]}]]
)
def test_claims_of_another_form_are_named(claims: object, root: pathlib.Path) -> None:
    files.write_json(root / 'figures/fig5/summary.json', {'claims': claims})
    assert 'figures/fig5/summary.json' in problems(root)


@pytest.mark.parametrize('seed', range(20))
def test_no_flipped_byte_ends_the_command(seed: int, root: pathlib.Path) -> None:
    """Of any three files, at any place; whether it is found depends on what it says."""
    chance = random.Random(seed)
    paths = sorted(path for path in root.rglob('*') if path.is_file() and path.suffix != '.pdf')
    for path in chance.sample(paths, 3):
        data = bytearray(path.read_bytes())
        if data:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            path.write_bytes(bytes(data))
    page.render([root], root / 'report.html')


@pytest.mark.parametrize('value', [None, [], {}, 'x', 1e400, -1, True, [[[]]], {'a': {'b': []}}])
def test_no_json_value_in_the_place_of_another_ends_the_command(
    value: object, root: pathlib.Path
) -> None:
    """In the place of every value of the top level, all files at once."""
    for path in sorted(root.rglob('*.json')):
        if path.name == 'records.json':
            continue
        changed = dict.fromkeys(json.loads(path.read_text()), value)
        path.write_text(json.dumps(changed))
    for path in sorted(root.rglob('*.jsonl')):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        work.lines(path, [dict.fromkeys(row, value) for row in rows])
    page.render([root], root / 'report.html')
