"""The board as a page in Markdown."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from experiments import config_files
from experiments.board.decisions import DISAGREE, Decision, Standing
from experiments.board.words import worded
from experiments.figures import by_kind
from experiments.figures.claims import verdict
from experiments.figures.claims.catalogue import SOURCES
from experiments.figures.claims.decide import Rule
from experiments.figures.claims.headline import Number
from experiments.figures.claims.verdict import FAILS, HOLDS, NOT_MEASURED, READING, UNDECIDED
from experiments.figures.look import captions, web

# A verdict in one sign, which needs no colour.
MARKS = {
    HOLDS: '\N{CHECK MARK}',
    FAILS: '\N{BALLOT X}',
    UNDECIDED: '~',
    READING: '\N{MIDDLE DOT}',
    DISAGREE: '\N{NOT EQUAL TO}',
    NOT_MEASURED: '\N{EN DASH}',
}
LONGEST = 200  # characters of a line of the page
# What readers of the papers and of split heads ask for first.
HEADLINES = ('parity', 'headscale_beats_uniform', 'nope_ranks_first', 'keeps_loss', 'keys_far')
GLOSSARY = (
    'Words: a bend is the position from which the loss stays 0.1 nats above its mean over '
    '[L/2, L], or the entropy 0.1 bits above its line against ln i on [L/4, L]; reach, the longest '
    'length up to which half of the keys are repeated at each length, in windows of L or of the '
    "search; rank, an encoding's place on a task; factor, by which NTK and YaRN stretch positions. "
    '"Highest" and the like name the case that decides.'
)
# Of the seeds that a verdict rests on, behind its sign.
SMALL = str.maketrans(
    '0123456789',
    '\N{SUPERSCRIPT ZERO}\N{SUPERSCRIPT ONE}\N{SUPERSCRIPT TWO}\N{SUPERSCRIPT THREE}'
    '\N{SUPERSCRIPT FOUR}\N{SUPERSCRIPT FIVE}\N{SUPERSCRIPT SIX}\N{SUPERSCRIPT SEVEN}'
    '\N{SUPERSCRIPT EIGHT}\N{SUPERSCRIPT NINE}',
)
MOST = 2  # numbers in a row, of a rule that holds several against its limits

Link = Callable[[Decision], str]


def markdown(board: Sequence[Standing], sizes: Sequence[str], link: Link) -> str:
    """The page: five claims with every seed, then one line a claim and text. link: the file of a
    decision."""
    named = captions.join([f'`{size}`' for size in sizes])
    signs = ', '.join(f'{MARKS[v]} {v}' for v in MARKS if v not in (READING, NOT_MEASURED))
    parts = [
        '# Claims',
        f'Signs, at {named}: {signs}, {MARKS[NOT_MEASURED]} not measured. The small number counts '
        'the seeds; of one there is no interval, and its verdict is weaker. Brackets: the 95 % '
        'interval over seeds. '
        'The figures with the most seeds decide. If one of them is undecided, so is the claim. '
        f'{MARKS[DISAGREE]}: another figure has the opposite verdict. A claim has a line for each '
        'text and kind of split heads, and no verdict mixes two. Each file has the statements. The '
        "first paper's eleven claims are numbered, some in parts.",
        GLOSSARY,
        f'## Five claims\n\n{_first_five(board, sizes, link)}',
    ]
    for title, claims in SOURCES.items():
        members = [s for s in board if s.claim in claims]
        heads = ['', 'text', 'claim', 'printed', 'ours at the largest size', 'file, date']
        lines = [web.row(heads), web.row(['---'] * len(heads))]
        lines += [_row(s, sizes, link) for s in members if not _folded(s)]
        parts.append(f'## {title}\n\n' + '\n'.join(lines))
    measured = {s.claim.id for s in board if s.decisions}
    folded = {
        'Not measured': [_configs(s) for s in board if s.claim.id not in measured],
        'Readings, with nothing to decide': [_reading(s, link) for s in board if _read(s)],
    }
    parts.append(' '.join(f'{k}: {"; ".join(map(web.cell, v))}.' for k, v in folded.items() if v))
    changed = {
        f'`{d.figure}` at `{d.size}` with {web.cell(", ".join(d.summary.changed))}': None
        for standing in board
        for d in standing.decisions
        if d.summary.changed
    }
    if changed:
        parts.append(f"Drawn with settings that are not their configs': {'; '.join(changed)}.")
    return '\n\n'.join(parts) + '\n'


def _first_five(board: Sequence[Standing], sizes: Sequence[str], link: Link) -> str:
    heads = ['claim', 'limit', 'text', 'size', '', 'every seed', 'file, date']
    lines, differ = [web.row(heads), web.row(['---'] * len(heads))], []
    said: tuple[str, ...] = ()  # by the line above
    for standing in (s for name in HEADLINES for s in board if s.claim.id == name):
        for size in (size for size in sizes if standing.at(size)):
            decision = _shown(standing, size)
            claim, text = web.cell(standing.claim.short), decision.summary.text
            limit = _rule(standing.claim.id, decision).limit
            of = claim + standing.asked, limit
            each = _seeds(standing.claim.id, decision)
            cells = [text, size, _sign(standing, size), each, _file(decision, link)]
            lines.append(web.row([*(('', '') if of == said else of), *cells]))
            said = of
            if len({d.verdict for d in standing.deciding(size)}) > 1:
                found = [_differs(standing.claim.id, d) for d in standing.deciding(size)]
                differ.append(f'{claim} at `{size}` ({text}): {"; ".join(found)}.')
    return '\n\n'.join(['\n'.join(lines), *(f'Figures differ. {text}' for text in differ)])


def _differs(claim: str, decision: Decision) -> str:
    said = web.cell(worded(_deciding(claim, decision)).said())
    return f'{MARKS[decision.verdict]} `{decision.figure}`, {said}'


def _file(decision: Decision, link: Link) -> str:
    name = _drawn_by(decision)
    return f'[{name}]({link(decision)}) {decision.summary.date}'.rstrip()


def _rule(claim: str, decision: Decision) -> Rule[Any]:
    """That by which the figure decided the claim; one of the claim for results of earlier rules."""
    rules = by_kind.of_claim(claim)
    said = [rule for rule in rules if decision.statement.startswith(rule.statement)]
    return (said or rules)[0]


def _deciding(claim: str, decision: Decision) -> Number:
    """The number that alone would have its verdict; the first where no limit is known."""
    holds, parts = verdict.holds(decision.verdict), _rule(claim, decision).parts
    for number, part in itertools.product(decision.numbers, parts):
        same = [other for other in parts if other.unit == part.unit]
        of_part = len(same) == 1 or number.what.startswith(part.what or part.name)
        found = number.interval
        if found and of_part and part.unit == number.unit and part.bound.holds(found) is holds:
            return number
    return decision.numbers[0]


def _seeds(claim: str, decision: Decision) -> str:
    """The number that decides, by seed, and the case that it is of."""
    if not decision.numbers:
        return ''
    number = _deciding(claim, decision)
    each = ['none' if v is None else number.digits(v) for v in number.by_seed]
    _, colon, case = worded(number).what.rpartition(': ')
    return f'{", ".join(each)} {number.unit}'.rstrip() + f' ({case})' * bool(colon)


def _sign(standing: Standing, size: str) -> str:
    """The verdict of a size, with the number of seeds behind it."""
    found = standing.deciding(size)
    seeds = len(found[0].seeds) if found else 0
    return MARKS[standing.verdict(size)] + str(seeds or '').translate(SMALL)


def _shown(standing: Standing, size: str) -> Decision:
    """That of one config at all sizes (`_config`). Where it has none at this size, the first with
    the claim's verdict."""
    best = _config(standing)
    found = standing.deciding(size)
    own = [d for d in found if _drawn_by(d) == best]
    agreed = [d for d in found if d.verdict == standing.verdict(size)]
    return (own or agreed or list(found))[0]


def _config(standing: Standing) -> str:
    """The config whose figure is shown: on another text that of the first text, if it has one; else
    that with the most sizes, then with the claim's verdict at most of them."""
    several = list(dict.fromkeys(map(_drawn_by, standing.decisions)))
    if standing.first is not None and standing.first.decisions:
        same = _config(standing.first)
        if same in several:
            return same
    sizes = list(dict.fromkeys(d.size for d in standing.decisions))
    leading = [d for size in sizes for d in standing.deciding(size)]

    def weight(config: str) -> tuple[int, int]:
        agreed = [d for d in leading if d.verdict == standing.verdict(d.size)]
        measured, agreeing = (
            len([d for d in some if _drawn_by(d) == config])
            for some in (standing.decisions, agreed)
        )
        return measured, agreeing

    return max(several, key=weight)


def _drawn_by(decision: Decision) -> str:
    """The config of its figure."""
    return config_files.parted(decision.figure)[0]


def _read(standing: Standing) -> bool:
    return standing.claim.reading and bool(standing.decisions)


def _folded(standing: Standing) -> bool:
    """Whether a line below the tables names it: it decides nothing."""
    return standing.claim.reading or not standing.decisions


def _configs(standing: Standing) -> str:
    names = ', '.join(f'`{name}`' for name in standing.configs[:2])
    return f'{standing.claim.short} ({names})'


def _reading(standing: Standing, link: Link) -> str:
    found = _shown(standing, standing.decisions[-1].size)
    return f'{standing.claim.short} ([{found.figure}]({link(found)}))'


def _row(standing: Standing, sizes: Sequence[str], link: Link) -> str:
    """One claim on one text: a sign for each size, what decides at the largest, and its file."""
    claim, signs = standing.claim, ' '.join(_sign(standing, size) for size in sizes)
    named = f'{claim.number}. {claim.short}' if claim.number else claim.short
    decision = _shown(standing, [size for size in sizes if standing.at(size)][-1])
    cells = [signs, decision.summary.text, web.cell(named) + standing.asked]
    cells.append(web.cell(claim.printed) or 'ours')
    file = _file(decision, link)
    room = LONGEST - len(web.row([*cells, '', file]))
    number = worded(_deciding(claim.id, decision))
    said = web.cell(number.said())
    if len(said) > room:
        what = textwrap.shorten(web.cell(number.what), room - len(number.value()) - 1)
        said = f'{what} {number.value()}'
    if not _rule(claim.id, decision).parts:
        several = '; '.join(web.cell(worded(n).said()) for n in decision.numbers[:MOST])
        said = several if len(several) <= room else said
    return web.row([*cells, said, file])
