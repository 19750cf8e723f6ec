"""Input, output and files of a figure.

A figure is a pure function from records to a `FigureOutput`; nothing here or below knows a
model, a config file or a run. Checks of the input come before anything is drawn and name
the figure, the record and what is missing.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import pathlib
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from experiments.figures.claims.decided import Decided as Claim
from experiments.figures.look import mpl, natural, style
from nope.records import Records
from nope.runtime.files import write_bytes, write_text

Measures = Mapping[str, Mapping[str, tuple[str, ...]]]

# Pictures that are written. matplotlib drops a metadata entry that is None; by default it would
# store date and version.
METADATA: Mapping[str, dict[str, None]] = {
    'png': {'Software': None},
    'pdf': {'CreationDate': None},
}

# The arrays that several figures rely on, by evaluation: measure -> axes. A figure that reads
# another evaluation, or other arrays, says so itself (`check_records`).
MEASURES: Measures = {
    'positions': {
        'loss': ('position',),
        'loss_std': ('position',),
        'entropy': ('layer', 'head', 'position'),
        'multiplier': ('layer', 'head'),
    },
    'lengths': {
        'loss_window': ('length',),
        'loss_tail': ('length',),
        'multiplier_mean': ('length',),
    },
    'perplexity': {
        'loss': ('length',),
        'perplexity': ('length',),
        'windows': ('length',),
        'documents': ('length',),
    },
    # Its other arrays are NaN where no token is key.
    'longppl': {'key_tokens': ('length',)},
    'passkey': {'accuracy': ('length', 'depth'), 'tokens': ('length',)},
    'longbench': {'score': ('dataset',), 'samples': ('dataset',)},
}


@dataclasses.dataclass(frozen=True)
class FigureInput:
    """name: file name of the figure, e.g. 'fig1'. records: by the name the config gives them.
    options: the figure's own options (panels, labels, layers to show)."""

    name: str
    records: Mapping[str, Records]
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class FigureOutput:
    """rows: the numbers behind the picture in tidy long form, all with the same keys.
    runs: record name -> run_id of the run it came from. markdown: the same as a text that is
    read without the picture, as tables have; '' where there is none."""

    name: str
    figure: mpl.Figure
    rows: list[dict[str, Any]]
    caption: str
    claims: list[Claim]
    runs: Mapping[str, str] = dataclasses.field(default_factory=dict)
    markdown: str = ''


def check_options(
    figure: str,
    options: Mapping[str, Any],
    accepted: Collection[str],
    needed: Collection[str] = (),
    where: str = 'options',
) -> None:
    """ValueError, naming the figure, for an unknown or a missing key of `options`, which are
    the figure's options or one entry of them, told by `where`."""
    for key in options:
        if key not in accepted:
            raise ValueError(
                f'figure {figure!r}: unknown key {key!r} in {where}; accepted: {sorted(accepted)}'
            )
    for key in needed:
        if not options.get(key):
            raise ValueError(
                f'figure {figure!r}: {where} must give {key!r}, got {options.get(key)!r}'
            )


def check_choice(figure: str, key: str, value: Any, accepted: Collection[Any]) -> None:
    if value not in accepted:
        raise ValueError(
            f'figure {figure!r}: {key} must be one of {sorted(accepted)}, got {value!r}'
        )


def names_below(given: FigureInput, name: str) -> list[str]:
    """The records that `name` stands for: those below it, in order, where it ends in '/'."""
    if name.endswith('/'):
        return sorted((k for k in given.records if k.startswith(name)), key=natural.order)
    return [name] if name in given.records else []


def check_records(
    given: FigureInput, needs: Mapping[str, str], measures: Measures = MEASURES
) -> None:
    """Checks that each needed record is there and holds the arrays that the figure reads.

    needs: record name -> evaluation. A name that ends in '/' stands for one record or more
    below it. measures: the arrays, by evaluation. Raises ValueError naming the figure, the record
    and what was found.
    """
    for name, evaluation in needs.items():
        found = names_below(given, name)
        if not found:
            raise ValueError(
                f'figure {given.name!r} needs the run {name!r} (evaluation {evaluation!r}), which '
                f'is missing; there are records of {sorted(given.records)}'
            )
        for key in found:
            _check_record(given, key, evaluation, measures[evaluation])


def _check_record(
    given: FigureInput, key: str, evaluation: str, measures: Mapping[str, tuple[str, ...]]
) -> None:
    records = given.records[key]
    where = f'figure {given.name!r}, run {key!r}'
    actual = records.attributes.get('evaluation')
    if actual != evaluation:
        raise ValueError(f'{where}: needs the evaluation {evaluation!r}, got {actual!r}')
    for measure, axes in measures.items():
        if measure not in records.measures:
            raise ValueError(
                f'{where}: no measure {measure!r}; these records hold {sorted(records.measures)}'
            )
        if tuple(records.measures[measure].axes) != axes:
            raise ValueError(
                f'{where}: measure {measure!r} needs the axes {axes}, '
                f'got {tuple(records.measures[measure].axes)}'
            )
        if not np.all(np.isfinite(records[measure])):
            raise ValueError(f'{where}: measure {measure!r} holds values that are not finite')


def shared_attribute(given: FigureInput, names: list[str], attribute: str) -> Any:
    """The value of `attribute` that all records `names` share; ValueError where they differ."""
    values = {name: given.records[name].attributes[attribute] for name in names}
    if len(set(values.values())) != 1:
        raise ValueError(f'figure {given.name!r}: the runs differ in {attribute!r}: {values}')
    return values[names[0]]


def check_multiple(
    given: FigureInput, names: Collection[str], attribute: str, multiple: float
) -> None:
    """ValueError where the `attribute` of a record, a length in tokens, is not `multiple` L. For
    records that do not have it the options are believed."""
    for name in names:
        facts = given.records[name].attributes
        if facts.get(attribute) not in (None, round(multiple * facts['train_length'])):
            raise ValueError(
                f'figure {given.name!r}: the options say {multiple:g} L of {name!r}, whose '
                f'{attribute} is {facts[attribute]} with L = {facts["train_length"]}'
            )


def runs_of(given: FigureInput, names: list[str]) -> dict[str, str]:
    return {name: str(given.records[name].attributes['run_id']) for name in names}


def write(output: FigureOutput, folder: pathlib.Path) -> None:
    """Writes <name>.png, <name>.pdf, <name>.csv, where there is a text <name>.md, caption.txt
    and, last, summary.json.

    The same output gives the same bytes (no dates in the metadata), and each file appears
    whole or not at all.
    """
    for kind in METADATA:
        write_bytes(folder / f'{output.name}.{kind}', rendered(output.figure, kind))
    write_text(folder / f'{output.name}.csv', csv_text(output.rows))
    if output.markdown:
        write_text(folder / f'{output.name}.md', output.markdown)
    write_text(folder / 'caption.txt', output.caption + '\n')
    write_text(folder / 'summary.json', _summary(output))


def rendered(figure: mpl.Figure, kind: str, dpi: float = style.DPI) -> bytes:
    """A picture as a file, the same bytes each time. kind: 'png' or 'pdf'. dpi: of pixels."""
    stream = io.BytesIO()
    with style.house():
        figure.savefig(stream, format=kind, dpi=dpi, metadata=METADATA[kind])
    return stream.getvalue()


def csv_text(rows: list[dict[str, Any]]) -> str:
    """Rows with the same keys, below a line of these."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]), lineterminator='\n')
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def _summary(output: FigureOutput) -> str:
    summary = {
        'figure': output.name,
        'caption': output.caption,
        'runs': dict(output.runs),
        'claims': [plain(claim.stated()) for claim in output.claims],
    }
    return json.dumps(summary, indent=2, allow_nan=False) + '\n'


def plain(value: Any) -> Any:
    """Python values for JSON, floats to six significant digits, as people read them."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(v) for v in value]
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, float | np.floating):
        return float(f'{float(value):.6g}')
    return value.item() if isinstance(value, np.integer) else value
