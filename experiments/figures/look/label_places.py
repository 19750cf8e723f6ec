"""Labels beside points that cover neither each other, nor a point, nor its whiskers."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.figures.look import mpl

WIDTH = 26  # characters of a line
# Tried in this order: distances from the point, in points, and directions, in degrees.
DISTANCES = (7, 13, 20, 28, 38, 50, 64, 80, 100, 125, 155, 190)
DIRECTIONS = (0, 180, 45, -45, 135, -135, 90, -90, 20, -20, 160, -160, 70, -70, 110, -110)
LEAD = 10  # from this distance on a line leads to the point
MARKER = 6  # half the side of the square, in points, that a marker takes


Line = tuple[tuple[float, float], tuple[float, float]]


def write(
    axes: mpl.Axes,
    places: Sequence[tuple[float, float]],
    labels: Sequence[str],
    lines: Sequence[Line] = (),
) -> None:
    """Writes a label for each of the first `len(labels)` places, in data coordinates; the further
    places are points that no label may cover. lines: level or upright ones, by their ends, that no
    label covers where there is room elsewhere.

    The layout of the figure is fixed here: what is added to it later may move the axes under the
    labels.
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    renderer = mpl.FigureCanvasAgg(figure).get_renderer()
    figure.draw_without_rendering()
    pixels = figure.dpi / 72
    centres = axes.transData.transform(np.array(places))
    half = MARKER * pixels
    taken = [mpl.Bbox([[x - half, y - half], [x + half, y + half]]) for x, y in centres]
    thin = [mpl.Bbox(axes.transData.transform(np.array(line))).padded(1) for line in lines]
    inside = axes.get_window_extent(renderer)
    # From the bottom up, so that the order of the options changes nothing.
    for i in sorted(range(len(labels)), key=lambda i: (centres[i][1], centres[i][0])):
        text = textwrap.fill(labels[i], WIDTH)
        given = (axes, places[i], text)
        found = _place(*given, [*taken, *thin], inside, renderer)
        if found is None:
            found = _place(*given, taken, inside, renderer) or _note(*given, DISTANCES[0], 0)
        taken += [_text_box(found, renderer), *_leader(found, centres[i], renderer)]


def _place(
    axes: mpl.Axes,
    place: tuple[float, float],
    text: str,
    taken: list[mpl.Bbox],
    inside: mpl.Bbox,
    renderer,
) -> mpl.Annotation | None:
    """The annotation nearest to its point that fits."""
    for distance in DISTANCES:
        for degrees in DIRECTIONS:
            note = _note(axes, place, text, distance, degrees)
            box = _text_box(note, renderer)
            fits = inside.x0 <= box.x0 and box.x1 <= inside.x1
            fits = fits and inside.y0 <= box.y0 and box.y1 <= inside.y1
            if fits and not any(box.overlaps(other) for other in taken):
                return note
            note.remove()
    return None


def _leader(note: mpl.Annotation, point: np.ndarray, renderer: Any) -> list[mpl.Bbox]:
    """Boxes along the line from a point to its label, clear of both."""
    box = _text_box(note, renderer)
    end = np.array([np.clip(point[0], box.x0, box.x1), np.clip(point[1], box.y0, box.y1)])
    steps = np.linspace(0.25, 0.9, 6)[:, None]
    return [mpl.Bbox([xy - 1, xy + 1]) for xy in point + steps * (end - point)]


def _text_box(note: mpl.Annotation, renderer) -> mpl.Bbox:
    """Extent of the words without the line that leads to them."""
    note.update_positions(renderer)
    return mpl.Text.get_window_extent(note, renderer)


def _note(
    axes: mpl.Axes, place: tuple[float, float], text: str, distance: float, degrees: float
) -> mpl.Annotation:
    x, y = (f(math.radians(degrees)) for f in (math.cos, math.sin))
    across = 0 if x > 0.3 else 1 if x < -0.3 else 0.5  # where the text touches the line
    up = 0 if y > 0.3 else 1 if y < -0.3 else 0.5
    line = {'arrowstyle': '-', 'linewidth': 0.6, 'relpos': (across, up), 'shrinkA': 0, 'shrinkB': 2}
    note = axes.annotate(
        text,
        place,
        (distance * x, distance * y),
        textcoords='offset points',
        ha={0: 'left', 0.5: 'center', 1: 'right'}[across],
        va={0: 'bottom', 0.5: 'center', 1: 'top'}[up],
        fontsize=7.5,
        zorder=4,
        linespacing=1.05,
        arrowprops=line if distance >= LEAD else None,
    )
    note.set_path_effects([mpl.withStroke(linewidth=2, foreground='white')])
    note.set_in_layout(False)
    return note
