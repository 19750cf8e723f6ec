"""Models in the caption of a figure of encodings on tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from experiments.figures.given import FigureInput
from experiments.figures.look import natural
from nope.runtime.amounts import amount


class Named(Protocol):
    """Curve of one model on a task: its label, and the names of its records, one a seed."""

    @property
    def label(self) -> str: ...

    @property
    def names(self) -> Sequence[str]: ...


def models(given: FigureInput, found: Mapping[str, Sequence[Named]]) -> str:
    """Models of each label, and how they were trained and measured, of curves by task."""
    described: dict[str, dict[str, None]] = {}
    trained: dict[str, dict[int, int]] = {}  # tokens by steps, of each data
    asked: dict[str, None] = {}
    later = {'searched_length', 'tuned_length'}
    for some in found.values():
        for score in some:
            facts = given.records[score.names[0]].attributes
            tuning = f'; {facts["tuning"]}' if facts.get('tuning') else ''
            described.setdefault(score.label, {})[facts['model'] + tuning] = None
            if not later.intersection(facts):  # of others the steps are those of what came later
                each = [given.records[name].attributes for name in score.names]
                steps = trained.setdefault(facts['data'], {})
                steps |= {x['step']: x['train_tokens'] for x in each}
            asked[f'{facts["measured_on"]["what"]} ({facts["measured_on"]["how"]})'] = None
    named = '; '.join(f'{label}: {" / ".join(each)}' for label, each in described.items())
    every = {str(r.attributes['seed']) for r in given.records.values()}
    seeds = ', '.join(sorted(every, key=natural.order))
    names = {name for some in found.values() for score in some for name in score.names}
    long = sum(given.records[name].attributes.get('too_long', 0) for name in names)
    wrong = f' Examples beyond the limit of tokens, which count as wrong: {long:,}.' if long else ''
    return (
        f'{named}. A model for every task, encoding and seed ({seeds}), trained for '
        f'{"; ".join(_trained(*each, facts["token"]) for each in trained.items())}. '
        f'Measured on {"; ".join(asked)}.{wrong}'
    )


def _trained(data: str, tokens_by_steps: Mapping[int, int], token: str) -> str:
    """Of models that keep their best step, from the fewest steps to the most."""
    ends = dict.fromkeys((min(tokens_by_steps), max(tokens_by_steps)))
    steps = ' to '.join(f'{end:,}' for end in ends)
    tokens = ' to '.join(amount(tokens_by_steps[end]) for end in ends)
    kept = ', at the best of which each is measured' if len(ends) > 1 else ''
    return f'{steps} steps ({tokens} {token}s with padding{kept}) on {data}'
