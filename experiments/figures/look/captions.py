"""Sentences about the origin of a figure's numbers.

Records have an attribute `measured_on`:
{'what': 'pg19', 'how': 'windows of up to 4,096 tokens, ...', 'own_text': False}. `how` comes in
brackets after `what`, once for several records.
Own text is the text of the training; it is not named twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.figures.look import natural
from nope.records import Records
from nope.runtime.amounts import amount


def token_name(records: Records) -> str:
    """Name of a position: the attribute 'token' ('byte', 'token')."""
    return str(records.attributes.get('token', 'token'))


def sources(labelled: Mapping[str, Sequence[Records]]) -> str:
    """Model, training data, tokens and seeds of each label, then what they were measured on.

    labelled: the records of each label, several by seed or by what they were measured on.
    Labels that share a fact share the sentence.
    """
    trained: dict[str, list[str]] = {}
    measured: dict[str, list[str]] = {}
    for label, records in labelled.items():
        trained.setdefault(_training(records), []).append(_with_lambda(label, records))
        measured.setdefault(measured_on(*records), []).append(label)
    sentences = [f'{"; ".join(labels)}: {fact}.' for fact, labels in trained.items()]
    if len(measured) == 1:
        return ' '.join([*sentences, f'Measured on {next(iter(measured))}.'])
    sentences += [f'{"; ".join(labels)}: measured on {fact}.' for fact, labels in measured.items()]
    return ' '.join(sentences)


def _with_lambda(label: str, records: Sequence[Records]) -> str:
    """The label, and behind it a lambda that is not 1 and that it does not say itself; of seeds
    that differ in it each one's."""
    found = _lambdas(records)
    lams = [' / '.join(found[seed]) for seed in sorted(found, key=natural.order)]
    if len(set(lams)) > 1:
        return f'{label} (lambda: {"; ".join(lams)} by seed)'
    return label if lams[0] == '1' or lams[0] in label else f'{label} (lambda: {lams[0]})'


def _lambdas(records: Sequence[Records]) -> dict[str, dict[str, None]]:
    """Lambdas of every seed, each once; records that are means over seeds count as those of all.
    Losses by length do not say it, but at which length it was searched."""
    found: dict[str, dict[str, None]] = {}
    silent: dict[str, str] = {}
    for r in records:
        seeds, searched = _seeds_of(r), r.attributes.get('searched_length')
        if 'lam' not in r.attributes:
            said = f'searched at {searched:,} {token_name(r)}s' if searched else '1'
            silent |= dict.fromkeys(seeds, said)
            continue
        lam = r.attributes['lam']
        lams = lam if isinstance(lam, tuple) else (lam,) * len(seeds)
        for seed, one in zip(seeds, lams, strict=True):
            found.setdefault(seed, {})[str(one)] = None
    return {seed: {said: None} for seed, said in silent.items()} | found


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
    dropped = f'; {facts["dropped"]}' if facts.get('dropped') else ''
    silenced = f'; without {_heads(facts["silenced"])}' if facts.get('silenced') else ''
    return f'{described}; {origin}{dropped}{tuning}{silenced}'


def _heads(pairs: Sequence[Sequence[int]]) -> str:
    """'head 1 of layer 0', '8 heads'."""
    if len(pairs) > 1:
        return f'{len(pairs)} heads'
    layer, head = pairs[0]
    return f'head {head} of layer {layer}'


def _pretrained(records: Sequence[Records]) -> str:
    facts = records[0].attributes
    # Of a fine-tuned model the steps are those of its tuning, of a searched one of its search.
    later = facts.get('tuning') or facts.get('searched_length')
    steps = '' if later else f'{facts["step"]:,} steps, '
    text = '' if records[0].attributes['measured_on']['own_text'] else f' of {facts["data"]}'
    law = f'under lambda ({facts["law"]}) ' if facts.get('law') else ''
    tokens = _amount_read(facts, token_name(records[0]))
    return (
        f'trained {law}on {tokens}{text} in sequences of L = {facts["train_length"]:,} '
        f'({steps}{_seeds(records)})'
    )


def _amount_read(facts: Mapping[str, Any], token: str) -> str:
    """'4.9M bytes', of a text that is shorter also how often it was read."""
    read, text = facts['train_tokens'], facts.get('text_tokens')
    if not text or text >= read:
        return f'{amount(read)} {token}s'
    return f'{amount(read)} {token}s ({amount(text)}, read {read / text:.2g} times)'


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
    seeds = sorted({seed for r in records for seed in _seeds_of(r)}, key=natural.order)
    return f'seed{"s" if len(seeds) > 1 else ""} {join(seeds)}'


def _seeds_of(records: Records) -> tuple[str, ...]:
    """The seed of a run; of means over seeds all of them."""
    seed = records.attributes['seed']
    return tuple(map(str, seed)) if isinstance(seed, tuple) else (str(seed),)


def measured_on(*records: Records) -> str:
    """Objects of measurement: number, length and source of the windows, or the prompts of an
    evaluation by text. Objects measured in the same way share the brackets."""
    found: dict[str, list[str]] = {}
    for r in records:
        measured = r.attributes['measured_on']
        found.setdefault(measured['how'], []).append(measured['what'])
    return join([f'{join(list(dict.fromkeys(what)))} ({how})' for how, what in found.items()])


def join(labels: Sequence[str], last: str = 'and') -> str:
    """Enumeration in words, 'a, b and c'; at least one label."""
    return labels[0] if len(labels) == 1 else f'{", ".join(labels[:-1])} {last} {labels[-1]}'
