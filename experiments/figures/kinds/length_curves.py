"""Loss against the length of the sequence for every way to choose lambda (fig_dynamic)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures import roles
from experiments.figures.base import (
    Claim,
    FigureInput,
    FigureOutput,
    check_choice,
    check_options,
    check_records,
    runs_of,
    shared_attribute,
)
from experiments.figures.claims import code_models, laws
from experiments.figures.claims import lengths as claims
from experiments.figures.claims.decide import decide
from experiments.figures.look import captions, length_axes, length_rows, mpl, style
from experiments.figures.look.length_rows import Mark, Row
from experiments.figures.read import length_group
from experiments.figures.read.length_group import Group
from experiments.figures.roles import Roles
from nope.records import Records

# Attributes that all of its records share.
SHARED = ('train_length',)
OPTIONS = {'curves', 'band', 'roles'}


def required(name: str, options: Mapping[str, Any]) -> dict[str, str]:
    """Prefix of record names, one record a seed below it -> evaluation. ValueError for options
    that figure `name` of this kind does not have."""
    check_options(name, options, OPTIONS, ('curves',))
    check_choice(name, 'band', options.get('band', 'min-max'), length_axes.BANDS)
    chosen = options['curves']
    for curve in chosen:
        check_options(name, curve, ('group', 'label', 'row'), ('group',), 'curves')
    length_rows.check(name, chosen)
    accepted = {**claims.ROLES, **laws.ROLES, **code_models.ROLES}
    roles.check(name, options, roles.parts(accepted, [c['group'] for c in chosen]))
    return {f'{c["group"]}/': 'lengths' for c in chosen}


@style.styled
def draw(given: FigureInput) -> FigureOutput:
    """Options: curves, [{group, label, row}] of records '<group>/<seed>', row being the title of a
    row of panels, without which a curve is in all of them; roles of groups (claims/lengths.py,
    claims/laws.py and claims/code_models.py); band, 'min-max' (default) or 'std', drawn for two
    seeds or more."""
    check_records(given, required(given.name, given.options))
    groups = _groups(given)
    band = given.options.get('band', 'min-max')
    names = [name for g in groups for name in g.names]
    token = captions.token_name(given.records[names[0]])
    (train_length,) = (shared_attribute(given, names, x) for x in SHARED)
    tail = _tail(given, names)
    rows = length_rows.of(given.options['curves'])
    size = (10.0, 4.6) if len(rows) == 1 else (12.0, 3.0 * len(rows))
    figure = style.new_figure(*size)
    axes = figure.subplots(len(rows), len(length_axes.PANELS), squeeze=False)
    for row, beside in zip(rows, axes, strict=True):
        _draw_row(row, beside, groups, band, token, tail)
    seeds = len(groups[0].seeds)
    _draw_legends(figure, axes, rows, groups, length_axes.band_handle(seeds, band))
    labelled: dict[str, list[Records]] = {}  # one model may be in several rows
    for g in groups:
        labelled.setdefault(g.label, []).extend(given.records[name] for name in g.names)
    caption = (
        f'{length_axes.panels_caption(train_length, tail, token)} '
        f'{length_axes.seeds_caption(seeds, band)} {captions.sources(labelled)}'
    )
    return FigureOutput(
        given.name,
        figure,
        [row for g in groups for row in length_group.rows(g, given.records)],
        caption,
        decided(given),
        runs_of(given, names),
    )


def decided(given: FigureInput) -> list[Claim]:
    """Claims of an input that `draw` accepts: about laws only where some curve has the role of one;
    about models of code alone where curves have their roles."""
    found = _roles(given, _groups(given))
    played = given.options.get('roles') or {}
    if code_models.speaks_of(played):
        return decide(code_models.RULES, found)
    about_lambda = decide(claims.RULES, found)
    return about_lambda + (decide(laws.RULES, found) if laws.speaks_of(played) else [])


def _tail(given: FigureInput, names: Sequence[str]) -> int | None:
    """Tokens of the tail, which all records share; None for L/2."""
    found = {given.records[name].attributes.get('tail') for name in names}
    if len(found) > 1:
        raise ValueError(f'figure {given.name!r}: the records differ in their tail: {found}')
    return found.pop()


def _groups(given: FigureInput) -> list[Group]:
    groups = [
        length_group.read(given, c['group'], c.get('label', c['group']))
        for c in given.options['curves']
    ]
    length_group.check_alike(given, groups)
    return groups


def _roles(given: FigureInput, groups: Sequence[Group]) -> Roles[Group]:
    found = Roles(given.name, given.options, {group.name: group for group in groups})
    roles.check_searched(given, claims.HEADSCALE, {group.name: group.names for group in groups})
    return found


def _draw_row(
    row: Row, axes: Any, groups: Sequence[Group], band: str, token: str, tail: int | None
) -> None:
    for (measure, title), ax in zip(length_axes.titles(tail, token).items(), axes, strict=True):
        for index, mark in row.curves.items():
            _draw_curve(measure, ax, groups[index], mark, band)
        length_axes.set_axis(ax, groups[0].multiples)
        ax.set_title(f'{row.title}\n{title}' if row.title else title)
        ax.set_ylabel(f'loss (nats per {token})')


def _draw_curve(measure: str, axes: mpl.Axes, group: Group, mark: Mark, band: str) -> None:
    loss = getattr(group, measure).astype(np.float64)
    axes.plot(group.multiples, loss.mean(axis=0), markersize=4, linewidth=1.4, **mark._asdict())
    length_axes.draw_band(axes, group.multiples, loss, mark.color, band)


def _draw_legends(
    figure: mpl.Figure, axes: Any, rows: Sequence[Row], groups: Sequence[Group], shading: list[Any]
) -> None:
    """One below a single row, else one beside each."""
    for row, beside in zip(rows, axes, strict=True):
        handles: list[Any] = [mark.handle(groups[i].label) for i, mark in row.curves.items()]
        handles += shading
        if len(rows) == 1:
            figure.legend(handles=handles, loc='outside lower center', ncols=3)
        else:
            beside[-1].legend(handles=handles, loc='upper left', bbox_to_anchor=(1.01, 1.0))
