"""A kind of figure, what it gives, and the files of that.

A figure is a pure function from records to a `FigureOutput`; nothing here or below knows a
model, a config file or a run.
"""

from __future__ import annotations

import abc
import csv
import dataclasses
import io
import json
import pathlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from experiments.figures.claims.decide import Rule, decide
from experiments.figures.claims.decided import Decided
from experiments.figures.claims.learned import borne_out
from experiments.figures.given import (
    MEASURES,
    FigureInput,
    Known,
    Measures,
    check_options,
    check_records,
    names_below,
    shared_attribute,
)
from experiments.figures.look import mpl, style
from experiments.figures.look.web import html_of
from nope.runtime.files import write_bytes, write_text

# Pictures that are written. matplotlib drops a metadata entry that is None; by default it would
# store date and version.
METADATA: Mapping[str, dict[str, None]] = {'png': {'Software': None}, 'pdf': {'CreationDate': None}}

D = TypeVar('D')
F = TypeVar('F', bound='Figure[Any]')


@dataclasses.dataclass(frozen=True)
class FigureOutput:
    """Result of drawing.

    - figure: None for a table.
    - rows: the numbers in tidy long form, all with the same keys.
    - runs: record name -> run_id of its run.
    - markdown: tables to read without the picture, '' for none.
    """

    name: str
    figure: mpl.Figure | None
    rows: list[dict[str, Any]]
    caption: str
    claims: list[Decided]
    runs: Mapping[str, str] = dataclasses.field(default_factory=dict)
    markdown: str = ''

    def __post_init__(self) -> None:
        if not self.rows:
            raise ValueError(f'figure {self.name!r}: nothing that it shows was measured')


class Figure(abc.ABC, Generic[D]):
    """A kind of figure: records to data; data to picture, rows, caption and claims.

    A kind sets the fields below that differ and writes `needs`, `read`, `picture`, `rows` and
    `caption`. `kind` makes it known. Methods raise ValueError, naming the figure, for options and
    records that do not fit.

    OPTIONS, NEEDED: the options that it has, and those that must be given.
    MEASURES: arrays that it reads, by evaluation.
    SHARED: attributes that all of its records share; also compared before training.
    RULES: rules of its claims.
    MEANS: several seeds of a record that is read by its name are drawn as their mean, and not as
        the first one.
    ALONE: one seed is drawn at a time, of records below prefixes too.
    RESAMPLED: claims of one seed are decided again for resamples of the text.
    """

    OPTIONS: Collection[str] = ()
    NEEDED: Collection[str] = ()
    MEASURES: ClassVar[Measures] = MEASURES
    SHARED: tuple[str, ...] = ()
    RULES: Sequence[Rule[Any]] = ()
    MEANS = False
    ALONE = False
    RESAMPLED = False

    @abc.abstractmethod
    def needs(self, name: str, options: Mapping[str, Any]) -> dict[str, str]:
        """As `required`, of options whose keys are known."""

    def check_known(self, name: str, options: Mapping[str, Any], known: Known) -> None:
        """ValueError where attributes that are known before training do not bear the figure."""

    @abc.abstractmethod
    def read(self, given: FigureInput) -> D:
        """Data of the figure from records that hold what it needs."""

    @abc.abstractmethod
    def picture(self, given: FigureInput, data: D) -> mpl.Figure | None:
        """None for a table."""

    @abc.abstractmethod
    def rows(self, given: FigureInput, data: D) -> Iterable[dict[str, Any]]:
        """The numbers behind the picture, all with the same keys."""

    @abc.abstractmethod
    def caption(self, given: FigureInput, data: D) -> str:
        """Words below the picture: its parts, models and data."""

    def markdown(self, given: FigureInput, data: D) -> str:
        """Text that is read without the picture."""
        return ''

    def shown(self, given: FigureInput, data: D) -> Any:
        """Argument of the rules."""
        return data

    def claims(self, given: FigureInput, data: D) -> list[Decided]:
        return decide(self.RULES, self.shown(given, data))

    def required(self, name: str, options: Mapping[str, Any]) -> dict[str, str]:
        """Record name -> evaluation, before anything has run. A name that ends in '/' stands for
        one record or more below it ('base/seed0', 'base/seed1')."""
        check_options(name, options, self.OPTIONS, self.NEEDED)
        return self.needs(name, options)

    def decided(self, given: FigureInput) -> list[Decided]:
        """Claims without a picture, of an input that `draw` accepts."""
        names = self._names(given, self.required(given.name, given.options))
        return self._borne_out(given, self.read(given), names)

    def draw(self, given: FigureInput) -> FigureOutput:
        """The figure of one seed, or of groups of seeds."""
        needs = self.required(given.name, given.options)
        check_records(given, needs, self.MEASURES)
        names = self._names(given, needs)
        for attribute in self.SHARED:
            shared_attribute(given, names, attribute)
        with style.house():
            data = self.read(given)
            return FigureOutput(
                name=given.name,
                figure=self.picture(given, data),
                rows=list(self.rows(given, data)),
                caption=self.caption(given, data),
                claims=self._borne_out(given, data, names),
                runs={name: str(given.records[name].attributes['run_id']) for name in names},
                markdown=self.markdown(given, data),
            )

    def _names(self, given: FigureInput, needs: Iterable[str]) -> list[str]:
        return [name for needed in needs for name in names_below(given, needed)]

    def _borne_out(self, given: FigureInput, data: D, names: Sequence[str]) -> list[Decided]:
        """Claims by the records of those names, which alone the figure shows."""
        return borne_out(self.claims(given, data), [given.records[name] for name in names])


KINDS: dict[str, Figure[Any]] = {}


def kind(name: str) -> Callable[[type[F]], type[F]]:
    """Decorator of a kind of figure: configs call it `name`."""

    def known(figure: type[F]) -> type[F]:
        KINDS[name] = figure()
        return figure

    return known


def write(output: FigureOutput, folder: pathlib.Path) -> None:
    """Writes <name>.png and <name>.pdf, or <name>.html of a table; <name>.csv; where there is a
    text <name>.md; caption.txt and, last, summary.json.

    The same output gives the same bytes (no dates in the metadata), and each file appears
    whole or not at all.
    """
    if output.figure is None:
        head = f'<!doctype html>\n<meta charset="utf-8">\n<title>{output.name}</title>\n'
        write_text(folder / f'{output.name}.html', f'{head}{html_of(output.markdown)}\n')
    else:
        for ending in METADATA:
            write_bytes(folder / f'{output.name}.{ending}', rendered(output.figure, ending))
    write_text(folder / f'{output.name}.csv', csv_text(output.rows))
    if output.markdown:
        write_text(folder / f'{output.name}.md', output.markdown)
    write_text(folder / 'caption.txt', output.caption + '\n')
    summary = {
        'figure': output.name,
        'caption': output.caption,
        'runs': dict(output.runs),
        'claims': [plain(claim.stated()) for claim in output.claims],
    }
    write_text(folder / 'summary.json', json.dumps(summary, indent=2, allow_nan=False) + '\n')


def rendered(figure: mpl.Figure, kind: str, dpi: float = style.DPI) -> bytes:
    """A picture as a file, the same bytes each time. kind: 'png' or 'pdf'. dpi: of pixels."""
    stream = io.BytesIO()
    with style.house():
        figure.savefig(stream, format=kind, dpi=dpi, metadata=METADATA[kind])
    return stream.getvalue()


def csv_text(rows: list[dict[str, Any]]) -> str:
    """Rows with the same keys, at least one, below a line of these."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]), lineterminator='\n')
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


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
