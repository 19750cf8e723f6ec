"""Retrieval maps, the share of keys found by length and depth, and samples of text evaluations."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.report.claims import shown
from experiments.report.heads import SHADES
from experiments.report.problems import Problem, noted
from experiments.report.workfolder import Recording, WorkFolder, relative

SAMPLES = 6  # of a record: half of them right, where there are so many
MOST_CELLS = 12_000  # of all maps of a work folder
LONGEST = 300  # characters of a field of a sample


@dataclasses.dataclass(frozen=True)
class RetrievalMap:
    """cells: [length][depth] of text and shade. facts: of the evaluation, in words. columns and
    samples: of a few rows of its samples.jsonl; out_of: how many rows that has."""

    names: tuple[str, ...]
    depths: tuple[str, ...]
    lengths: tuple[str, ...]
    cells: tuple[tuple[tuple[str, int], ...], ...]
    facts: str
    columns: tuple[str, ...]
    samples: tuple[tuple[str, ...], ...]
    out_of: int

    @property
    def compared(self) -> Any:
        return self.depths, self.lengths, self.cells, self.samples


def maps(folder: WorkFolder) -> list[RetrievalMap]:
    """Maps of all records with accuracy by length and depth. Records with samples alone have no
    cells. At most MOST_CELLS cells of all together."""
    left = MOST_CELLS
    found: list[RetrievalMap] = []
    for recording in folder.recordings:
        measure = recording.records.measures.get('accuracy')
        mapped = measure is not None and measure.axes == ('length', 'depth')
        if not mapped and not recording.samples:
            continue
        where = relative(recording.folder, folder.root)
        with noted(folder.problems, where):
            made = _map(recording, mapped)
            size = sum(map(len, made.cells))
            if size <= left:
                left -= size
                found.append(made)
                continue
            what = 'its retrieval map is not shown: the page has no room for it'
            folder.problems.append(Problem('left out', where, what))
            if made.samples:
                found.append(dataclasses.replace(made, cells=()))
    return found


def _map(recording: Recording, mapped: bool) -> RetrievalMap:
    depths: tuple[str, ...] = ()
    lengths: tuple[str, ...] = ()
    cells: tuple[tuple[tuple[str, int], ...], ...] = ()
    facts, records = recording.records.attributes, recording.records
    said = [
        f'{key.replace("_", " ")} {shown(facts[key])}'
        for key in ('template', 'tests', 'needles')
        if key in facts
    ]
    if mapped:
        accuracy_LD = np.asarray(records['accuracy'], np.float64)
        if not np.isfinite(accuracy_LD).all():
            raise ValueError('accuracy holds values that are not finite')
        high, wide = accuracy_LD.shape
        lengths = tuple(f'{int(n):,}' for n in records.along('length', high))
        depths = tuple(f'{100 * float(d):.0f}' for d in records.along('depth', wide))
        cells = tuple(
            tuple((f'{100 * x:.0f}', round(SHADES * min(max(x, 0.0), 1.0))) for x in row)
            for row in accuracy_LD.tolist()
        )
        if (len(lengths), len(depths)) != (high, wide):
            raise ValueError('its lengths and depths are not those of its accuracy')
        said = [f'mean {100 * accuracy_LD.mean():.1f} %', *said]
    rows = _chosen(recording.samples)
    columns = tuple(dict.fromkeys(key for row in rows for key in row))
    return RetrievalMap(
        names=recording.names,
        depths=depths,
        lengths=lengths,
        cells=cells,
        facts='; '.join([*said, str(facts.get('model', ''))]),
        columns=columns,
        samples=tuple(tuple(_field(row.get(key)) for key in columns) for row in rows),
        out_of=len(recording.samples),
    )


def _chosen(samples: tuple[Mapping[str, Any], ...]) -> list[Mapping[str, Any]]:
    """Wrong and right ones in turn, evenly over the file; by score where answers have one."""
    wrong = [row for row in samples if not _right(row)]
    right = [row for row in samples if _right(row)]
    half = SAMPLES // 2
    most = (max(half, SAMPLES - len(right)), max(half, SAMPLES - len(wrong)))
    return [row for rows, n in zip((wrong, right), most, strict=True) for row in _spread(rows, n)]


def _right(row: Mapping[str, Any]) -> bool:
    score = row.get('correct', row.get('score', 0))
    return isinstance(score, int | float) and score > 0.5


def _spread(rows: list[Mapping[str, Any]], most: int) -> list[Mapping[str, Any]]:
    count = min(most, len(rows))
    return [rows[k * len(rows) // count] for k in range(count)]


def _field(value: Any) -> str:
    text = shown(value)
    return text if len(text) <= LONGEST else f'{text[:LONGEST]}\N{HORIZONTAL ELLIPSIS}'
