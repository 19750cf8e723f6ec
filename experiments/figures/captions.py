"""Sentences that say where the numbers of a figure come from.

What records were measured on they say themselves, in the attribute `measured_on`:
{'what': 'pg19', 'how': 'windows of up to 4,096 tokens, ...', 'own_text': False}. `how` comes in
brackets after `what`, once where several records share it. own_text: whether `what` names the text
that the model was trained on, which is then not named twice. Records written before there was such
an attribute are described here, by their evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nope.records import Records

# Of records without `measured_on`: evaluations on windows of the training data's own validation or
# test split.
_OWN_TEXT = ('positions', 'multiplier_grid', 'lengths')


def token_name(records: Records) -> str:
    """Name of a position: the attribute 'token' ('byte', 'token')."""
    return str(records.attributes.get('token', 'token'))


def amount(count: int) -> str:
    """4915200 -> '4.9M', 104857600000 -> '105B'."""
    for size, suffix in ((10**9, 'B'), (10**6, 'M'), (10**3, 'k')):
        if count >= size:
            value = count / size
            return f'{value:.0f}{suffix}' if value >= 100 else f'{value:.2g}{suffix}'
    return str(count)


def sources(labelled: Mapping[str, Sequence[Records]]) -> str:
    """Model, training data, tokens and seeds of each label, then what they were measured on.

    labelled: the records of each label, several by seed or by what they were measured on.
    Labels that share a fact share the sentence.
    """
    trained: dict[str, list[str]] = {}
    measured: dict[str, list[str]] = {}
    for label, records in labelled.items():
        lam = str(records[0].attributes.get('lam', '1'))
        noted = label if lam == '1' or lam in label else f'{label} (lambda: {lam})'
        trained.setdefault(_training(records), []).append(noted)
        measured.setdefault(measured_on(*records), []).append(label)
    sentences = [f'{"; ".join(labels)}: {fact}.' for fact, labels in trained.items()]
    if len(measured) == 1:
        return ' '.join([*sentences, f'Measured on {next(iter(measured))}.'])
    sentences += [f'{"; ".join(labels)}: measured on {fact}.' for fact, labels in measured.items()]
    return ' '.join(sentences)


def smoothing(half: int) -> str:
    return (
        f'The loss is smoothed by a centred moving average over {2 * half + 1} positions '
        f'(half-width {half}: the share of L that 50 is of 2,048; cut off at the edges)'
    )


def _training(records: Sequence[Records]) -> str:
    facts = records[0].attributes
    positions = dict.fromkeys(str(r.attributes['position']) for r in records)
    described = f'{facts["model"]}; position encoding: {" / ".join(positions)}'
    tuning = f'; {facts["tuning"]}' if facts.get('tuning') else ''
    origin = _imported(records) if facts.get('origin') else _pretrained(records)
    return f'{described}; {origin}{tuning}'


def _pretrained(records: Sequence[Records]) -> str:
    facts = records[0].attributes
    # Of a fine-tuned model the steps are those of its tuning.
    steps = '' if facts.get('tuning') else f'{facts["step"]:,} steps, '
    text = '' if _measured(records[0])['own_text'] else f' of {facts["data"]}'
    law = f'under lambda ({facts["law"]}) ' if facts.get('law') else ''
    tokens = f'{amount(facts["train_tokens"])} {token_name(records[0])}s'
    return (
        f'trained {law}on {tokens}{text} in sequences of L = {facts["train_length"]:,} '
        f'({steps}{_seeds(records)})'
    )


def _imported(records: Sequence[Records]) -> str:
    """Weights as they come have no seed of ours; what was searched or tuned on them has."""
    facts = records[0].attributes
    seeds = f', {_seeds(records)}' if facts['step'] else ''
    return f'imported from {facts["origin"]} (L = {facts["train_length"]:,}{seeds})'


def run_label(records: Records) -> str:
    """Seed of a run, and of a search the order of its examples, which tell it from its like."""
    seed, order = records.attributes['seed'], records.attributes.get('order')
    return str(seed) if order is None else f'{seed}, order {order}'


def _seeds(records: Sequence[Records]) -> str:
    seeds = sorted({str(r.attributes['seed']) for r in records})
    return f'seed{"s" if len(seeds) > 1 else ""} {_join(seeds)}'


def measured_on(*records: Records) -> str:
    """Objects of measurement: number, length and source of the windows, or the prompts of an
    evaluation by text. What was measured in the same way shares the brackets that tell the way."""
    found: dict[str, list[str]] = {}
    for r in records:
        measured = _measured(r)
        found.setdefault(measured['how'], []).append(measured['what'])
    return _join([f'{_join(list(dict.fromkeys(what)))} ({how})' for how, what in found.items()])


def _measured(records: Records) -> Mapping[str, Any]:
    """The attribute `measured_on`, composed where it is missing."""
    found = records.attributes.get('measured_on')
    if found is not None:
        return found
    evaluation = records.attributes['evaluation']
    what, how = _MEASURED_ON[evaluation](records)
    return {'what': what, 'how': how, 'own_text': evaluation in _OWN_TEXT}


def _own_windows(records: Records) -> tuple[str, str]:
    facts = records.attributes
    # An evaluation over several lengths cuts its windows from the longest.
    most = 'up to ' if facts['evaluation'] == 'lengths' else ''
    length = f'{most}{facts["length"]:,} {token_name(records)}s'
    return f'{facts["windows"]:,} windows of {length} of {facts["data"]}', f'{facts["split"]} split'


def _sliding(records: Records) -> tuple[str, str]:
    facts, token = records.attributes, token_name(records)
    longest = int(max(records.along('length', len(records['loss']))))
    start = ', each document after a BOS' if facts['bos'] else ''
    return str(facts['corpus']), (
        f'windows of up to {longest:,} {token}s, {facts["stride"]:,} apart, '
        f'{amount(facts["scored"])} {token}s scored for each length{start}'
    )


def _prompts(records: Records) -> tuple[str, str]:
    facts = records.attributes
    length = f'{facts["max_length"]:,} {token_name(records)}s'
    many = f'{facts["tests"]:,} for each length and depth'
    return f'pass keys in prompts of up to {length}', many


def _longbench(records: Records) -> tuple[str, str]:
    facts, samples = records.attributes, int(records['samples'].sum())
    beams = facts['beams']
    search = f'{beams} beams' if beams > 1 else 'greedy'
    length = f'{facts["max_length"]:,} {token_name(records)}s'
    return 'LongBench', f'{samples:,} prompts of up to {length}, {search}'


def _harness(records: Records) -> tuple[str, str]:
    facts, samples = records.attributes, int(records['samples'].sum())
    start = 'after a BOS' if facts['bos'] else 'without a BOS'
    return f'{samples:,} questions of {len(facts["metrics"])} tasks', f'zero-shot, {start}'


# Of records without `measured_on`: evaluation -> what it was measured on, and how.
_MEASURED_ON: Mapping[str, Callable[[Records], tuple[str, str]]] = {
    **dict.fromkeys(_OWN_TEXT, _own_windows),
    'perplexity': _sliding,
    'passkey': _prompts,
    'longbench': _longbench,
    'harness': _harness,
}


def _join(labels: list[str]) -> str:
    return labels[0] if len(labels) == 1 else ', '.join(labels[:-1]) + ' and ' + labels[-1]
