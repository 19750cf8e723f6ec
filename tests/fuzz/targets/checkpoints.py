"""Folders of Orbax checkpoints: one file of the newest of two changed."""

from __future__ import annotations

import json
import pathlib
import shutil

from nope.checkpoints.errors import CheckpointError
from tests import tiny
from tests.checkpoints.manager_test import arrays_at, open_in, write
from tests.fuzz.case import Case, Target, attempt, expect, fresh
from tests.fuzz.mutation import Draw, choice, json_bytes, mutated


def _checkpoints(folder: pathlib.Path) -> Case:
    made = folder / 'made'
    write(made, 3, 6)
    newest = made / 'checkpoints' / '6'
    names = sorted(p.relative_to(made).as_posix() for p in newest.rglob('*') if p.is_file())
    homes = fresh(folder)

    def case(draw: Draw) -> bool:
        home = next(homes)
        shutil.copytree(made, home)
        path = home / choice(draw, names)
        kind, data = draw.integers(8), path.read_bytes()
        if kind == 0:
            path.unlink()
        elif kind < 4 and data[:1] == b'{':
            path.write_bytes(json_bytes(draw, json.loads(data)))
        elif kind < 7:
            path.write_bytes(mutated(draw, data, [data]))
        sound = kind == 7
        try:
            with open_in(home) as checkpoints:
                _, found = attempt(
                    lambda: checkpoints.restore(arrays_at(0)), home, also=(CheckpointError,)
                )
            expect(not isinstance(found, Exception) and found, f'nothing is restored: {found}')
            expect(found.step == 6 or not sound, 'a sound checkpoint is not taken')
            tiny.assert_same(found.arrays, arrays_at(found.step))
            expect(found.data == {'examples': 10 * found.step}, f'{found.data}')
            aside = (home / 'damaged' / '6').is_dir()
            expect(aside == (found.step == 3), 'a damaged checkpoint is not set aside')
        finally:
            shutil.rmtree(home)
        return found.step == 6

    return case


TARGETS = (Target('checkpoints.folder', 20, _checkpoints),)
