"""Fields of entries on the command line: names with slashes, and fields an entry has not yet."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from ml_collections import ConfigDict

from experiments import typed
from experiments.typed import Added, Place

CODE = """
import json, sys
from experiments import run
run.parse_flags(sys.argv)
print(json.dumps([run.CONFIG.value.evals.to_dict(), run.changed]))
"""


def config() -> ConfigDict:
    evals = {
        'tasks/': {'run': 'nope', 'part': {'beams': 5}},
        'grid_1/x': {'run': 'nope'},
        'grid_1': {'run': 'nope'},
    }
    made = ConfigDict({'evals': evals, 'runs': {'nope': {}}, 'exports': {}, 'train': {'steps': 3}})
    made.lock()
    return made


@pytest.mark.parametrize(
    ('path', 'place'),
    [
        ('evals.tasks/.run', Place('evals', 'tasks/', 'run')),
        ("evals['tasks/'].run", Place('evals', 'tasks/', 'run')),
        ('evals["tasks/"].part.beams', Place('evals', 'tasks/', 'part.beams')),
        ('evals.grid_1/x.run', Place('evals', 'grid_1/x', 'run')),
        ('evals.grid_1.run', Place('evals', 'grid_1', 'run')),
        ('runs.nope', Place('runs', 'nope', '')),
        ('runs.nopes.init', None),
        ("evals['tasks'].run", None),
        ('train.steps', None),
    ],
)
def test_an_entry_is_found_by_its_whole_name(path: str, place: Place | None) -> None:
    assert typed.place_of(config(), path) == place


def test_fields_that_are_there_are_left_to_ml_collections_and_others_are_added() -> None:
    arguments = [
        *('program', '--config=x.py:quick', '--config.train.steps=4'),
        *('--config.evals.tasks/.run=rope', '--config.evals.tasks/.part.beams=1'),
        *('--config.evals.tasks/.window=2.0', "--config.evals['grid_1/x'].part.limit=(1, 2)"),
        *('--config.runs.nope.init=hf:A=B', '--config.evals.other.run=x'),
    ]
    kept, added = typed.sort_out(config(), arguments)
    assert kept == [
        *arguments[:3],
        *("--config.evals['tasks/'].run=rope", "--config.evals['tasks/'].part.beams=1"),
        arguments[-1],
    ]
    assert added == (
        Added(Place('evals', 'tasks/', 'window'), 2.0),
        Added(Place('evals', 'grid_1/x', 'part.limit'), (1, 2)),
        Added(Place('runs', 'nope', 'init'), 'hf:A=B'),
    )
    changed = config()
    typed.add(changed, added)
    assert changed.evals['tasks/'].window == 2.0
    assert changed.evals['grid_1/x'].part.limit == (1, 2)
    assert changed.runs.nope.init == 'hf:A=B'


@pytest.mark.parametrize(
    ('argument', 'message'),
    [
        ('--config.evals.tasks/.window', r'write --config\.evals\.tasks/\.window=VALUE'),
        ('--config.evals.tasks/.run.x=1', r"evals\.tasks/\.run is 'nope', which has no fields"),
    ],
)
def test_what_cannot_be_added_is_named(argument: str, message: str) -> None:
    made = config()
    with pytest.raises(ValueError, match=message):
        typed.add(made, typed.sort_out(made, [argument])[1])


@pytest.mark.parametrize(
    ('text', 'value'),
    [('true', True), ('false', False), ('False', False), ('2.5', 2.5), ('a,b', 'a,b')],
)
def test_values_of_added_fields_are_read_as_flags_are(text: str, value: object) -> None:
    assert typed.read(text) == value and type(typed.read(text)) is type(value)


def test_the_command_line_reaches_every_entry_of_a_table() -> None:
    done = subprocess.run(
        [
            *(
                sys.executable,
                '-c',
                CODE,
                '--config=configs/first_paper/table1.py:quick',
                '--workdir=x',
            ),
            *('--config.evals.rope_tasks/.window=4.0', '--config.evals.nope_tasks/.run=rope'),
            "--config.evals['nope_tasks/'].harness.limit=2",
            '--config.evals.nope_tasks/.kind=None',
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    evals, changed = json.loads(done.stdout)
    assert evals['rope_tasks/'] == {'kind': 'harness', 'run': 'rope', 'window': 4.0}
    assert evals['nope_tasks/'] == {'kind': None, 'run': 'rope', 'harness': {'limit': 2}}
    assert set(changed) == {
        *('evals.rope_tasks/.window', 'evals.nope_tasks/.run', 'evals.nope_tasks/.harness.limit'),
        'evals.nope_tasks/.kind',
    }


def test_values_may_stand_behind_their_flags() -> None:
    given = ['run', '--config', 'a.py:quick', '--plan', '--config.train.length', 'None', '--x', 'y']
    assert typed.joined(given) == [
        'run', '--config=a.py:quick', '--plan', '--config.train.length=None', '--x', 'y'
    ]  # fmt: skip


@pytest.mark.parametrize('given', [['run', '--config'], ['run', '--config', '--workdir=w']])
def test_a_config_without_a_file_is_named(given: list[str]) -> None:
    with pytest.raises(ValueError, match=r'^--config names no file; accepted: '):
        typed.joined(given)
