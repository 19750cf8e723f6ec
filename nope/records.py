"""Measurements as named arrays: what an evaluation leaves and a figure reads.

A `Records` object is one evaluation of one model. Its arrays carry the names of their axes and a
unit, so that a figure never has to know where a number came from. On disk it is a folder with
`records.npz` (exact arrays) and `records.json` (format, attributes, axes, units). For people there
is one `<array>.csv` for every array of at most two axes without resamples. `records.json` has
checksums of `records.npz` and of itself, so that damage and arrays of other records are refused.
"""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import io
import json
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from nope.runtime import files

CSV_MAX_AXES = 2
RESAMPLE = 'resample'  # axis of what was measured on resamples of the same text or prompts
RESAMPLED = '_resampled'  # ends the name of a measure along it, beside the measure itself
# Attributes, nats: the entropy of what is scored by its frequencies alone, and where no measure has
# it the loss of the model inside the lengths of its training.
FLOOR, INSIDE = 'unigram_nats', 'inside_nats'

# Raise where names of measures, axes or attributes change. 2: `multiplier` for `scale`.
FORMAT = 2

CHECKSUM = 'npz_sha256'
SEAL = 'of_these'  # in records.json: a digest of what else is in it


def unigram_entropy(tokens: np.ndarray) -> float:
    """Nats a token, of integers of any shape, one at least: -sum p ln p over their own frequencies.

    No model that knows frequencies alone has a lower loss on these tokens, however it was trained
    (Gibbs). A model whose loss is not below shows no more than frequencies.
    """
    _, counts = np.unique(tokens, return_counts=True)
    p = counts / counts.sum()
    return float(-(p * np.log(p)).sum())


@dataclasses.dataclass(frozen=True)
class Measure:
    """One measured array: `values` with one axis name per dimension and a unit."""

    values: np.ndarray
    axes: tuple[str, ...]
    unit: str

    def __post_init__(self) -> None:
        if np.ndim(self.values) != len(self.axes):
            raise ValueError(
                f'a measure of {np.ndim(self.values)} dimensions needs as many axis names, '
                f'got {self.axes}'
            )

    def __repr__(self) -> str:
        return f'Measure({dict(zip(self.axes, np.shape(self.values), strict=True))}, {self.unit!r})'


@dataclasses.dataclass(frozen=True)
class Records:
    """Everything one evaluation measured.

    attributes: JSON-able facts (run_id, evaluation, train_length, length, windows, seed ...).
    measures:   name -> Measure.
    coordinates: axis name -> the values along it, e.g. 'position' -> 1..T. An axis without
        coordinates is counted from 0.
    """

    attributes: Mapping[str, Any]
    measures: Mapping[str, Measure]
    coordinates: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict, repr=False)

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.measures:
            raise KeyError(f'no measure {name!r}; these records hold {sorted(self.measures)}')
        return self.measures[name].values

    def along(self, axis: str, size: int) -> np.ndarray:
        """Coordinates of `axis`, or 0..size-1 where none were recorded."""
        return np.asarray(self.coordinates.get(axis, np.arange(size)))


def save(records: Records, folder: pathlib.Path) -> None:
    """Writes `records` into `folder` (made if missing), each file whole or not at all;
    `records.json` last, so that its presence means the others are there."""
    arrays: dict[str, Any] = {f'measure/{k}': m.values for k, m in records.measures.items()}
    arrays |= {f'coordinate/{k}': np.asarray(v) for k, v in records.coordinates.items()}
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    packed = stream.getvalue()
    files.write_bytes(folder / 'records.npz', packed)
    for name, measure in records.measures.items():
        axes, shape = measure.axes, measure.values.shape
        if len(shape) > CSV_MAX_AXES or RESAMPLE in axes:
            continue
        along = [records.along(axis, n) for axis, n in zip(axes, shape, strict=True)]
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow([*axes, f'{name} ({measure.unit})'])
        for index, value in np.ndenumerate(measure.values):
            row = [c[i].item() for c, i in zip(along, index, strict=True)]
            writer.writerow([*row, repr(float(value))])
        files.write_text(folder / f'{name}.csv', text.getvalue())
    description = {
        'format': FORMAT,
        CHECKSUM: hashlib.sha256(packed).hexdigest(),
        'attributes': dict(records.attributes),
        'measures': {
            k: {'axes': list(m.axes), 'unit': m.unit} for k, m in records.measures.items()
        },
    }
    sealed = {**description, SEAL: _digest(description)}
    files.write_json(folder / 'records.json', sealed)


def load(folder: pathlib.Path) -> Records:
    """Reads what `save` wrote. FileNotFoundError where the evaluation never finished, ValueError
    where it is of another format or damaged, naming the file."""
    path = folder / 'records.json'
    description = files.read_json(path)
    if description is None and not path.exists():
        raise FileNotFoundError(f'{path} is missing: the evaluation never finished')
    if not isinstance(description, dict):
        raise _damaged(path, 'it describes nothing')
    found = description.get('format', 1)
    if found != FORMAT:
        raise ValueError(
            f'{path} is of format {found!r:.100}; accepted is {FORMAT}. `nope run` with the '
            'config of its figure measures it again, from the run that is kept; then remove '
            f'{folder}'
        )
    if description.pop(SEAL, None) != _digest(description):
        raise _damaged(path, 'it is not what was written')
    packed_in = folder / 'records.npz'
    try:
        packed = packed_in.read_bytes()
    except FileNotFoundError as error:
        raise _damaged(packed_in, 'it is missing') from error
    if hashlib.sha256(packed).hexdigest() != description[CHECKSUM]:
        raise _damaged(packed_in, 'it has not the checksum that records.json says')
    with np.load(io.BytesIO(packed), allow_pickle=False) as opened:
        arrays = dict(opened)
    measures = {
        name: Measure(arrays[f'measure/{name}'], tuple(said['axes']), said['unit'])
        for name, said in description['measures'].items()
    }
    coordinates = {
        k.removeprefix('coordinate/'): array
        for k, array in arrays.items()
        if k.startswith('coordinate/')
    }
    return Records(description['attributes'], measures, coordinates)


def _digest(description: Mapping[str, Any]) -> str:
    text = json.dumps(description, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _damaged(path: pathlib.Path, why: str) -> ValueError:
    return ValueError(
        f'{path} is damaged: {why}; remove {path.parent}, and `nope run` with the config of '
        'its figure measures it again, from the run that is kept'
    )
