"""Loss against the length of the sequence for every way to choose lambda (fig_dynamic)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures import roles
from experiments.figures.base import Figure, kind
from experiments.figures.claims import code_models, laws
from experiments.figures.claims import lengths as claims
from experiments.figures.claims.decide import decide
from experiments.figures.claims.decided import Decided
from experiments.figures.given import FigureInput, check_options, names_below
from experiments.figures.look import captions, length_axes, length_rows, mpl, style
from experiments.figures.read import length_group
from experiments.figures.read.length_group import Group
from experiments.figures.roles import Roles
from nope.records import Records

Groups = Sequence[Group]


@kind('length_curves')
class LengthCurvesFigure(Figure[Groups]):
    """Loss against the length of the sequence. Options:

    - curves: [{group, label, row}] of records '<group>/<seed>'; row is the title of a row of
      panels. A curve without a row is in all of them.
    - roles: of groups (claims/lengths.py, claims/laws.py, claims/code_models.py).
    """

    OPTIONS, NEEDED = ('curves', 'roles'), ('curves',)
    SHARED = ('train_length',)
    RULES = (*claims.RULES, *claims.TUNING_RULES, *laws.RULES, *code_models.RULES)
    RESAMPLED = True

    def needs(self, name: str, options: Mapping[str, Any]) -> dict[str, str]:
        chosen = options['curves']
        for curve in chosen:
            check_options(name, curve, ('group', 'label', 'row'), ('group',), 'curves')
        length_rows.check(name, chosen)
        accepted = {**claims.ROLES, **laws.ROLES, **code_models.ROLES}
        roles.check(name, options, roles.parts(accepted, [c['group'] for c in chosen]))
        return {f'{c["group"]}/': 'lengths' for c in chosen}

    def read(self, given: FigureInput) -> Groups:
        groups = [
            length_group.read(given, c['group'], c.get('label', c['group']))
            for c in given.options['curves']
        ]
        length_group.check_alike(given, groups)
        names = {group.name: group.names for group in groups}
        roles.check_length(given, claims.HEADSCALE, names)
        roles.check_length(given, claims.TUNED, names, 'tuned_length')
        _tail(given)
        return groups

    def shown(self, given: FigureInput, groups: Groups) -> Roles[Group]:
        return Roles(given.name, given.options, {group.name: group for group in groups})

    def claims(self, given: FigureInput, groups: Groups) -> list[Decided]:
        """About laws and fine-tuning only where some curve has such a role; about models of code
        alone where curves have their roles."""
        found, given_to = self.shown(given, groups), given.options.get('roles') or {}
        played = {role for role, names in given_to.items() if names}
        if played & set(code_models.ROLES):
            return decide(code_models.RULES, found)
        about_lambda = decide(claims.RULES, found)
        if claims.TUNED in played:
            about_lambda += decide(claims.TUNING_RULES, found)
        return about_lambda + (decide(laws.RULES, found) if played & set(laws.ROLES) else [])

    def picture(self, given: FigureInput, groups: Groups) -> mpl.Figure:
        rows = length_rows.of(given.options['curves'])
        figure = style.new_figure(*((10.0, 4.6) if len(rows) == 1 else (12.0, 3.0 * len(rows))))
        axes = figure.subplots(len(rows), len(length_axes.PANELS), squeeze=False)
        shading = length_axes.band_handle(len(groups[0].seeds))
        token = captions.token_name(given.records[groups[0].names[0]])
        titles = length_axes.titles(_tail(given), token)
        for row, beside in zip(rows, axes, strict=True):
            for (measure, title), ax in zip(titles.items(), beside, strict=True):
                for index, mark in row.curves.items():
                    loss = getattr(groups[index], measure).astype(np.float64)
                    multiples, looks = groups[index].multiples, mark._asdict()
                    ax.plot(multiples, loss.mean(axis=0), markersize=4, linewidth=1.4, **looks)
                    length_axes.draw_band(ax, multiples, loss, mark.color)
                length_axes.set_axis(ax, groups[0].multiples)
                ax.set_title(f'{row.title}\n{title}' if row.title else title)
                ax.set_ylabel(f'loss (nats per {token})')
            handles = [*(mark.handle(groups[i].label) for i, mark in row.curves.items()), *shading]
            if len(rows) == 1:
                figure.legend(handles=handles, loc='outside lower center', ncols=3)
            else:
                beside[-1].legend(handles=handles, loc='upper left', bbox_to_anchor=(1.01, 1.0))
        return figure

    def rows(self, given: FigureInput, groups: Groups) -> list[dict[str, Any]]:
        return [row for g in groups for row in length_group.rows(g, given.records)]

    def caption(self, given: FigureInput, groups: Groups) -> str:
        first = given.records[groups[0].names[0]]
        labelled: dict[str, list[Records]] = {}  # one model may be in several rows
        for g in groups:
            labelled.setdefault(g.label, []).extend(given.records[name] for name in g.names)
        panels = length_axes.panels_caption(
            first.attributes['train_length'], _tail(given), captions.token_name(first)
        )
        seeds = length_axes.seeds_caption(len(groups[0].seeds))
        return f'{panels} {seeds} {captions.sources(labelled)}'


def _tail(given: FigureInput) -> int | None:
    """Tokens of the tail, which all records share; None for L/2."""
    groups = [f'{c["group"]}/' for c in given.options['curves']]
    names = [name for group in groups for name in names_below(given, group)]
    found = {given.records[name].attributes.get('tail') for name in names}
    if len(found) > 1:
        raise ValueError(f'figure {given.name!r}: the records differ in their tail: {found}')
    return found.pop()
