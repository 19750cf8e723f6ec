"""Caption of the table of perplexities."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.figures.claims.ablations import AblationRow
from experiments.figures.given import FigureInput
from experiments.figures.look import captions
from experiments.figures.read.tables import paper, perplexity_rows
from experiments.figures.read.tables.perplexity_rows import LONGPPL, PerplexityRow

DECIMALS = {'byte': 2}  # of a perplexity, by what a position is; else 1, as the paper has


def caption(given: FigureInput, rows: Sequence[PerplexityRow]) -> str:
    labelled = {r.name: [given.records[name] for name in r.names] for r in rows if r.names}
    sentences = [
        _what(given, rows),
        units(token_name(given, rows), given.options.get('roles', {}).get('base', '')),
        _factors(rows),
        _longppl(given, rows),
        *paper.notes(row.paper for row in rows),
        captions.sources(labelled) if labelled else '',
    ]
    return ' '.join(sentence for sentence in sentences if sentence)


def _longppl(given: FigureInput, rows: Sequence[PerplexityRow]) -> str:
    """LongPPL's key tokens, in a sentence; '' where no column has it."""
    names = [name for row in rows for name in row.names]
    kinds = {given.records[name].attributes['evaluation']: name for name in names}
    if LONGPPL not in kinds:
        return ''
    facts = given.records[kinds[LONGPPL]].attributes
    return (
        'LongPPL (arXiv:2410.23771) is of the key tokens of texts of each length: for the model '
        f'{facts["evaluator"]} their loss after a short context of {facts["short"]:,}, in steps of '
        f'{facts["stride"]:,}, is more than {facts["gain"]:g} nats above that after all tokens '
        f'before them, and the latter is below {facts["ceiling"]:g} nats, which bounds its own '
        'LongPPL.'
    )


def token_name(given: FigureInput, rows: Sequence[PerplexityRow | AblationRow]) -> str:
    """Name of a position in the records of `rows`."""
    names = [name for row in rows for name in row.names]
    return captions.token_name(given.records[names[0]]) if names else 'token'


def _what(given: FigureInput, rows: Sequence[PerplexityRow]) -> str:
    names = [name for row in rows for name in row.names]
    length = f' = {given.records[names[0]].attributes["train_length"]:,}' if names else ''
    return (
        f'Perplexity in sliding windows, their lengths in multiples of the training length L'
        f"{length}: ours, the mean over seeds, next to the paper's Table 2 ({paper.SOURCE}), whose "
        f'L is {paper.LENGTH:,}.'
    )


def comparable(token: str) -> bool:
    """Whether ours are of the unit of the paper's, whose positions are tokens."""
    return token != 'byte'


def units(token: str, base: str = '') -> str:
    """Comparison of ours, for each byte, with the paper's. base: label of the row at L that ratios
    of the CSV refer to, '' for none."""
    ratio = f'; the CSV holds the ratio to the value of {base} at L' if base else ''
    if comparable(token):
        return ''
    return (
        "Ours is for each byte, the paper's for each token of models with 1.1B parameters: the "
        f'values cannot be compared, only their order and their ratios{ratio}.'
    )


def _factors(rows: Sequence[PerplexityRow]) -> str:
    single = [row for row in rows if row.variant == perplexity_rows.ONE_FACTOR]
    if not single:
        return ''
    best = {row.name: row for row in rows if row.variant == perplexity_rows.PER_WINDOW}
    chosen = []
    for row in single:
        found = ', '.join(f'{value.factor:g}' for value in best[row.name].values.values())
        offered = ', '.join(f'{choice["factor"]:g}' for choice in row.option['choices'])
        chosen.append(f'{row.name}: {found} of {offered}')
    return (
        'Methods with a factor are shown with the best one for each window, and with the one that '
        'has the lowest mean loss over all cells, both chosen on the text they are reported on, '
        "as the paper's best results may be; the paper's numbers stand beside both. Best factors "
        f'from the left: {"; ".join(chosen)}.'
    )
