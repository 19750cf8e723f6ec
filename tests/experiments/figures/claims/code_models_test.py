"""Claims about models of code: on the paper's own numbers, and on ones that contradict them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from experiments.figures import KINDS, Decided, FigureInput
from experiments.figures.claims import code_models
from nope.records import Measure
from tests.experiments.figures import synthetic

MULTIPLES = (0.5, 1.0, 1.37, 2.0, 2.5)
# Mean perplexities of the paper's appendix F at 512, 1,024, 1,400, 2,048 and 2,560 tokens, of
# documents of 2,750 to 3,750.
PAPER = {
    'code_nope': (2.99, 2.75, 2.67, 143, 503),
    'code_alibi': (2.97, 2.82, 2.93, 45, 151),
    'code_rope': (2.93, 2.69, 166, 744, 854),
}
IDS = [rule.id for rule in code_models.RULES]


def drawn(perplexities, seeds: int = 3, ranges: tuple[int, ...] = (2750, 3000)) -> list[Decided]:
    """Claims of records with these perplexities, a little apart by seed and range of documents."""
    records, curves, roles = {}, [], {}
    for role, values in perplexities.items():
        for shift, shortest in zip((-0.01, 0.01), ranges, strict=True):
            group = f'{role}_{shortest}'
            for seed in range(seeds):
                loss = np.log(values) + shift + 0.002 * seed
                made = synthetic.length_records(synthetic.PILOT['base'], seed=seed)
                names = ('loss_window', 'loss_tail', 'multiplier_mean')
                measures = {name: Measure(loss, ('length',), 'nats') for name in names}
                lengths = np.array([round(m * 1024) for m in MULTIPLES])
                said = {**made.attributes['measured_on'], 'how': f'documents from {shortest}'}
                records[f'{group}/seed{seed}'] = dataclasses.replace(
                    made,
                    measures=measures,
                    coordinates={'length': lengths},
                    attributes={
                        **made.attributes,
                        'train_length': 1024,
                        'tail': 200,
                        'measured_on': said,
                    },
                )
            row = f'documents of {shortest:,} tokens'
            curves.append({'group': group, 'label': role, 'row': row})
            roles[role] = (*roles.get(role, ()), group)
    options = {'curves': curves, 'roles': roles}
    output = KINDS['length_curves'].draw(FigureInput('f', records, options))
    assert 'mean over its last 200 tokens' in output.caption
    assert all(f'documents from {shortest}' in output.caption for shortest in ranges)
    return output.claims


def test_the_papers_numbers_bear_the_papers_claims() -> None:
    found = drawn(PAPER)
    assert [(c.id, c.holds) for c in found] == [(name, True) for name in IDS]
    assert np.mean(found[1].numbers[0].by_seed) == pytest.approx(np.log(166 / 2.69))


@pytest.mark.parametrize(
    ('role', 'values', 'failing'),
    [
        ('code_alibi', (2.97, 3.10, 2.93, 45, 151), 'code_encodings_alike_inside'),
        ('code_rope', (2.93, 2.69, 3.50, 744, 854), 'rope_code_fails_at_once'),
        ('code_nope', (2.99, 2.75, 3.20, 143, 503), 'nope_code_fails_later'),
        ('code_nope', (2.99, 2.75, 2.67, 4.0, 503), 'nope_code_fails_later'),
        ('code_alibi', (2.97, 2.82, 2.93, 45, 800), 'alibi_code_degrades_slower'),
        ('code_alibi', (2.97, 2.82, 2.93, 3.0, 4.0), 'alibi_code_degrades_slower'),
    ],
)
def test_each_claim_fails_on_numbers_that_contradict_it(role, values, failing) -> None:
    found = {c.id: c.holds for c in drawn({**PAPER, role: values})}
    assert found == {name: name != failing for name in IDS}


def test_a_difference_within_the_margin_and_a_missing_encoding_decide_nothing() -> None:
    near = {**PAPER, 'code_alibi': (2.97, 2.82, 2.93, 45, 490)}
    left = {role: values for role, values in PAPER.items() if role != 'code_alibi'}
    for perplexities, verdict in ((near, 'undecided'), (left, 'not measured')):
        found = {c.id: c.verdict for c in drawn(perplexities)}
        assert found['alibi_code_degrades_slower'] == verdict
        assert found['rope_code_fails_at_once'] == 'holds'
