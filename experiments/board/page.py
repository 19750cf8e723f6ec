"""The board as text: Markdown for people, CSV and JSON for programs."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from experiments.board.decisions import DISAGREE, Decision, Missing, Standing
from experiments.figures.base import csv_text
from experiments.figures.claims import by_kind, verdict
from experiments.figures.claims.catalogue import SOURCES
from experiments.figures.claims.decide import Rule
from experiments.figures.claims.headline import Number
from experiments.figures.claims.verdict import FAILS, HOLDS, NOT_MEASURED, READING, UNDECIDED
from experiments.figures.look import captions

# A verdict in one sign, which needs no colour.
MARKS = {
    HOLDS: '\N{CHECK MARK}',
    FAILS: '\N{BALLOT X}',
    UNDECIDED: '~',
    READING: '\N{MIDDLE DOT}',
    DISAGREE: '\N{NOT EQUAL TO}',
    NOT_MEASURED: '\N{EN DASH}',
}
FEW = 3  # settings that are named beside a figure
LONGEST = 200  # characters of a line of the page
# What readers of the papers and of split heads ask for first; the first five stand on top.
HEADLINES = (
    *('parity', 'headscale_beats_uniform', 'nope_ranks_first', 'keeps_loss', 'keys_far'),
    *('in_domain', 'uniform_hurts', 'fails_past_searched', 'passkey_reach'),
)
# Of configs that put the same claims of split heads to other models or prompts: which.
ASKED: Mapping[str, str] = {
    'frontier': 'with lambda',
    'split_passkey': 'with lambda',
    'split_seeds': 'as trained',
    'split_text': 'as trained, in real text',
    'split_window': 'as trained',
}
ELEVEN = 'Eleven claims of the first paper'

Link = Callable[[Decision], str]


def markdown(
    board: Sequence[Standing], sizes: Sequence[str], link: Link, missing: Sequence[Missing] = ()
) -> str:
    """The page: five claims with every seed, then one line a claim, then figures that are missing.
    link: the file of a decision."""
    named = captions.join([f'`{size}`' for size in sizes])
    signs = ', '.join(f'{MARKS[v]} {v}' for v in MARKS)
    parts = [
        '# Claims',
        f'Signs, at {named}: {signs}. Brackets: the 95 % interval over seeds. The figures with the '
        'most seeds decide. Every statement and number stands in the files.',
        f'## Five claims\n\n{_first_five(board, sizes, link)}',
    ]
    grouped = {ELEVEN: [s for s in board if s.claim.number is not None]}
    for source, claims in SOURCES.items():
        grouped[source] = [s for s in board if s.claim in claims and s.claim.number is None]
    for title, members in grouped.items():
        heads = ['', 'claim', 'printed', 'ours at the largest size', 'file']
        lines = [_line(heads), _line(['---'] * len(heads))]
        lines += [_row(standing, sizes, link) for standing in members]
        parts.append(f'## {title}\n\n' + '\n'.join(lines))
    changed = {
        f'`{d.figure}` at `{d.size}` with {_text(", ".join(d.summary.changed))}': None
        for standing in board
        for d in standing.decisions
        if d.summary.changed
    }
    if changed:
        parts.append(f"Drawn with settings that are not their configs': {'; '.join(changed)}.")
    if missing:
        lines = [_line(['figure', 'why', 'what to do']), _line(['---'] * 3)]
        lines += [_line([f'`{m.figure}`', _text(m.reason), _text(m.remedy)]) for m in missing]
        parts.append('## Missing figures\n\n' + '\n'.join(lines))
    return '\n\n'.join(parts) + '\n'


def _first_five(board: Sequence[Standing], sizes: Sequence[str], link: Link) -> str:
    heads = ['claim', 'limit', 'size', '', 'every seed', 'date', 'commit', 'device']
    lines = [_line(heads), _line(['---'] * len(heads))]
    by_id = {standing.claim.id: standing for standing in board}
    for standing in (by_id[name] for name in HEADLINES[:5]):
        for size in (size for size in sizes if standing.at(size)):
            decision = _shown(standing, size)
            drawn = decision.summary.drawn_by[-1] if decision.summary.drawn_by else {}
            limit, file = _rule(standing.claim.id, decision).limit, link(decision)
            cells = [_text(standing.claim.short), limit, f'[{size}]({file})']
            cells += [MARKS[standing.verdict(size)], _seeds(decision), decision.summary.date]
            cells += [str(drawn.get('commit') or '')[:7], str(drawn.get('device') or '')]
            lines.append(_line(cells))
    return '\n'.join(lines)


def _rule(claim: str, decision: Decision) -> Rule[Any]:
    """That by which the figure decided the claim; one of the claim for results of earlier rules."""
    rules = by_kind.of_claim(claim)
    said = [rule for rule in rules if decision.statement.startswith(rule.statement)]
    return (said or rules)[0]


def _deciding(claim: str, decision: Decision) -> Number:
    """The number that alone would have its verdict; the first where no limit is known."""
    holds = verdict.holds(decision.verdict)
    for number, part in itertools.product(decision.numbers, _rule(claim, decision).parts):
        found, of_part = number.interval, number.what.startswith(part.what or part.name)
        if found and of_part and part.unit == number.unit and part.bound.holds(found) is holds:
            return number
    return decision.numbers[0]


def _seeds(decision: Decision) -> str:
    """The number that decides, by seed."""
    if not decision.numbers:
        return ''
    number = decision.numbers[0]
    each = ['none' if v is None else number.digits(v) for v in number.by_seed]
    return f'{", ".join(each)} {number.unit}'.rstrip()


def _shown(standing: Standing, size: str) -> Decision:
    """The first decision with the verdict of the size, else the first one."""
    found = standing.deciding(size)
    agreed = [d for d in found if d.verdict == standing.verdict(size)]
    return (agreed or list(found))[0]


def _row(standing: Standing, sizes: Sequence[str], link: Link) -> str:
    """One claim: a sign for each size, the number that decides at the largest, and its file."""
    claim, signs = standing.claim, ' '.join(MARKS[standing.verdict(size)] for size in sizes)
    cells = [signs, _text(claim.short), _text(claim.printed)]
    measured = [size for size in sizes if standing.at(size)]
    if not measured:
        return _line([*cells, '', ', '.join(f'`{name}`' for name in standing.configs[:2])])
    decision = _shown(standing, measured[-1])
    file = f'[{decision.figure}]({link(decision)})'
    room = LONGEST - len(_line([*cells, '', file]))
    number = _deciding(claim.id, decision)
    said = _text(number.said())
    if len(said) > room:
        what = textwrap.shorten(_text(number.what), room - len(number.value()) - 1)
        said = f'{what} {number.value()}'
    return _line([*cells, said, file])


def records(board: Sequence[Standing], sizes: Sequence[str]) -> list[dict[str, Any]]:
    """The board in tidy long form: a row for each claim, size and figure. A claim without a figure
    has a row too."""
    return [
        {
            'number': s.claim.number or '',
            'claim': s.claim.id,
            'short': s.claim.short,
            'paper': s.claim.paper,
            'printed': s.claim.printed,
            'configs': list(s.configs),
            'size': size,
            'size_verdict': s.verdict(size),
            'figure': d.figure if d else '',
            'seeds': list(d.seeds) if d else [],
            'verdict': d.verdict if d else NOT_MEASURED,
            'headline': d.headline if d else '',
            'statement': d.statement if d else '',
            'changed': list(d.summary.changed) if d else [],
            'numbers': d.numbers if d else (),
        }
        for s in board
        for size in sizes
        for d in s.at(size) or (None,)
    ]


def csv(board: Sequence[Standing], sizes: Sequence[str]) -> str:
    """One line for each of `records`."""
    return csv_text(
        [
            {k: ' '.join(map(str, v)) if isinstance(v, list) else v for k, v in found.items()}
            for found in records(board, sizes)
            if found.pop('numbers') is not None
        ]
    )


def as_json(
    board: Sequence[Standing], sizes: Sequence[str], missing: Sequence[Missing] = ()
) -> dict[str, Any]:
    """All of it: sizes, claims by `records` with their numbers, figures that are missing."""
    return {
        'sizes': list(sizes),
        'claims': [
            {**found, 'numbers': [n.stated() for n in found['numbers']]}
            for found in records(board, sizes)
        ],
        'missing': [vars(m) for m in missing],
    }


def said(decision: Decision) -> str:
    """'fig1, 3 seeds: NoPE - RoPE 0.180 nats'. The models asked and a few settings of its own stand
    before the numbers."""
    asked = f' ({ASKED[decision.figure]})' if decision.figure in ASKED else ''
    count, settings = len(decision.seeds), decision.summary.changed
    seeds = f', {count} seeds' if count > 1 else ''
    others = f' and {len(settings) - FEW} more' if len(settings) > FEW else ''
    changed = f', drawn with {", ".join(settings[:FEW])}{others}' if settings else ''
    return f'{decision.figure}{asked}{seeds}{changed}: {decision.headline}'


def _line(cells: Sequence[str]) -> str:
    return f'| {" | ".join(cells)} |'


def _text(text: str) -> str:
    """Without what Markdown takes for the end of a cell or for the beginning of a tag."""
    return text.replace('|', r'\|').replace('<', r'\<').replace('\n', ' ')
