"""A checkpoint under recipes that let it read further: what each reaches, by length."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from experiments.figures.base import Figure, kind
from experiments.figures.claims.catalogue import CLAIMS
from experiments.figures.claims.decide import Measured, Rule
from experiments.figures.claims.headline import number
from experiments.figures.given import (
    MEASURES,
    FigureInput,
    Known,
    Measures,
    check_count,
    check_differ,
    check_options,
)
from experiments.figures.look import captions, length_axes, mpl, style
from experiments.figures.look.web import table_of
from experiments.figures.read import positions_known
from experiments.figures.read.by_seed import index_of
from experiments.figures.read.curves import BITS_PER_NAT
from experiments.figures.roles import Undecided
from nope.records import Records

NATS = CLAIMS['recipes_read'].thresholds['nats']
EFFECTIVE = {
    'effective_length': 'the longest length up to which every mean score is above 85.6',
    'effective_length_of_base': 'the same with 85 % of its score at the shortest length',
}

MOST = 24  # rows
DASHES = ('-', (0, (4, 1.5)), (0, (1, 1.2)))


@dataclasses.dataclass(frozen=True)
class Measure:
    """Of a row: its evaluation, its words, and how it is read by length."""

    evaluation: str
    title: str
    unit: str
    values: Callable[[Records], np.ndarray]
    digits: int = 1


SHOWN: Mapping[str, Measure] = {
    'loss': Measure(
        'lengths', 'loss over the last L/2', 'nats per {token}', lambda r: r['loss_tail'], 3
    ),
    'longppl': Measure(
        'longppl', 'LongPPL', 'perplexity of key {token}s', lambda r: r['longppl'], 2
    ),
    'keys': Measure(
        'passkey', 'passkeys in filler', '% repeated', lambda r: 100 * r['accuracy'].mean(axis=1)
    ),
    'text_keys': Measure(
        'passkey', 'passkeys in text', '% repeated', lambda r: 100 * r['accuracy'].mean(axis=1)
    ),
    'ruler': Measure('ruler', 'RULER, mean over tasks', 'score', lambda r: r['average']),
}
ENTROPY = 'entropy'


class Curve(NamedTuple):
    """A measure by length. multiples: [n] of L, ascending. values: [n]."""

    multiples: np.ndarray
    values: np.ndarray

    def at(self, multiple: float) -> float | None:
        """The value at so many L; None where it was not measured."""
        index = index_of(multiple, self.multiples)
        return None if index is None else float(self.values[index])


@dataclasses.dataclass(frozen=True)
class Recipe:
    """curves: by measure. entropy: multiple of L -> bits [layer, head], at L and further; None
    where it was not measured. effective: tokens by RULER's rules, empty without RULER."""

    label: str
    curves: Mapping[str, Curve]
    entropy: Mapping[float, np.ndarray] | None
    effective: Mapping[str, int]


def _read_to(recipes: Sequence[Recipe]) -> Measured:
    """By loss: the longest length up to which that of the last L/2 is little above the first
    recipe's at L."""
    base = recipes[0].curves.get('loss')
    level = None if base is None else base.at(1)
    if level is None:
        raise Undecided('the loss at L was not measured')
    measured = {}
    for recipe in recipes:
        curve = recipe.curves['loss']
        reads = 0.0
        for multiple, loss in zip(curve.multiples, curve.values, strict=True):
            if multiple < 1:
                continue
            if loss > level + NATS:
                break
            reads = float(multiple)
        cost = curve.at(1)
        assert cost is not None  # all have the same lengths
        measured[recipe.label] = {'reads_to_L': reads, 'cost_at_L_nats': cost - level}
    told = _first_and_best({label: one['reads_to_L'] for label, one in measured.items()})
    numbers = tuple(number(f'{label} reads to', reads, 'L') for label, reads in told.items())
    return measured, None, numbers


def _effective(recipes: Sequence[Recipe]) -> Measured:
    if not recipes[0].effective:
        raise Undecided('RULER was not measured')
    measured = {recipe.label: dict(recipe.effective) for recipe in recipes}
    told = _first_and_best({r.label: float(r.effective['effective_length']) for r in recipes})
    numbers = tuple(number(f'{label}, effective length', n, 'tokens') for label, n in told.items())
    return measured, None, numbers


def _first_and_best(by_label: dict[str, float]) -> dict[str, float]:
    """Of the first recipe, and of the first that reads furthest, if another does."""
    first = next(iter(by_label))
    best = max(by_label, key=lambda label: by_label[label])
    return {label: by_label[label] for label in (first, best)}


RULES: tuple[Rule[Sequence[Recipe]], ...] = (
    Rule(
        'recipes_read',
        'The longest length up to which, from L on, the loss over the last L/2 positions is at '
        f'most {NATS} nats above that of the first recipe at L.',
        _read_to,
    ),
    Rule(
        'effective_length',
        '; '.join(f'{name}: {words}' for name, words in EFFECTIVE.items()) + ', in tokens.',
        _effective,
    ),
)


@kind('recipes')
class RecipesFigure(Figure[Sequence[Recipe]]):
    """Options:

    - rows: [{label, loss, entropy, longppl, keys, text_keys, ruler}], names of records. All have
      the same of them, one or more; the first is what others are compared with.
    """

    OPTIONS = NEEDED = ('rows',)
    MEASURES: ClassVar[Measures] = {
        **MEASURES,
        'ruler': {'average': ('length',), 'score': ('length', 'task')},
        'longppl': {'key_tokens': ('length',)},  # LongPPL itself is NaN without any
    }
    SHARED = ('train_length',)
    RULES = RULES

    def needs(self, name: str, options: Mapping[str, Any]) -> dict[str, str]:
        rows = options['rows']
        check_count(name, 'rows', len(rows), MOST)
        accepted = ('label', ENTROPY, *SHOWN)
        found: dict[str, str] = {}
        for row in rows:
            check_options(name, row, accepted, ('label',), 'rows')
            if row.keys() != rows[0].keys() or len(row) < 2:
                raise ValueError(
                    f'figure {name!r}: rows must have the same of {", ".join(accepted[1:])}, one '
                    f'or more; {row["label"]!r} has {", ".join(row.keys() - {"label"}) or "none"}'
                )
            found |= {row[m]: measure.evaluation for m, measure in SHOWN.items() if m in row}
            if ENTROPY in row:
                found[row[ENTROPY]] = 'positions'
        check_differ(name, 'labels of rows', [row['label'] for row in rows])
        return found

    def check_known(self, name: str, options: Mapping[str, Any], known: Known) -> None:
        compared = [row[ENTROPY] for row in options['rows'] if ENTROPY in row]
        positions_known.beyond_l(name, {record: known[record] for record in compared})

    def read(self, given: FigureInput) -> list[Recipe]:
        found = [_read(given, row) for row in given.options['rows']]
        for recipe, (name, curve) in itertools.product(found, found[0].curves.items()):
            if not np.array_equal(recipe.curves[name].multiples, curve.multiples):
                raise ValueError(
                    f'figure {given.name!r}: {name} of {recipe.label!r} was measured at other '
                    f'lengths than of {found[0].label!r}'
                )
        return found

    def picture(self, given: FigureInput, recipes: Sequence[Recipe]) -> mpl.Figure:
        names = list(recipes[0].curves)
        panels = len(names) + (recipes[0].entropy is not None)
        columns = 2 if panels == 4 else min(panels, 3)
        lines = -(-panels // columns)
        figure = style.new_figure(4.2 * columns, 3.4 * lines + 0.24 * len(recipes) / columns + 0.4)
        axes = list(figure.subplots(lines, columns, squeeze=False).ravel())
        looks = _looks(recipes)
        for name, panel in zip(names, axes, strict=False):
            for recipe, look in zip(recipes, looks, strict=True):
                curve = recipe.curves[name]
                panel.plot(curve.multiples, curve.values, markersize=3.5, linewidth=1.2, **look)
            length_axes.set_axis(panel, recipes[0].curves[name].multiples)
            panel.set_title(SHOWN[name].title)
            panel.set_ylabel(SHOWN[name].unit.format(token=_token(given)))
            panel.axvline(1, color=style.GREY, linewidth=0.8, linestyle=':')
        if recipes[0].entropy is not None:
            _draw_entropy(axes[len(names)], recipes, looks)
        for panel in axes[panels:]:
            panel.set_visible(False)
        handles = [
            mpl.Line2D([], [], markersize=3.5, linewidth=1.2, label=recipe.label, **look)
            for recipe, look in zip(recipes, looks, strict=True)
        ]
        figure.legend(handles=handles, loc='outside lower center', ncols=columns)
        return figure

    def rows(self, given: FigureInput, recipes: Sequence[Recipe]) -> list[dict[str, Any]]:
        """Measures by length, scores by task, and the entropy of every head."""
        found = []
        for row, recipe in zip(given.options['rows'], recipes, strict=True):

            def line(measure: str, length: float, value: float, of: str = '', row=row) -> dict:
                return {
                    'label': row['label'],
                    'measure': measure,
                    'of': of,
                    'length_over_L': length,
                    'value': float(value),
                    'record': row[measure],
                }

            for name, curve in recipe.curves.items():
                found += [
                    line(name, m, v) for m, v in zip(curve.multiples, curve.values, strict=True)
                ]
            if 'ruler' in row:
                scores, multiples = given.records[row['ruler']], recipe.curves['ruler'].multiples
                found += [
                    line('ruler', multiple, scores['score'][k, q], str(task))
                    for q, task in enumerate(scores.coordinates['task'])
                    for k, multiple in enumerate(multiples)
                ]
            if recipe.entropy is not None:
                for multiple, bits_LN in recipe.entropy.items():
                    found += [
                        line(ENTROPY, multiple, bits, f'layer {layer}, head {head}')
                        for (layer, head), bits in np.ndenumerate(bits_LN)
                    ]
        return found

    def markdown(self, given: FigureInput, recipes: Sequence[Recipe]) -> str:
        """A table a measure: recipes by lengths."""
        tables = []
        for name, first in recipes[0].curves.items():
            measure = SHOWN[name]
            unit = measure.unit.format(token=_token(given))
            head = [f'{measure.title} ({unit})', *(f'{m:g} L' for m in first.multiples)]
            body = (
                [r.label, *(_told(v, measure.digits) for v in r.curves[name].values)]
                for r in recipes
            )
            tables.append(table_of(head, body))
        return '\n'.join(tables)

    def caption(self, given: FigureInput, recipes: Sequence[Recipe]) -> str:
        length = _first(given).attributes['train_length']
        sources = {
            row['label']: [given.records[row[m]] for m in row if m != 'label']
            for row in given.options['rows']
        }
        entropy = (
            f'{ENTROPY.capitalize()}: a dot a head, means of the L/8 positions up to L and up to '
            'the end of the window, dashed where they are the same. '
            if recipes[0].entropy is not None
            else ''
        )
        return (
            f'A checkpoint under {len(recipes)} recipes, by the length of what it reads, in '
            f'multiples of its training length L = {length:,} (dotted). {entropy}'
            f'{_tasks(given)}{captions.sources(sources)}'
        )


def _told(value: float, digits: int) -> str:
    """A dash where LongPPL has no key tokens."""
    return f'{value:.{digits}f}' if np.isfinite(value) else '-'


def _read(given: FigureInput, row: Mapping[str, Any]) -> Recipe:
    curves = {}
    for name, measure in SHOWN.items():
        if name in row:
            records = given.records[row[name]]
            values = measure.values(records)
            multiples = records.along('length', len(values)) / records.attributes['train_length']
            order = np.argsort(multiples)
            curves[name] = Curve(multiples[order], values[order])
    facts = given.records[row['ruler']].attributes if 'ruler' in row else {}
    return Recipe(
        row['label'],
        curves,
        _entropy(given, row[ENTROPY]) if ENTROPY in row else None,
        {name: facts[name] for name in EFFECTIVE if name in facts},
    )


def _entropy(given: FigureInput, name: str) -> dict[float, np.ndarray]:
    """Multiple of L -> bits of every head over the last L / 8 positions up to there: L, and the
    end of the windows."""
    records = given.records[name]
    L, T = int(records.attributes['train_length']), records['entropy'].shape[-1]
    span = max(L // 8, 1)
    return {
        end / L: BITS_PER_NAT * records['entropy'][..., end - span : end].mean(axis=-1)
        for end in (L, T)
    }


def _draw_entropy(axes: mpl.Axes, recipes: Sequence[Recipe], looks: Sequence[dict]) -> None:
    most = 0.0
    for recipe, look in zip(recipes, looks, strict=True):
        assert recipe.entropy is not None
        (_, near), (far, beyond) = recipe.entropy.items()
        axes.plot(
            near.ravel(), beyond.ravel(), linestyle='none', marker='.', markersize=2.5,
            color=look['color'], alpha=0.5,
        )  # fmt: skip
        most = max(most, near.max(), beyond.max())
    axes.plot([0, most], [0, most], color=style.GREY, linewidth=0.8, linestyle='--')
    axes.set_title(ENTROPY)
    axes.set_xlabel('at L (bits)')
    axes.set_ylabel(f'at {far:g} L (bits)')


def _looks(recipes: Sequence[Recipe]) -> list[dict[str, Any]]:
    """A colour and a dash for each."""
    colors = (*style.COLORS, style.GREY)
    return [
        {
            'color': colors[k % len(colors)],
            'linestyle': DASHES[k // len(colors)],
            'marker': length_axes.MARKERS[k % len(length_axes.MARKERS)],
        }
        for k in range(len(recipes))
    ]


def _tasks(given: FigureInput) -> str:
    name = given.options['rows'][0].get('ruler')
    if name is None:
        return ''
    return f"RULER's tasks: {', '.join(map(str, given.records[name].coordinates['task']))}. "


def _first(given: FigureInput) -> Records:
    """Some records of the first row."""
    return given.records[next(v for k, v in given.options['rows'][0].items() if k != 'label')]


def _token(given: FigureInput) -> str:
    return captions.token_name(_first(given))
