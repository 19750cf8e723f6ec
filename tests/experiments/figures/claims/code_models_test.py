"""Claims about models of code: on the paper's own numbers, and on ones that contradict them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from experiments.figures import KINDS, Claim, FigureInput
from experiments.figures.claims import code_models
from nope.records import Measure
from tests.experiments.figures import synthetic

MULTIPLES = (0.5, 1.0, 1.37, 2.0, 2.5)
# Mean perplexities that the paper's appendix F gives, at 512, 1,024, 1,400, 2,048, 2,560 tokens.
PAPER = {
    'code_nope': (2.98, 2.70, 2.60, 134, 469),
    'code_alibi': (2.95, 2.77, 2.83, 42, 145),
    'code_rotary': (2.92, 2.65, 172, 760, 873),
}
IDS = [rule.claim.id for rule in code_models.RULES]


def drawn(perplexities, seeds: int = 3, ranges: tuple[int, ...] = (2750, 3000)) -> list[Claim]:
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
    rise = found[1].measured['rise_over_L_nats']['rotary at 1.37 L']['mean']
    assert rise == pytest.approx(np.log(172 / 2.65))


@pytest.mark.parametrize(
    ('role', 'values', 'failing'),
    [
        ('code_alibi', (2.95, 3.10, 2.83, 42, 145), 'code_encodings_alike_inside'),
        ('code_rotary', (2.92, 2.65, 3.50, 760, 873), 'rotary_code_fails_at_once'),
        ('code_nope', (2.98, 2.70, 3.20, 134, 469), 'nope_code_fails_later'),
        ('code_nope', (2.98, 2.70, 2.60, 4.0, 469), 'nope_code_fails_later'),
        ('code_alibi', (2.95, 2.77, 2.83, 42, 800), 'alibi_code_degrades_slower'),
        ('code_alibi', (2.95, 2.77, 2.83, 3.0, 4.0), 'alibi_code_degrades_slower'),
    ],
)
def test_each_claim_fails_on_numbers_that_contradict_it(role, values, failing) -> None:
    found = {c.id: c.holds for c in drawn({**PAPER, role: values})}
    assert found == {name: name != failing for name in IDS}


def test_a_difference_within_the_margin_decides_nothing() -> None:
    found = {c.id: c.verdict for c in drawn({**PAPER, 'code_alibi': (2.95, 2.77, 2.83, 42, 455)})}
    assert found['alibi_code_degrades_slower'] == 'undecided'


def test_without_an_encoding_what_is_missing_is_said() -> None:
    left = {role: values for role, values in PAPER.items() if role != 'code_alibi'}
    verdicts = {c.id: c.verdict for c in drawn(left)}
    assert verdicts['alibi_code_degrades_slower'] == 'not measured'
    assert verdicts['rotary_code_fails_at_once'] == 'holds'
