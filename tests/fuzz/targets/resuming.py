"""What a run finds of its earlier attempts: metrics, times, leases, where its parts are."""

from __future__ import annotations

import contextlib
import json
import math
import pathlib
from typing import Any
from unittest import mock

from nope.checkpoints import folders, lease
from nope.checkpoints.errors import CheckpointError
from nope.checkpoints.lease import Lease
from nope.interop import Described
from nope.interop.run_folder import BASE_MODEL, name_base_model, read_run, write_run
from nope.runtime.files import BusyError
from nope.training import metrics
from nope.training.goodput import Goodput
from nope.training.reporting import BAD_STEPS, read_bad_steps
from tests import tiny
from tests.fuzz.case import Case, Target, attempt, expect
from tests.fuzz.mutation import Draw, choice, json_bytes, mutated, one_in

ROWS = [{'step': 10 * i, 'loss': 5 - 0.1 * i, 'grad_norm': float('nan')} for i in range(1, 20)]
LINES = [json.dumps(row).encode() for row in ROWS]


def _rows_of(data: bytes) -> list[Any]:
    """Rows of whole and of broken lines, by a reader of its own."""
    rows = []
    for line in data.split(b'\n'):
        with contextlib.suppress(ValueError, RecursionError):
            row = json.loads(line.decode())
            if isinstance(row, dict) and type(row.get('step')) is int:
                rows.append(row)
    return rows


def _metrics(folder: pathlib.Path) -> Case:
    """Rows up to the step of the checkpoint stay, each in its place; nothing ends the run."""
    path = folder / metrics.JSONL

    def case(draw: Draw) -> bool:
        lines = list(LINES)
        if draw.integers(2):
            number = int(draw.integers(len(lines)))
            lines[number] = json_bytes(draw, ROWS[number])
        data = b'\n'.join(lines) + b'\n'
        if draw.integers(2):
            data = mutated(draw, data, [data])
        path.write_bytes(data)
        with mock.patch.object(metrics, 'EventsWriter'):  # event files begin anew
            writer = metrics.MetricsWriter(folder, 100)
            writer.write(110, {'loss': 1.0})
            writer.close()
        kept = [row for row in _rows_of(data) if row['step'] <= 100]
        found = metrics.read(folder)
        expect(repr(found) == repr([*kept, {'step': 110, 'loss': 1.0}]), 'other rows')
        whole = len(_rows_of(data)) == data.count(b'\n')
        aside = list(folder.glob('metrics.damaged-*'))
        expect(whole or aside or not data.endswith(b'\n'), 'damage is not kept')
        for copy in aside:
            copy.unlink()
        return True

    return case


def _goodput(folder: pathlib.Path) -> Case:
    """Times are for people: what cannot be read is counted anew, and never ends a run."""
    sound = {'attempts': 2, 'goodput': 0.5, 'seconds': {'other': 1.0, 'step': 1.0}, 'steps': 7}
    path = folder / 'goodput.json'

    def case(draw: Draw) -> bool:
        path.write_bytes(json_bytes(draw, sound))
        times = Goodput(folder)
        with times.time('step'):
            times.step_done()
        times.write()
        found = json.loads(path.read_text())
        numbers = [found['attempts'], found['steps'], found['goodput'], *found['seconds'].values()]
        fine = all(isinstance(n, int | float) and 0 <= n < math.inf for n in numbers)
        expect(fine and found['attempts'] >= 1 and found['goodput'] <= 1, f'{found!r:.300}')
        return True

    return case


def _bad_steps(folder: pathlib.Path) -> Case:
    path = folder / BAD_STEPS
    rows = [{'step': i, 'examples': [8 * i, 8 * i + 7], 'loss': 'nan'} for i in range(5)]

    def case(draw: Draw) -> bool:
        lines = [json.dumps(row).encode() for row in rows]
        if draw.integers(2):
            number = int(draw.integers(len(lines)))
            lines[number] = json_bytes(draw, rows[number])
        data = b'\n'.join(lines) + b'\n'
        path.write_bytes(mutated(draw, data, [data]) if draw.integers(2) else data)
        accepted, found = attempt(lambda: read_bad_steps(folder), path)
        if accepted:
            expect(all(isinstance(row, dict) for row in found), f'{found!r:.200}')
        return accepted

    return case


def _owner(folder: pathlib.Path) -> Case:
    """The file of a lease: it is taken, or someone holds it."""
    path = folder / 'owner.json'
    found = {'token': 'theirs', 'pid': 7, 'host': 'far', 'boot': '', 'pids': '', 'beats': 3}
    here = {**found, **lease._here(), 'pid': 2**22 + 1}

    def case(draw: Draw) -> bool:
        lease._sightings.clear()
        path.write_bytes(json_bytes(draw, choice(draw, (found, here))))

        def take() -> bool:
            try:
                with Lease(path, beat=0.5, silence=60, settling=0.05, wait=False) as held:
                    held.check()
            except BusyError as error:
                expect(str(folder) in str(error), f'{error}')
                return False
            return True

        return bool(attempt(take, path)[1])

    return case


def _places(folder: pathlib.Path) -> Case:
    """Files that say where a run's checkpoints and its base model are, and what it is."""
    model = tiny.model(attention=None)
    home = folder / 'runs' / 'run'
    write_run(home, Described(model, 16), tiny.variables(model), tiny.mesh(), {'path': 'x'})
    (home / folders.ELSEWHERE).write_text(json.dumps({'folder': str(home / 'checkpoints')}))
    name_base_model(home, folder / 'runs' / 'base')
    texts = {name: (home / name).read_bytes() for name in (folders.ELSEWHERE, BASE_MODEL)}
    texts['spec.json'] = (home / 'spec.json').read_bytes()
    (home / BASE_MODEL).unlink()

    def case(draw: Draw) -> bool:
        name = choice(draw, sorted(texts))
        sound = one_in(draw, 10)
        data = texts[name] if sound else json_bytes(draw, json.loads(texts[name]))
        (home / name).write_bytes(data)
        try:
            accepted, found = attempt(
                lambda: read_run(home, tiny.mesh()), home, name, also=(CheckpointError,)
            )
        finally:
            if name == BASE_MODEL:
                (home / name).unlink()
            else:
                (home / name).write_bytes(texts[name])
        expect(accepted or not sound or name == BASE_MODEL, f'a sound run is refused: {found}')
        if accepted:
            tiny.assert_same(found.variables, tiny.variables(model))
        return accepted

    return case


TARGETS = (
    Target('resuming.metrics', 700, _metrics),
    Target('resuming.goodput', 700, _goodput),
    Target('resuming.bad_steps', 600, _bad_steps),
    Target('resuming.owner', 400, _owner),
    Target('resuming.places', 20, _places),
)
