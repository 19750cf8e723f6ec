"""Passkey retrieval by length and depth, model by model (the paper's Figures 6, 8 and 9)."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures import roles
from experiments.figures.base import Figure, kind
from experiments.figures.claims import passkey as claims
from experiments.figures.given import FigureInput, check_differ, check_options, shared_attribute
from experiments.figures.kinds import passkey_caption
from experiments.figures.look import cells, mpl, style
from experiments.figures.read import passkey_panel
from experiments.figures.read.passkey_panel import PasskeyPanel
from experiments.figures.roles import Roles

PANEL_KEYS = {'record', 'label', 'paper', 'missing'}
COLUMNS = 3

LINE = 'end of the lengths that the percentage counts'
PANEL_WIDTH, PANEL_HEIGHT = 3.9, 2.85
TITLE_WIDTH = 52  # characters
# Labels of columns with more characters than that stand under every second one.
TICK_CHARACTERS = 3


Panels = Sequence[PasskeyPanel]


@kind('passkey_maps')
class PasskeyMapsFigure(Figure[Panels]):
    """Accuracy by length and depth of the key. Options:

    - panels: [{record, label, paper}] or [{label, missing: the reason}]. record: a name, or a
      prefix of several seeds that ends in '/'. paper: the percent that the paper prints.
    - roles: of labels (claims/passkey.py).
    """

    OPTIONS, NEEDED = ('panels', 'roles'), ('panels',)
    RULES = claims.RULES
    RESAMPLED = True

    def needs(self, name: str, options: Mapping[str, Any]) -> dict[str, str]:
        for panel in options['panels']:
            check_options(name, panel, PANEL_KEYS, ('label',), 'panels')
            _check_panel(name, panel)
        labels = [panel['label'] for panel in options['panels']]
        check_differ(name, 'labels of panels', labels)
        roles.check(name, options, roles.parts(claims.ROLES, labels, 'panel'))
        _check_ablations(name, options.get('roles') or {})
        found = {panel['record']: 'passkey' for panel in options['panels'] if panel.get('record')}
        if not found:
            raise ValueError(f'figure {name!r}: all panels are missing; one must give record')
        return found

    def read(self, given: FigureInput) -> Panels:
        chosen = given.options['panels']
        panels = [passkey_panel.read(given, c) for c in chosen if c.get('record')]
        _check_compared(given, self.shown(given, panels))
        return panels

    def shown(self, given: FigureInput, panels: Panels) -> Roles[PasskeyPanel]:
        return Roles(given.name, given.options, {p.label: p for p in panels}, 'panel')

    def picture(self, given: FigureInput, panels: Panels) -> mpl.Figure:
        missing = _missing(given)
        chosen = given.options['panels']
        columns = min(COLUMNS, len(chosen))
        lines = -(-len(chosen) // columns)
        figure = style.new_figure(PANEL_WIDTH * columns + 1.1, PANEL_HEIGHT * lines + 0.4)
        grid = figure.subplots(lines, columns, squeeze=False, gridspec_kw={'hspace': 0.06})
        by_label = {p.label: p for p in panels}
        for ax, panel in zip(grid.flat, chosen, strict=False):
            if panel['label'] in missing:
                _draw_missing(ax, panel['label'], missing[panel['label']], panel.get('paper'))
            else:
                _draw_panel(ax, by_label[panel['label']])
        for ax in grid.flat[len(chosen) :]:
            ax.remove()
        cells.add_bar(figure)
        line: dict[str, Any] = {
            'color': style.BLACK,
            'linestyle': 'none',
            'marker': '|',
            'markeredgewidth': 2.2,
        }
        figure.legend(
            handles=[mpl.Line2D([], [], markersize=11, label=LINE, **line)],
            loc='outside upper center',
        )
        token = passkey_caption.token_name(given, panels)
        figure.supxlabel(_length_label(panels, token), fontsize=9)
        figure.supylabel('depth of the key', fontsize=9)
        return figure

    def rows(self, given: FigureInput, panels: Panels) -> Iterator[dict[str, Any]]:
        """One row a record, length and depth."""
        for panel in panels:
            inside_R = panel.inside_by_record
            for s, i, j in np.ndindex(panel.accuracy.shape):
                yield {
                    'panel': panel.label,
                    'record': panel.names[s],
                    'seed': panel.runs[s],
                    'length': int(panel.lengths[i]),
                    'length_over_L': float(panel.lengths[i] / panel.train_length),
                    'depth': float(panel.depths[j]),
                    'accuracy': float(panel.accuracy[s, i, j]),
                    'prompt_tokens': float(panel.tokens[i]),
                    'inside_window': bool(panel.inside[i]),
                    'average_inside_window': None if inside_R is None else float(inside_R[s]),
                }

    def caption(self, given: FigureInput, panels: Panels) -> str:
        return passkey_caption.caption(given, panels, _missing(given))


def _missing(given: FigureInput) -> dict[str, str]:
    """Label -> why it has no panel."""
    return {c['label']: c['missing'] for c in given.options['panels'] if c.get('missing')}


def _check_compared(given: FigureInput, found: Roles[PasskeyPanel]) -> None:
    """ValueError unless the full method and its ablations, as far as they have records, were asked
    the same prompts and have the same context."""
    compared = [panel for role in claims.ABLATED if (panel := found.get(role))]
    names = [name for panel in compared for name in panel.names]
    for attribute in ('window', 'max_length', 'template') if names else ():
        shared_attribute(given, names, attribute)


def _check_panel(name: str, panel: Mapping[str, Any]) -> None:
    if bool(panel.get('record')) == bool(panel.get('missing')):
        raise ValueError(
            f'figure {name!r}: {panel["label"]!r} must give either record or missing, the reason '
            'why there is none'
        )
    paper = panel.get('paper')
    if paper is not None and not (isinstance(paper, int | float) and 0 <= paper <= 100):
        raise ValueError(
            f'figure {name!r}: paper of {panel["label"]!r} must be in percent, 0 to 100, '
            f'got {paper!r}'
        )


def _check_ablations(name: str, given: Mapping[str, Any]) -> None:
    """ValueError unless the ablations are compared with the full method, each by its own panel."""
    compared = {role: given[role] for role in claims.ABLATED if given.get(role)}
    if compared and claims.FULL not in compared:
        raise ValueError(f'figure {name!r}: roles must give {claims.FULL!r}, got {compared}')
    if len(set(compared.values())) < len(compared):
        raise ValueError(f'figure {name!r}: roles must be of different panels, got {compared}')


def _length_label(panels: Sequence[PasskeyPanel], token: str) -> str:
    lengths = {p.train_length for p in panels}
    value = f' = {lengths.pop():,} {token}s' if len(lengths) == 1 else ', the training length'
    return f'nominal length of the prompt (multiples of L{value})'


def _draw_panel(axes: mpl.Axes, panel: PasskeyPanel) -> None:
    cells.draw(axes, panel.mean.T)
    inside = int(panel.inside.sum())
    axes.axvline(inside, color=style.BLACK, linewidth=2.2, zorder=3, clip_on=False)
    _set_axes(axes, panel)
    axes.set_title(_title(panel.label, _inside(panel), panel.paper), fontsize=9.5)


def _set_axes(axes: mpl.Axes, panel: PasskeyPanel) -> None:
    """Columns under their lengths, rows from the shallowest down."""
    labels = [f'{length / panel.train_length:.4g}' for length in panel.lengths]
    wide = max(map(len, labels)) > TICK_CHARACTERS and len(labels) > 8
    step = 2 if wide else 1
    # From the longest on, so that the round ones stay.
    kept = range((len(labels) - 1) % step, len(labels), step)
    axes.set_xticks([i + 0.5 for i in kept], [labels[i] for i in kept])
    axes.set_yticks(
        np.arange(len(panel.depths)) + 0.5, [f'{100 * depth:.0f} %' for depth in panel.depths]
    )


def _draw_missing(axes: mpl.Axes, label: str, reason: str, paper: float | None) -> None:
    cells.no_frame(axes)
    axes.set_facecolor('#F4F4F4')
    axes.set_xticks([])
    axes.set_yticks([])
    axes.text(
        *(0.5, 0.5, textwrap.fill(reason, 40)),
        ha='center',
        va='center',
        color=style.GREY,
        transform=axes.transAxes,
    )
    axes.set_title(_title(label, 'not measured', paper), fontsize=9.5)


def _inside(panel: PasskeyPanel) -> str:
    inside = f'inside {panel.context / panel.train_length:.3g} L'
    if panel.inside_mean is None:
        return f'no length {inside}'
    return f'{100 * panel.inside_mean:.0f} % {inside}'


def _title(label: str, result: str, paper: float | None) -> str:
    if paper is not None:
        result += f' (paper: {paper:g} %)'
    line = f'{label}: {result}'
    return line if len(line) <= TITLE_WIDTH else f'{textwrap.fill(label, TITLE_WIDTH)}:\n{result}'
