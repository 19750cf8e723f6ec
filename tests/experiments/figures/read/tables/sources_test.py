"""What captions say of evaluations by text."""

from __future__ import annotations

import dataclasses

import pytest

from experiments.figures.look import captions
from tests.experiments.figures import synthetic

PERPLEXITY = synthetic.perplexity_records((3, 4, 5, 6))
TRAINED = (
    'model: NoPE, 4 layers, width 64, 4 heads, 222k parameters; position encoding: none; trained '
    'on 4.9M tokens of Python standard library sources in sequences of L = 2,048 (2,400 steps, '
    'seed 0).'
)


def with_facts(records, **changed):
    """What they were measured on is said anew, unless that is what changes."""
    found = dataclasses.replace(records, attributes={**records.attributes, **changed})
    return found if 'measured_on' in changed else synthetic.measured(found)


@pytest.mark.parametrize(
    ('records', 'measured'),
    [
        (
            PERPLEXITY,
            'pg19 (windows of up to 16,384 tokens, 256 apart, 2.1M tokens of 23 documents scored '
            'for each length, each document after a BOS)',
        ),
        (
            with_facts(PERPLEXITY, bos=False, token='byte'),
            'pg19 (windows of up to 16,384 bytes, 256 apart, 2.1M bytes of 23 documents scored '
            'for each length)',
        ),
        (
            synthetic.passkey_records(),
            'pass keys in prompts of up to 4,096 tokens (10 for each length and depth, '
            'each prompt after a BOS)',
        ),
        (
            synthetic.longbench_records(range(16)),
            'LongBench (3,200 prompts of up to 1,500 tokens, 5 beams)',
        ),
        (
            with_facts(synthetic.longbench_records(range(16)), beams=1),
            'LongBench (3,200 prompts of up to 1,500 tokens, greedy)',
        ),
        (synthetic.harness_records(range(7)), '7,000 questions of 7 tasks (without a BOS)'),
    ],
)
def test_each_says_what_it_was_measured_on(records, measured):
    assert captions.measured_on(records) == measured


def test_models_measured_on_other_text_name_their_own():
    found = captions.sources({'model': [PERPLEXITY]})
    assert found == f'{TRAINED} Measured on {captions.measured_on(PERPLEXITY)}.'


def test_what_was_measured_in_the_same_way_shares_the_sentence():
    other = with_facts(PERPLEXITY, corpus='proof_pile')
    passkey = synthetic.passkey_records()
    found = captions.sources({'model': [PERPLEXITY, other, passkey]})
    assert found.startswith(TRAINED)
    assert 'Measured on pg19 and proof_pile (windows of up to 16,384' in found
    assert found.endswith(f'after a BOS) and {captions.measured_on(passkey)}.')


def test_models_that_were_measured_on_different_text_are_told_apart():
    other = synthetic.passkey_records()
    found = captions.sources({'a': [PERPLEXITY], 'b': [other]})
    assert f'a: measured on {captions.measured_on(PERPLEXITY)}.' in found
    assert f'b: measured on {captions.measured_on(other)}.' in found


def test_records_say_themselves_what_they_were_measured_on():
    said = {'what': '12 proofs', 'how': 'of a new kind', 'own_text': False}
    found = captions.sources(
        {'model': [with_facts(PERPLEXITY, evaluation='new', measured_on=said)]}
    )
    assert found == f'{TRAINED} Measured on 12 proofs (of a new kind).'


@pytest.mark.parametrize('own', [True, False])
def test_the_text_that_a_model_was_trained_on_is_named_once(own):
    said = {'what': '12 windows of its sources', 'how': 'test split', 'own_text': own}
    found = captions.sources({'model': [with_facts(PERPLEXITY, measured_on=said)]})
    assert ('tokens of Python standard library sources in' in found) is not own
    assert found.endswith('Measured on 12 windows of its sources (test split).')
