"""Training curves: loss and attention by step, bad steps, goodput and MFU of every run."""

from __future__ import annotations

import dataclasses
import itertools
import statistics
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from experiments.config import is_number
from experiments.report import chart
from experiments.report.chart import Chart
from experiments.report.problems import Problem, noted
from experiments.report.workfolder import RunFolder, WorkFolder, relative

MOST_POINTS, ALL_POINTS = 160, 30_000  # of a curve, and of all together
LAST_ROWS = 5  # the final loss is the mean of so many
# Of each layer, NAME/LAYER in a row (`nope.training.stepping.attention_metrics`).
MONITORS = {'entropy': 'Attention entropy, nats', 'max_logit': 'Largest attention logit'}
MONITOR_POINTS, MOST_LAYERS = 40, 8


@dataclasses.dataclass(frozen=True)
class TrainingCurve:
    """chart: None where no loss was logged. facts: (name, text) of what is recorded. monitors:
    (title, chart) of what was monitored, a line for each of some layers."""

    names: tuple[str, ...]
    slug: str
    finished: bool
    chart: Chart | None
    facts: tuple[tuple[str, str], ...]
    monitors: tuple[tuple[str, Chart], ...] = ()

    @property
    def compared(self) -> Any:
        return self.slug, self.chart, self.facts, self.monitors


def curves(folder: WorkFolder) -> list[TrainingCurve]:
    """Of all runs, the coarser the more there are."""
    each = max(20, min(MOST_POINTS, ALL_POINTS // max(1, len(folder.runs))))
    found = []
    for run in folder.runs:
        with noted(folder.problems, relative(run.folder, folder.root)):
            found.append(_curve(run, each))
        if run.done is None:
            what = f'the training has not finished: {_progress(run)}'
            folder.problems.append(Problem('unfinished', relative(run.folder, folder.root), what))
    return found


def _curve(run: RunFolder, most: int) -> TrainingCurve:
    rows = [row for row in run.rows if is_number(row.get('step')) and is_number(row.get('loss'))]
    bad = sorted({float(row['step']) for row in run.bad_steps if is_number(row.get('step'))})
    drawn = None
    if rows:
        drawn = chart.of([r['step'] for r in rows], [[r['loss'] for r in rows]], most, bad)
    short = run.slug.rpartition('-')[0] or run.slug
    return TrainingCurve(
        names=(run.slug, *run.names[:-1], short),
        slug=run.slug,
        finished=run.done is not None,
        chart=drawn,
        facts=tuple(_facts(run, rows, bad).items()),
        monitors=tuple(_monitors(rows, min(most, MONITOR_POINTS))),
    )


def _monitors(rows: list[Mapping[str, Any]], most: int) -> Iterator[tuple[str, Chart]]:
    """Title and chart of each monitor that rows have; of many layers some, the first and the
    last."""
    for name, title in MONITORS.items():
        seen = [row for row in rows if is_number(row.get(f'{name}/0'))]
        if not seen:
            continue
        layers = next(n for n in itertools.count() if f'{name}/{n}' not in seen[0])
        shown = np.linspace(0, layers - 1, min(layers, MOST_LAYERS)).round().astype(int)
        values: list[list[Any]] = [[row.get(f'{name}/{layer}') for row in seen] for layer in shown]
        lines = [[float(v) if is_number(v) else float('nan') for v in line] for line in values]
        if np.isfinite(lines).all(axis=0).any():
            yield title, chart.of([row['step'] for row in seen], lines, most)


def _facts(run: RunFolder, rows: list[Mapping[str, Any]], bad: list[float]) -> dict[str, str]:
    facts = {'steps': _progress(run)}
    if rows:
        last = [float(row['loss']) for row in rows[-LAST_ROWS:]]
        facts['final loss'] = f'{sum(last) / len(last):.4g} nats, mean of {len(last)} logged steps'
    actions = [str(row.get('action', ''))[:40] for row in run.bad_steps]
    told = f' ({", ".join(sorted(set(actions)))})' if bad else ''
    facts['bad steps'] = f'{len(bad)}{told}'
    if is_number(run.goodput.get('goodput')):
        facts['goodput'] = f'{100 * run.goodput["goodput"]:.1f} %'
    if is_number(run.goodput.get('attempts')):
        facts['attempts'] = f'{run.goodput["attempts"]}'
    shares = [100 * row['mfu'] for row in rows if is_number(row.get('mfu'))]
    if shares:
        facts['MFU, median'] = f'{statistics.median(shares):.1f} %'
    rates = [row['tokens_per_second'] for row in rows if is_number(row.get('tokens_per_second'))]
    if rates:
        facts['tokens/s, median'] = f'{statistics.median(rates):,.0f}'
    spent = run.goodput.get('seconds')  # of all attempts, by what they were spent on
    if isinstance(spent, dict) and spent and all(map(is_number, spent.values())):
        facts['time'] = f'{sum(spent.values()):,.0f} s'
    elif run.done is not None and is_number(run.done.get('seconds')):
        facts['time of the last attempt'] = f'{run.done["seconds"]:,.0f} s'
    return facts


def _progress(run: RunFolder) -> str:
    """Steps done, of those that the spec says."""
    train = run.spec.get('train')
    steps = train.get('steps') if isinstance(train, dict) else None
    last = max((row['step'] for row in run.rows if is_number(row.get('step'))), default=0)
    return f'{last:,} of {steps:,}' if is_number(steps) else f'{last:,}'
