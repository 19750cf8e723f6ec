"""What captions say of models: trained here, imported, fine-tuned."""

from __future__ import annotations

import dataclasses

import pytest

from experiments.figures.look import captions
from tests.experiments.figures import synthetic
from tests.experiments.figures.synthetic import IMPORTED

TUNING = {'tuning': 'fine-tuned for 200 steps of 8 sequences of 256', 'step': 200}


def sentence(*changes):
    records = [synthetic.positions_records(**changed) for changed in changes]
    return captions.sources({'model': records}).split(' Measured')[0]


@pytest.mark.parametrize(
    ('changed', 'end'),
    [
        ({}, 'trained on 4.9M tokens in sequences of L = 64 (2,400 steps, seed 0).'),
        (
            {'text_tokens': 1_150_000},
            'trained on 4.9M tokens (1.1M, read 4.3 times) in sequences of L = 64 (2,400 steps, '
            'seed 0).',
        ),
        (
            {'text_tokens': 20_000_000},
            'trained on 4.9M tokens in sequences of L = 64 (2,400 steps, seed 0).',
        ),
        (
            TUNING,
            'trained on 4.9M tokens in sequences of L = 64 (seed 0); fine-tuned for 200 steps of '
            '8 sequences of 256.',
        ),
        (IMPORTED, 'imported from TinyLlama-1.1B (L = 64).'),
        (IMPORTED | {'step': 200}, 'imported from TinyLlama-1.1B (L = 64, seed 0).'),
        (
            IMPORTED | TUNING,
            'imported from TinyLlama-1.1B (L = 64, seed 0); fine-tuned for 200 steps of 8 '
            'sequences of 256.',
        ),
    ],
)
def test_training_import_and_tuning(changed, end):
    assert sentence(changed).endswith(f'position encoding: none; {end}')


def test_every_seed_and_every_position_encoding_of_a_label_is_named():
    found = sentence(
        {'seed': 1, 'position': 'RoPE, YaRN x2'},
        {'seed': 2, 'position': 'RoPE, YaRN x2'},
        {'seed': 1, 'position': 'RoPE, YaRN x4'},
    )
    assert 'position encoding: RoPE, YaRN x2 / RoPE, YaRN x4; trained on' in found
    assert found.endswith('seeds 1 and 2).')


@pytest.mark.parametrize(
    ('lams', 'noted'),
    [
        (('1', '1'), 'model: '),
        (('1.5', '1.5'), 'model (lambda: 1.5): '),
        (('1.5', '1.55'), 'model (lambda: 1.5; 1.55 by seed): '),
        (('1', '1.5'), 'model (lambda: 1; 1.5 by seed): '),
    ],
)
def test_lambda_is_that_of_every_seed(lams, noted):
    found = sentence(*({'seed': seed, 'lam': lam} for seed, lam in enumerate(lams)))
    assert found.startswith(noted)


def test_seeds_and_their_lambdas_are_in_the_order_of_numbers():
    found = sentence({'seed': 10, 'lam': '1.6'}, {'seed': 2, 'lam': '1.5'})
    assert '(lambda: 1.5; 1.6 by seed)' in found and found.endswith('seeds 2 and 10).')


def test_losses_by_length_say_where_lambda_was_searched_and_not_what_it_is():
    searched = synthetic.length_records([1.5] * 7, 0)
    attributes = {**searched.attributes, 'searched_length': 512}
    attributes.pop('lam', None)
    losses = dataclasses.replace(searched, attributes=attributes)
    found = captions.sources({'model': [losses]})
    assert found.startswith(f'model (lambda: searched at 512 {attributes["token"]}s): ')
    known = dataclasses.replace(losses, attributes={**attributes, 'lam': 'HeadScale at 512'})
    assert 'model (lambda: HeadScale at 512): ' in captions.sources({'model': [losses, known]})
