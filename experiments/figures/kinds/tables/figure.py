"""Kind of figure without a picture: a table of ours beside the paper's."""

from __future__ import annotations

import abc
from typing import Any, TypeVar

from experiments.figures.base import Figure
from experiments.figures.given import FigureInput
from experiments.figures.kinds.tables import markdown
from experiments.figures.read.tables.table import Table, tidy

D = TypeVar('D')


class TableFigure(Figure[D]):
    """A table as CSV, Markdown and HTML, from what `table` makes of the data."""

    @abc.abstractmethod
    def table(self, given: FigureInput, data: D) -> Table:
        """The table, before it is written."""

    def picture(self, given: FigureInput, data: D) -> None:
        return None

    def rows(self, given: FigureInput, data: D) -> list[dict[str, Any]]:
        return tidy(self.table(given, data))

    def markdown(self, given: FigureInput, data: D) -> str:
        return markdown.write(self.table(given, data), self.caption(given, data))
