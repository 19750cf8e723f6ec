"""Work folders: records, specs, and what a figure is drawn from."""

from __future__ import annotations

import hashlib
import json
import pathlib
from typing import Any

import numpy as np

from experiments import draw as figure
from experiments.build import build
from experiments.homes import take_figure, take_home
from experiments.plan import make_plan
from experiments.specs import identity
from experiments.workspace import Workspace
from nope import records
from nope.runtime.files import write_json
from tests.experiments.build_test import config_of
from tests.experiments.figures.synthetic import INPUTS
from tests.fuzz.case import Case, Target, attempt, expect
from tests.fuzz.mutation import Draw, choice, json_bytes, mutated, one_in
from tests.records_test import example

NPZ, JSON = 'records.npz', 'records.json'


def _records(folder: pathlib.Path) -> Case:
    """With a checksum of the arrays, as they are written; without, as older ones; with the one of
    the changed arrays, so that these are looked into."""
    records.save(example(), folder)
    whole = {name: (folder / name).read_bytes() for name in (NPZ, JSON)}
    description = json.loads(whole[JSON])
    unmarked = {k: v for k, v in description.items() if k != records.CHECKSUM}
    original = records.load(folder)

    def case(draw: Draw) -> bool:
        arrays, text = whole[NPZ], whole[JSON]
        kind = draw.integers(8)
        if kind < 4 and kind:
            arrays = mutated(draw, arrays, [arrays])
            sums = {records.CHECKSUM: hashlib.sha256(arrays).hexdigest()}
            text = json.dumps(choice(draw, (description, unmarked, unmarked | sums))).encode()
        elif kind:
            text = json_bytes(draw, choice(draw, (description, unmarked)))
        (folder / NPZ).write_bytes(arrays)
        (folder / JSON).write_bytes(text)
        accepted, found = attempt(lambda: records.load(folder), folder)
        expect(accepted or kind, f'sound records are refused: {found}')
        if accepted:
            _check(found, original, json.loads(text))
        return accepted

    return case


def _check(found: records.Records, original: records.Records, text: Any) -> None:
    """What the text lists, with the values of the file."""
    expect(found.measures.keys() == dict(text['measures']).keys(), 'other measures than listed')
    for name, measure in found.measures.items():
        same = name in original.measures
        same = same and np.array_equal(measure.values, original[name], equal_nan=True)
        expect(same, f'other values of {name}')
        expect(all(isinstance(axis, str) for axis in measure.axes), f'axes {measure.axes}')
        expect(isinstance(measure.unit, str), f'unit {measure.unit!r}')
    for axis, values in found.coordinates.items():
        expect(np.array_equal(values, original.coordinates.get(axis)), f'coordinates {axis}')


def _inputs(folder: pathlib.Path) -> Case:
    """inputs.json, or the records.json of one of its records; drawn to the end where it can be."""
    homes, texts = [], {}
    for kind in ('multiplier_entropy', 'uniform_fit', 'perplexity_table'):
        given = INPUTS[kind]
        sources = {name: folder / kind / 'records' / name for name in given.records}
        for name, source in sources.items():
            records.save(given.records[name], source)
            texts[source / JSON] = (source / JSON).read_bytes()
        home = folder / kind / 'figures' / given.name
        figure.write_inputs(home, given.name, {'kind': kind, **given.options}, sources)
        texts[home / 'inputs.json'] = (home / 'inputs.json').read_bytes()
        homes.append(home)

    def case(draw: Draw) -> bool:
        home = choice(draw, homes)
        below = [path for path in texts if path.is_relative_to(home.parents[1])]
        path = home / 'inputs.json' if draw.integers(2) else choice(draw, below)
        path.write_bytes(json_bytes(draw, json.loads(texts[path])))
        names = (home.parents[1], 'figure')
        try:
            return attempt(lambda: figure.redraw(home), *names)[0]
        finally:
            path.write_bytes(texts[path])

    return case


def _homes(folder: pathlib.Path) -> Case:
    """spec.json and the mark of the end of every kind of piece, and the spec of a figure."""
    experiment = build(config_of('fig4'))
    workspace = Workspace(folder)
    wanted = list(experiment.evals.values())
    texts = {}
    for spec in make_plan(workspace, wanted).missing:
        take_home(workspace.folder(spec), identity(spec))
        write_json(workspace.folder(spec) / spec.finished, {'steps': 1})
        texts[workspace.folder(spec) / 'spec.json'] = identity(spec)
        texts[workspace.folder(spec) / spec.finished] = {'steps': 1}
    home = workspace.figure('fig4')
    take_figure(home, experiment.settings)
    texts[home / 'spec.json'] = json.loads((home / 'spec.json').read_text())

    def look() -> int:
        plan = make_plan(workspace, wanted)
        take_figure(home, experiment.settings)
        return len(plan.missing)

    expect(look() == 0, 'finished pieces are missing')

    def case(draw: Draw) -> bool:
        path = choice(draw, list(texts))
        sound = one_in(draw, 16)
        whole = path.read_bytes()
        if not sound:
            path.write_bytes(json_bytes(draw, texts[path]))
        try:
            accepted, found = attempt(look, path.parent)
            read = json.loads(path.read_bytes()) if accepted else None
        finally:
            path.write_bytes(whole)
        expect(accepted or not sound, f'a sound folder is refused: {found}')
        if accepted and path.name == 'spec.json':
            same = json.dumps(read, sort_keys=True) == json.dumps(texts[path], sort_keys=True)
            expect(same or read == texts[path] or _same(read, texts[path]), f'{read!r:.300}')
        return accepted

    return case


def _same(found: Any, wanted: Any) -> bool:
    """Equal but for nulls that are left out, and lists for tuples."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        keys = {*found, *wanted}
        return all(_same(found.get(key), wanted.get(key)) for key in keys)
    if isinstance(found, list) and isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(_same, found, wanted))
    return bool(found == wanted)


TARGETS = (
    Target('results.records', 600, _records),
    Target('results.inputs', 20, _inputs),
    Target('results.homes', 150, _homes),
)
