"""The board as text: Markdown for people, CSV and JSON for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from experiments.board.decisions import DISAGREE, NOT_MEASURED, Decision, Missing, Row
from experiments.board.entries import ASKED
from experiments.figures.base import csv_text
from experiments.figures.look import captions

# A verdict in one sign, which needs no colour.
MARKS = {
    'holds': '\N{CHECK MARK}',
    'does not hold': '\N{BALLOT X}',
    'undecided': '~',
    'reading': '\N{MIDDLE DOT}',
    DISAGREE: '\N{NOT EQUAL TO}',
    NOT_MEASURED: '\N{EN DASH}',
}
FEW = 3  # settings that are named beside a figure
GROUPS = ('The eleven claims of the paper', 'Other claims')


def markdown(rows: Sequence[Row], sizes: Sequence[str], missing: Sequence[Missing] = ()) -> str:
    """The whole board: the eleven claims with counts, the others, figures that are missing."""
    parts = ['# Claims', _legend(sizes), _changed(rows)]
    for title, members in grouped(rows):
        parts += [f'## {title}', counts(members, sizes), table(members, sizes)]
    if missing:
        lines = ['| figure | why | what to do |', '|---|---|---|']
        lines += [f'| `{m.figure}` | {_text(m.reason)} | {_text(m.remedy)} |' for m in missing]
        parts += ['## Missing figures', '\n'.join(lines)]
    return '\n\n'.join(part for part in parts if part) + '\n'


def grouped(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """The eleven claims and the others, each with its title."""
    numbered = [row for row in rows if row.number is not None]
    return list(zip(GROUPS, (numbered, [r for r in rows if r.number is None]), strict=True))


def counts(rows: Sequence[Row], sizes: Sequence[str]) -> str:
    """'At `quick`, of 14 rows: holds 3 (1 by one seed), does not hold 2, not measured 9.', a line a
    size."""
    lines = []
    for size in sizes:
        found = Counter(row.verdict(size) for row in rows)
        alone = Counter(row.verdict(size) for row in rows if row.by_one_seed(size))
        said = ', '.join(
            f'{v} {found[v]}' + (f' ({alone[v]} by one seed)' if alone[v] else '')
            for v in MARKS
            if found[v]
        )
        lines.append(f'At `{size}`, of {len(rows)} rows: {said}.')
    return '\n\n'.join(lines)


def table(rows: Sequence[Row], sizes: Sequence[str]) -> str:
    """One row a claim: number, claim, the source's numbers, ours by size."""
    heads = ['', 'claim', 'printed', *(f'ours at `{size}`' for size in sizes)]
    lines = [_line(heads), _line(['---'] * len(heads))]
    for row in rows:
        title = f'{_text(row.short)} (`{row.id}`)'
        cells = [str(row.number or ''), title, _text(row.printed)]
        lines.append(_line([*cells, *(_cell(row, size) for size in sizes)]))
    return '\n'.join(lines)


def records(rows: Sequence[Row], sizes: Sequence[str]) -> list[dict[str, Any]]:
    """The board in tidy long form: a claim, a size and a figure that decided it, with an empty
    figure where none did."""
    found = []
    for row in rows:
        for size in sizes:
            for decision in row.at(size) or (None,):
                found.append(_facts(row) | _decided(row, size, decision))
    return found


def csv(rows: Sequence[Row], sizes: Sequence[str]) -> str:
    """One line for each of `records`."""
    lines = [
        {k: ' '.join(map(str, v)) if isinstance(v, list) else v for k, v in found.items()}
        for found in records(rows, sizes)
    ]
    return csv_text([{k: v for k, v in line.items() if k != 'numbers'} for line in lines])


def as_json(
    rows: Sequence[Row], sizes: Sequence[str], missing: Sequence[Missing] = ()
) -> dict[str, Any]:
    """All of it: sizes, claims by `records` with their numbers, figures that are missing."""
    return {
        'sizes': list(sizes),
        'claims': [
            {**found, 'numbers': [n.stated() for n in found['numbers']]}
            for found in records(rows, sizes)
        ],
        'missing': [vars(m) for m in missing],
    }


def said(decision: Decision) -> str:
    """The figure and its headline, 'fig1: NoPE - RoPE 0.180 nats'; between them what it asked of
    which model where figures differ in that, and a few settings that are not its config's."""
    asked = f' ({ASKED[decision.figure]})' if decision.figure in ASKED else ''
    count = len(decision.seeds)
    seeds = f', {count} seeds' if count > 1 else ''
    shown, more = decision.changed[:FEW], len(decision.changed[FEW:])
    others = f' and {more} more' if more else ''
    changed = f', drawn with {", ".join(shown)}{others}' if shown else ''
    return f'{decision.figure}{asked}{seeds}{changed}: {decision.headline}'


def _facts(row: Row) -> dict[str, Any]:
    return {
        'number': row.number or '',
        'claim': row.id,
        'short': row.short,
        'paper': row.paper,
        'printed': row.printed,
        'configs': list(row.configs),
    }


def _decided(row: Row, size: str, decision: Decision | None) -> dict[str, Any]:
    return {
        'size': size,
        'size_verdict': row.verdict(size),
        'figure': decision.figure if decision else '',
        'seeds': list(decision.seeds) if decision else [],
        'verdict': decision.verdict if decision else NOT_MEASURED,
        'headline': decision.headline if decision else '',
        'statement': decision.statement if decision else '',
        'changed': list(decision.changed) if decision else [],
        'numbers': decision.numbers if decision else (),
    }


def _legend(sizes: Sequence[str]) -> str:
    signs = ', '.join(f'{MARKS[v]} {v}' for v in MARKS)
    named = captions.join([f'`{size}`' for size in sizes])
    return (
        f'What figures at {named} decided of each claim, one row a claim: the numbers '
        'that the paper or another source prints, and ours in the words of the figure that '
        'decided it, in brackets with the 95 percent interval of the mean over seeds where there '
        'are several, or of one seed by resamples of its documents or prompts where it says so. '
        f'{signs}. Figures that decide the same claim stand under each other; those '
        'with the most seeds decide, and none may say the opposite. Of a claim that no figure '
        'decided, the configs that would are named.'
    )


def _changed(rows: Sequence[Row]) -> str:
    """Figures of the rows that were drawn with settings of their own, '' where there are none."""
    found = {
        f'`{decision.figure}` at `{decision.size}` with {_text(", ".join(decision.changed))}': None
        for row in rows
        for decision in row.decisions
        if decision.changed
    }
    return f"Drawn with settings that are not their configs': {'; '.join(found)}." if found else ''


def _cell(row: Row, size: str) -> str:
    """Verdict of the size, and every figure's with its numbers."""
    decisions = row.at(size)
    verdict = row.verdict(size)
    head = f'{MARKS[verdict]} {verdict}'
    if not decisions:
        return f'{head} ({", ".join(f"`{name}`" for name in row.configs)})'
    mixed = row.mixed(size)
    lines = [f'{_verdict(d) if mixed else ""}{_text(said(d))}' for d in decisions]
    return '<br>'.join([f'**{head}**', *lines])


def _verdict(decision: Decision) -> str:
    return f'{MARKS[decision.verdict]} {decision.verdict}, '


def _line(cells: Sequence[str]) -> str:
    return f'| {" | ".join(cells)} |'


def _text(text: str) -> str:
    """Without what Markdown takes for the end of a cell or for the beginning of a tag."""
    return text.replace('|', r'\|').replace('<', r'\<').replace('\n', ' ')
