"""Text models inside models of images and text."""

from __future__ import annotations

import pytest

from nope.interop.families import family_of
from tests.interop.family_cases import (
    BY_NAME,
    NONE,
    OF_FAMILY,
    ROPE,
    decoder,
    described,
    inside,
    read,
    written,
)

PAIRS = [
    ('gemma3', 'gemma3_text'),
    ('gemma4', 'gemma4_text'),
    ('gemma4_unified', 'gemma4_unified_text'),
    ('mistral3', 'mistral'),
    ('mistral3', 'ministral3'),
]
MODELS = {text: OF_FAMILY.get(text, decoder(position=ROPE)) for _, text in PAIRS}


@pytest.mark.parametrize(('outer', 'text'), PAIRS)
def test_the_text_model_is_what_it_is_by_itself(outer: str, text: str) -> None:
    config = inside(outer, text)
    assert family_of(config, NONE).name == f'{outer} with {text}'
    assert read(config) == read(config['text_config'])
    assert read(config).model == MODELS[text]


def test_the_whole_model_says_how_its_head_is_tied() -> None:
    tied = {**inside('mistral3', 'mistral', tie_word_embeddings=False), 'tie_word_embeddings': True}
    assert read(tied).model.tied_head
    assert not read(tied | {'tie_word_embeddings': None}).model.tied_head


@pytest.mark.parametrize('head', ['lm_head.weight', 'language_model.lm_head.weight'])
def test_a_head_that_stock_found_apart_is_apart(head: str) -> None:
    """A model that stock saved again has both matrices, and is tied outside alone."""
    config = inside('mistral3', 'mistral', tie_word_embeddings=False)
    family = BY_NAME['mistral3 with mistral']
    for tied in (True, False):
        found = family.read_config(config | {'tie_word_embeddings': tied}, frozenset({head}))
        assert not found.model.tied_head


def test_the_whole_model_says_what_its_text_model_leaves_out() -> None:
    text = written('mistral', described(MODELS['mistral'], bos=3))
    for key in ('torch_dtype', 'eos_token_id', 'pad_token_id'):
        del text[key]
    whole = {'dtype': 'bfloat16', 'bos_token_id': 5, 'eos_token_id': [6, 7], 'pad_token_id': 0}
    config = {'model_type': 'mistral3', 'text_config': text, **whole}
    found = read(config)
    assert (found.bos, found.eos, found.pad) == (3, 6, 0)
    with pytest.raises(ValueError, match=r'text_config\.dtype is .int8'):
        read(config | {'dtype': 'int8'})
    text['torch_dtype'] = 'float16'
    assert read(config | {'dtype': 'int8'}) == found  # the text model's own comes first


@pytest.mark.parametrize(('vocabulary', 'pad'), [(12, 11), (11, None)])
def test_tokens_that_no_file_names_are_those_of_the_class(vocabulary: int, pad: int | None) -> None:
    """Those that the vocabulary has."""
    text = written('ministral3', described(MODELS['ministral3']))
    text |= {'vocab_size': vocabulary}
    for key in ('bos_token_id', 'eos_token_id', 'pad_token_id'):
        del text[key]
    found = read({'model_type': 'mistral3', 'text_config': text})
    assert (found.bos, found.eos, found.pad) == (1, 2, pad)


def test_keys_of_the_text_model_are_named_with_their_place() -> None:
    with pytest.raises(ValueError, match=r'^config\.json: text_config\.hidden_size is 0; accepted'):
        read(inside('mistral3', 'mistral', hidden_size=0))


@pytest.mark.parametrize('text', [{'model_type': 'gemma2'}, {}])
def test_other_text_models_are_named(text: dict) -> None:
    with pytest.raises(ValueError) as refusal:
        read({'model_type': 'gemma3', 'text_config': text})
    kind = text.get('model_type')
    assert f'text_config.model_type {kind!r}' in str(refusal.value)
    assert 'gemma3 with gemma3_text' in str(refusal.value)


def test_they_are_not_written() -> None:
    model = MODELS['mistral']
    for outer, text in PAIRS:
        family = BY_NAME[f'{outer} with {text}']
        assert family.unwritable(model)
        with pytest.raises(ValueError, match='only read'):
            family.write_config(model, described(model))
