"""Work folders for tests: one figure with its claims, and records and runs of every section."""

from __future__ import annotations

import html.parser
import json
import os
import pathlib
from typing import Any

from experiments import draw, homes
from nope import records
from nope.records import Records
from nope.runtime import files
from tests.experiments.figures import synthetic

RUN = 'nope-64-4x64-seed0-0123456789ab'
UNFINISHED = 'rope-64-4x64-seed0-aaaaaaaaaaaa'
SETTINGS = {'name': 'fig5', 'train.steps': 600, 'seeds': [0], 'model.layers': 4}


def make(root: pathlib.Path) -> pathlib.Path:
    """A work folder in `root`: `fig5` drawn from two records of entropy by head, three seeds of
    loss by length, a passkey's map with samples, a finished run and an unfinished one."""
    figure(root)
    for seed in range(3):
        made = synthetic.length_records(synthetic.PILOT['base'], seed)
        save(root, f'lengths-512-{seed}', made)
    link(root, 'curves', {f'base/seed{i}': f'lengths-512-{i}' for i in range(3)})
    save(root, 'passkey-4096-5', synthetic.passkey_records())
    lines(root / 'records/passkey-4096-5/samples.jsonl', samples())
    run(root, RUN, steps=2400, bad_steps=[30])
    run(root, UNFINISHED, steps=2400, rows=50, done=False)
    return root


def figure(root: pathlib.Path) -> pathlib.Path:
    """`fig5`, drawn after its records were written."""
    given = synthetic.INPUTS['multiplier_entropy']
    sources = {name: root / 'records' / f'positions-256-{name}' for name in given.records}
    for name, source in sources.items():
        save(root, source.name, given.records[name])
    folder = root / 'figures' / 'fig5'
    draw.write_inputs(folder, 'fig5', {'kind': 'multiplier_entropy', **given.options}, sources)
    draw.draw(folder)
    files.write_json(folder / homes.SPEC, {homes.SETTINGS: SETTINGS})
    return folder


def save(root: pathlib.Path, slug: str, made: Records) -> pathlib.Path:
    """Records an hour older than what is drawn of them."""
    folder = root / 'records' / slug
    records.save(made, folder)
    for path in folder.iterdir():
        os.utime(path, (path.stat().st_atime, path.stat().st_mtime - 3600))
    return folder


def link(root: pathlib.Path, name: str, sources: dict[str, str]) -> pathlib.Path:
    """The folder of a figure that was not drawn."""
    folder = root / 'figures' / name
    paths = {record: root / 'records' / slug for record, slug in sources.items()}
    draw.write_inputs(folder, name, {'kind': 'length_curves'}, paths)
    return folder


def samples() -> list[dict[str, Any]]:
    return [
        {'key': f'256/0.{d}/0', 'length': 256, 'depth': d / 10, 'correct': d % 2 == 0, 'matched': d}
        for d in range(10)
    ]


def run(
    root: pathlib.Path,
    slug: str,
    *,
    steps: int,
    rows: int = 240,
    bad_steps: list[int] | None = None,
    done: bool = True,
) -> pathlib.Path:
    folder = root / 'runs' / slug
    logged = [
        {'step': 10 * k, 'loss': 1 + 4 / k, 'mfu': 0.25, 'tokens_per_second': 20_000.0}
        for k in range(1, rows + 1)
    ]
    lines(folder / 'metrics.jsonl', logged)
    if bad_steps:
        bad = [{'step': s, 'loss': 'nan', 'grad_norm': 1.0, 'action': 'skipped'} for s in bad_steps]
        lines(folder / 'bad_steps.jsonl', bad)
    source = {'kind': 'stdlib', 'digest': '7bf8889e', 'python': '3.11.7', 'weight': 1.0}
    spec = {'type': 'RunSpec', 'train': {'steps': steps}, 'data': {'sources': [source]}}
    files.write_json(folder / 'spec.json', spec)
    goodput = {'attempts': 2, 'steps': steps, 'seconds': {'step': 9.0}, 'goodput': 0.9}
    files.write_json(folder / 'goodput.json', goodput)
    if done:
        files.write_json(folder / 'done.json', {'seconds': 190.0, 'steps': steps})
    return folder


def lines(path: pathlib.Path, rows: list[dict[str, Any]]) -> None:
    files.write_text(path, ''.join(json.dumps(row) + '\n' for row in rows))


class Page(html.parser.HTMLParser):
    """What a browser would make of a page. tags: (name, attributes) in order. open_at_end: tags
    that were not closed. text: of each section by its id. scripts: attributes and text of each."""

    VOID = ('meta', 'img', 'br', 'wbr', 'input', 'link')

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open_at_end: list[str] = []
        self.text: dict[str, str] = {}
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.style = ''
        self._section = ''
        self.feed(data.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open_at_end.append(tag)
        if tag == 'section':
            self._section = str(dict(attrs)['id'])
        if tag == 'script':
            self.scripts.append((dict(attrs), ''))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open_at_end.pop() == tag
        self._section = '' if tag == 'section' else self._section

    def handle_data(self, data: str) -> None:
        inside = self.open_at_end[-1] if self.open_at_end else ''
        if inside == 'style':
            self.style += data
        elif inside == 'script':
            attributes, before = self.scripts[-1]
            self.scripts[-1] = (attributes, before + data)
        self.text[self._section] = self.text.get(self._section, '') + data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]
