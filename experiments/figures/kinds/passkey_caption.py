"""Caption of passkey figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiments.figures.given import FigureInput
from experiments.figures.look import captions
from experiments.figures.read.passkey_panel import PasskeyPanel
from nope.records import Records

PAPER_TEMPLATE = 'paper'
RETRIEVAL = 'retrieval'  # kind of source


def caption(given: FigureInput, panels: Sequence[PasskeyPanel], missing: Mapping[str, str]) -> str:
    """missing: label -> why there is no panel."""
    labelled = {p.label: [given.records[n] for n in p.names] for p in panels}
    sentences = [
        'Passkey retrieval: accuracy by nominal length of the prompt and by depth, the share of '
        'the prompt in front of the key.',
        _cells(panels),
        _lengths(panels, token_name(given, panels)),
        _line(panels, labelled, token_name(given, panels)),
        'Percent above a panel: the mean over all cells of nominal lengths up to the one beside '
        'it.',
        _seeds(panels),
        _templates(panels),
        *(f'{label} is not drawn: {reason.rstrip(".")}.' for label, reason in missing.items()),
        captions.sources(labelled),
        _retrieval(labelled),
    ]
    return ' '.join(sentence for sentence in sentences if sentence)


def token_name(given: FigureInput, panels: Sequence[PasskeyPanel]) -> str:
    """'token' where panels differ, 'byte' where bytes are all that there is."""
    found = {captions.token_name(given.records[p.names[0]]) for p in panels}
    return found.pop() if len(found) == 1 else 'token'


def _cells(panels: Sequence[PasskeyPanel]) -> str:
    found: dict[str, list[str]] = {}
    for p in panels:
        count = f'{p.tests:,} prompts' if p.tests > 1 else 'one prompt'
        found.setdefault(count, []).append(p.label)
    return f'A cell is the share of {_by_label(found)} answered with exactly the key.'


def _lengths(panels: Sequence[PasskeyPanel], token: str) -> str:
    """True numbers of tokens of prompts: the protocol counts each piece alone."""
    shares = [100 * share for p in panels for share in p.tokens / p.lengths]
    longest: dict[int, set[int]] = {}
    for p in panels:
        longest.setdefault(int(p.lengths[-1]), set()).add(round(float(p.tokens[-1])))
    examples = '; '.join(
        f'nominal {length:,}: {" or ".join(f"{t:,}" for t in sorted(tokens))}'
        for length, tokens in sorted(longest.items())
    )
    return (
        'Nominal lengths leave room for the answer and count each piece of a prompt alone: true '
        f'prompts have {min(shares):.1f} % to {max(shares):.1f} % as many {token}s ({examples}).'
    )


def _line(
    panels: Sequence[PasskeyPanel], labelled: Mapping[str, Sequence[Records]], token: str
) -> str:
    """Kind of length at the black line (training, tuning, search), or else its place."""
    kinds: set[str] = set()
    others: dict[str, list[str]] = {}
    for p in panels:
        made_at = _made_at(labelled[p.label][0])
        kind = next((kind for kind, made in made_at.items() if made == p.context), None)
        if kind:
            kinds.add(kind)
            continue
        place = f'the window of {p.context:,} {token}s'
        latest, made = next(iter(made_at.items()))
        where = '' if latest == 'training' else f' where the {latest} length is {made:,}'
        others.setdefault(place + where, []).append(p.label)
    words = [kind for kind in ('training', 'tuned', 'searched') if kind in kinds]
    marked = [f'the {captions.join(words, "or")} length'] if words else []
    marked += [f'{place} ({"; ".join(labels)})' for place, labels in others.items()]
    return f'Black line: {", ".join(marked)}.'


def _made_at(records: Records) -> dict[str, int]:
    """Lengths that a model was searched, tuned and trained at, the latest first."""
    facts = records.attributes
    lengths = {kind: facts.get(f'{kind}_length') for kind in ('searched', 'tuned')}
    found = {kind: int(length) for kind, length in lengths.items() if length}
    return found | {'training': int(facts['train_length'])}


def _seeds(panels: Sequence[PasskeyPanel]) -> str:
    """Panels that are means over several runs, and how far the averages of models lie apart."""
    spread = []
    for p in panels:
        if len(p.runs) == 1:
            continue
        by_seed = p.inside_by_seed
        apart = (
            f', by seed {100 * by_seed.min():.0f} % to {100 * by_seed.max():.0f} % inside'
            if by_seed is not None and len(by_seed) > 1
            else ''
        )
        spread.append(f'{p.label} ({len(p.runs)}: seeds {"; ".join(p.runs)}{apart})')
    return f'Means over several runs: {"; ".join(spread)}.' if spread else ''


def _templates(panels: Sequence[PasskeyPanel]) -> str:
    found: dict[str, list[str]] = {}
    for p in panels:
        form = "the paper's" if p.template == PAPER_TEMPLATE else "a brief form of the paper's"
        found.setdefault(f'the template {p.template!r}, {form}', []).append(p.label)
    return f'Prompts follow {_by_label(found)}.'


def _by_label(found: Mapping[str, Sequence[str]]) -> str:
    """The one fact, or every fact with the labels that it is true of."""
    if len(found) == 1:
        return next(iter(found))
    return ', '.join(f'{fact} ({"; ".join(labels)})' for fact, labels in found.items())


def _retrieval(labelled: Mapping[str, Sequence[Records]]) -> str:
    """Models that were trained on documents of this kind. An imported model used as it comes did
    not learn from the records' data."""
    seen = []
    for label, (records, *_) in labelled.items():
        facts = records.attributes
        if RETRIEVAL in facts.get('sources', ()) and (facts['step'] or not facts.get('origin')):
            seen.append(label)
    if not seen:
        return ''
    return f'Synthetic retrieval documents are part of the training data of: {"; ".join(seen)}.'
