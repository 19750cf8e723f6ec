"""The text model of stock's models of images and text against the whole of them, without images."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from transformers import AutoConfig, AutoModelForImageTextToText, PreTrainedModel

from nope.interop import open_directory, save
from nope.interop.describe import ignored_tensors
from tests import tiny
from tests.interop import stock

SIZES = {
    'hidden_size': 32,
    'intermediate_size': 32,
    'num_hidden_layers': 1,
    'num_attention_heads': 2,
    'image_size': 28,
    'patch_size': 14,
}
SLIDING, FULL = 'sliding_attention', 'full_attention'
GROWING = {
    'rope_type': 'yarn',
    'rope_theta': 1e4,
    'factor': 4.0,
    'original_max_position_embeddings': stock.TRAINED,
    'llama_4_scaling_beta': 0.1,
}
MISTRAL3 = {'vision_config': {'model_type': 'pixtral', 'head_dim': 16, **SIZES}}
GEMMA4_TOKENS = {f'{kind}_token_id': 100 + i for i, kind in enumerate(('image', 'video', 'audio'))}
EXAONE_VISION = {
    'depth': 1,
    'hidden_size': 32,
    'intermediate_size': 32,
    'num_heads': 2,
    'num_key_value_heads': 1,
    'out_hidden_size': 64,
    'fullatt_block_indexes': [0],
}
# Name -> the whole model's type, its text model's, changes of that one's config, of the whole.
CASES: dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]] = {
    'gemma3': (
        'gemma3',
        'gemma3_text',
        {'layer_types': [SLIDING, FULL, SLIDING, SLIDING]},
        {'vision_config': SIZES, 'mm_tokens_per_image': 4, 'image_token_index': 100},
    ),
    'gemma4': (
        'gemma4',
        'gemma4_text',
        {'pad_token_id': 0, 'num_hidden_layers': 4, 'layer_types': [SLIDING, FULL, SLIDING, FULL]},
        {
            'vision_config': {**SIZES, 'head_dim': 16, 'position_embedding_size': 16},
            'audio_config': None,
            **GEMMA4_TOKENS,
        },
    ),
    'cohere2_vision': (
        'cohere2_vision',
        'cohere2',
        {'logit_scale': 1.0, 'pad_token_id': 0},
        {
            'vision_config': {'model_type': 'siglip_vision_model', **SIZES},
            'alignment_intermediate_size': 32,
            'image_token_id': 100,
        },
    ),
    'exaone4_5': (
        'exaone4_5',
        'exaone4',
        {'pad_token_id': 0},
        {'vision_config': EXAONE_VISION, 'image_token_id': 100, 'video_token_id': 101},
    ),
    'muse_glimmer': (
        'muse_glimmer',
        'muse_glimmer_text',
        {'num_hidden_layers': 5, 'head_dim': 24, 'attention_bias': True, 'pad_token_id': 0},
        {
            'vision_config': {**SIZES, 'pos_emb_height': 4, 'pos_emb_width': 4},
            'image_token_id': 100,
            'video_token_id': 101,
            'out_hidden_size': 128,
            'projector_hidden_size': 32,
        },
    ),
    'mistral3': (
        'mistral3',
        'mistral',
        {'sliding_window': 24},
        {**MISTRAL3, 'tie_word_embeddings': False},
    ),
    'mistral3, tied': (
        'mistral3',
        'mistral',
        {'sliding_window': 24},
        {**MISTRAL3, 'tie_word_embeddings': True},
    ),
    'ministral3': (
        'mistral3',
        'ministral3',
        {'rope_parameters': GROWING, 'max_position_embeddings': 4 * stock.TRAINED},
        {**MISTRAL3, 'tie_word_embeddings': False},
    ),
}
NEWER = ('gemma4', 'cohere2_vision', 'exaone4_5', 'muse_glimmer')  # that have these names alone
READ_ONLY = ('muse_glimmer',)  # stock has no class of the text model alone
TOKENS = np.random.default_rng(0).integers(3, 90, (2, stock.LONGEST))


@pytest.fixture(scope='module', params=CASES)
def whole(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[PreTrainedModel, pathlib.Path]:
    """A random model of images and text, and the folder that stock wrote of it."""
    outer, text, changes, others = CASES[request.param]
    text_config = stock.config_of(text, model_type=text, **changes)
    config = AutoConfig.for_model(outer, text_config=text_config, **others)
    model = AutoModelForImageTextToText.from_config(config, attn_implementation='eager')
    folder = tmp_path_factory.mktemp('whole')
    return model, stock.save(stock.drawn(model), folder)


def test_logits_and_entropies_are_those_of_the_whole_without_images(
    whole: tuple[PreTrainedModel, pathlib.Path],
) -> None:
    model, folder = whole
    described, variables = stock.ours(folder)
    ours = stock.our_logits(described.model, variables, TOKENS)
    np.testing.assert_allclose(ours, stock.logits(model, TOKENS), rtol=0, atol=2e-4)
    found = stock.our_entropy(described.model, variables, TOKENS)
    np.testing.assert_allclose(found, stock.entropy(model, TOKENS), rtol=0, atol=2e-4)


def test_it_is_written_as_a_text_model(
    whole: tuple[PreTrainedModel, pathlib.Path], tmp_path: pathlib.Path
) -> None:
    model, folder = whole
    described, variables = stock.ours(folder)
    if model.config.model_type in READ_ONLY:
        with pytest.raises(ValueError, match='no family of checkpoints can hold this model'):
            save(tmp_path / 'out', variables, described)
        return
    save(tmp_path / 'out', variables, described)
    alone = stock.restore(tmp_path / 'out')
    assert alone.config.model_type == model.config.text_config.model_type
    expected = stock.logits(model, TOKENS)
    np.testing.assert_allclose(stock.logits(alone, TOKENS), expected, rtol=0, atol=2e-4)


def test_what_is_for_images_is_left_out_and_said(
    whole: tuple[PreTrainedModel, pathlib.Path],
) -> None:
    model, folder = whole
    directory = open_directory(folder)
    left_out = ignored_tensors(directory, stock.ours(folder)[0].model)
    assert {reason for reason in left_out.values()} == {
        'for images and sound; the text model alone is read'
    }
    assert len(left_out) + len(model.model.language_model.state_dict()) + (
        not getattr(model.config, 'tie_word_embeddings', False)
    ) == len(directory.tensors)


def test_names_of_newer_files_are_read_too(
    whole: tuple[PreTrainedModel, pathlib.Path], tmp_path: pathlib.Path
) -> None:
    model, folder = whole
    state = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    if getattr(model.config, 'tie_word_embeddings', False):
        del state['lm_head.weight']
    renamed = set(state) != set(load_file(folder / 'model.safetensors'))
    assert renamed == (model.config.model_type not in NEWER)
    save_file(state, tmp_path / 'model.safetensors')
    (tmp_path / 'config.json').write_text((folder / 'config.json').read_text())
    newer, older = (stock.ours(path) for path in (tmp_path, folder))
    assert newer[0] == older[0]
    tiny.assert_same(newer[1], older[1])


def test_what_predicts_further_tokens_is_left_out(
    whole: tuple[PreTrainedModel, pathlib.Path], tmp_path: pathlib.Path
) -> None:
    _, folder = whole
    state = load_file(folder / 'model.safetensors')
    state['mtp.layers.0.mlp.up_proj.weight'] = np.zeros((2, 2), np.float32)
    save_file(state, tmp_path / 'model.safetensors')
    (tmp_path / 'config.json').write_text((folder / 'config.json').read_text())
    tiny.assert_same(stock.ours(tmp_path)[1], stock.ours(folder)[1])
