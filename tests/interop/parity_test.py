"""The same weights here and in stock `transformers` on the CPU: the same numbers."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import PreTrainedModel
from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor

from nope.interop import describe, open_directory
from nope.positions import Alibi, NoPE
from tests import tiny
from tests.interop import stock
from tests.interop.imported import (
    NEW_TOKENS,
    PROMPT,
    TOKENS,
    TOLERANCE,
    Imported,
    assert_same_logits,
    exported,
    lam_between,
    read,
)
from tests.interop.stock_cases import ALIKE, CASES, cached_alike


@pytest.mark.parametrize('name', [
    pytest.param(name, marks=pytest.mark.slow if name in ALIKE else ()) for name in CASES
])  # fmt: skip
def test_logits_and_continuations_are_those_of_stock(
    imported: Callable[[str], Imported], name: str
) -> None:
    """Below and beyond the length in the config, which the continuation crosses.

    Frequencies that follow the length do so here for the whole sequence. Stock looks at the
    length of each call: with a cache, earlier keys keep the rotation of the length they were made
    at. It generates without one there, and ours takes the length that each step has.
    """
    found = imported(name)
    theirs = stock.restore(found.folder)
    assert_same_logits(theirs, found)
    expected = stock.generate(theirs, PROMPT, NEW_TOKENS, use_cache=cached_alike(name))
    actual = stock.greedy(found.model, found.variables, PROMPT, NEW_TOKENS)
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize('name', [
    'gemma3', 'gemma4, values from keys, biases, a head, other heads', 'olmo3, two bases',
    'granite', 'phi3, longrope, some dimensions, window, tied', 'nemotron_h', 'granitemoehybrid',
])  # fmt: skip
def test_entropies_are_those_of_the_weights_of_stock(
    imported: Callable[[str], Imported], name: str
) -> None:
    found = imported(name)
    expected = stock.entropy(stock.restore(found.folder), TOKENS)
    actual = stock.our_entropy(found.model, found.variables, TOKENS)
    assert expected.max() > 2
    np.testing.assert_allclose(actual, expected, rtol=0, atol=TOLERANCE)


def turning_layers(model: PreTrainedModel) -> list[bool]:
    """Of every layer of stock's model, whether its attention is another one without rotation."""
    calls: list[tuple[torch.nn.Module, dict, torch.Tensor]] = []
    hooks = [
        layer.self_attn.register_forward_hook(
            lambda module, args, kwargs, out: calls.append((module, kwargs, out[0])),
            with_kwargs=True,
        )
        for layer in model.model.layers
    ]
    tokens = torch.from_numpy(TOKENS[:1].astype(np.int64))
    with torch.no_grad():
        model(tokens, use_cache=False)
        for hook in hooks:
            hook.remove()
        found = []
        for module, kwargs, out in calls:
            if kwargs['position_embeddings'] is None:
                found.append(False)
                continue
            cos, sin = kwargs['position_embeddings']
            still = {**kwargs, 'position_embeddings': (torch.ones_like(cos), 0 * sin)}
            found.append(not torch.equal(module(**still)[0], out))
    return found


@pytest.mark.parametrize('name', [
    'smollm3', 'smollm3, windows', 'cohere2', 'cohere2, yarn, other layers',
    'cohere2, no positions', 'exaone4', 'exaone4, llama3, other layers, wide heads',
    'exaone4, no positions', 'granite_swa',
    'granite_swa, other layers and bases, biases, wide heads',
])  # fmt: skip
def test_layers_that_stock_does_not_rotate_have_no_positions(
    imported: Callable[[str], Imported], name: str
) -> None:
    found = imported(name)
    turning = turning_layers(stock.restore(found.folder))
    assert found.model.without_position == tuple(not turns for turns in turning)
    assert not all(turning)


@pytest.mark.parametrize('name', ['llama', 'olmo3, two bases', 'exaone4, no windows'])
def test_layers_that_stock_rotates_have_positions(
    imported: Callable[[str], Imported], name: str
) -> None:
    found = imported(name)
    assert all(turning_layers(stock.restore(found.folder)))
    assert not any(found.model.without_position)


@pytest.mark.parametrize(('name', 'exponent'), [('mpt', 11), ('mpt, 6 heads', 4)])
def test_other_exponents_of_mpt(
    imported: Callable[[str], Imported], tmp_path, name: str, exponent: int
) -> None:
    """Stock accepts `alibi_bias_max` but never hands it to its function that makes the bias, and
    computes another model than was trained: no config of the kind is read or written."""
    source = imported(name)
    found = read(source.folder, position=Alibi(exponent))
    theirs = stock.restore(source.folder)
    theirs.transformer.build_mpt_alibi_tensor = lambda heads, length, device=None: (
        build_mpt_alibi_tensor(heads, length, exponent, device)
    )
    assert_same_logits(theirs, found)
    with pytest.raises(ValueError, match=r'no family .* mpt: its layers have ALiBi'):
        exported(tmp_path / 'out', found)
    family, changes = CASES[name]
    changes = {**changes, 'attn_config': {'alibi_bias_max': exponent}}
    model = stock.make(family, **changes)
    expected = stock.logits(stock.restore(source.folder), TOKENS)
    np.testing.assert_array_equal(stock.logits(model, TOKENS), expected)
    with pytest.raises(ValueError, match=rf'alibi_bias_max is {exponent}; accepted: 8'):
        describe(open_directory(stock.save(model, tmp_path / 'in')))


@pytest.mark.parametrize('name', [
    name for name in CASES if 'rope_type' in CASES[name][1].get('rope_parameters', {})
])  # fmt: skip
@pytest.mark.parametrize('key', ['type', 'rope_type'])
def test_older_configs_mean_the_same(
    imported: Callable[[str], Imported], tmp_path, name: str, key: str
) -> None:
    """`rope_theta` and `rope_scaling`, as versions of stock before 5 write them."""
    found = imported(name)
    config = json.loads((found.folder / 'config.json').read_text())
    scaling = config.pop('rope_parameters')
    config['rope_theta'] = scaling.pop('rope_theta')
    config['rope_scaling'] = {key: scaling.pop('rope_type'), **scaling}
    (tmp_path / 'config.json').write_text(json.dumps(config))
    (tmp_path / 'model.safetensors').symlink_to(found.folder / 'model.safetensors')
    model = describe(open_directory(tmp_path)).model
    assert dataclasses.replace(model, attention=found.model.attention) == found.model


def without_rotation(model: PreTrainedModel) -> PreTrainedModel:
    """Stock's model with every rotation by an angle of 0."""

    def still(x: torch.Tensor, position_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        H = model.config.head_dim
        cos = torch.ones(*position_ids.shape, H, dtype=x.dtype)
        return cos, torch.zeros_like(cos)

    model.model.rotary_emb.forward = still
    return model


def test_the_same_weights_without_rotation(imported: Callable[[str], Imported]) -> None:
    rope = imported('llama')
    found = read(rope.folder, position=NoPE())
    assert found.model == rope.model.with_position(NoPE())
    tiny.assert_same(found.variables, rope.variables)
    theirs = without_rotation(stock.restore(found.folder))
    assert_same_logits(theirs, found)
    expected = stock.generate(theirs, PROMPT, NEW_TOKENS)
    actual = stock.greedy(found.model, found.variables, PROMPT, NEW_TOKENS)
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize('position', [None, NoPE()], ids=['rope', 'none'])
def test_scales_in_the_file_are_lambda(
    imported: Callable[[str], Imported], tmp_path, position: NoPE | None
) -> None:
    """bfloat16 multipliers of 1 / sqrt(H) per head: rows of W_q multiplied by them, in stock."""
    source = imported('llama')
    theirs = stock.restore(source.folder)
    H = source.model.head_dim
    tensors = load_file(source.folder / 'model.safetensors')
    lam_LN = torch.from_numpy(lam_between(1, 2, source.model)).to(torch.bfloat16)
    for layer, lam_N in enumerate(lam_LN):
        tensors[f'model.layers.{layer}.self_attn.scale_param'] = lam_N.clone()
        rows = theirs.model.layers[layer].self_attn.q_proj.weight
        with torch.no_grad():
            rows *= lam_N.float().repeat_interleave(H)[:, None]
    save_file(tensors, tmp_path / 'model.safetensors', {'format': 'pt'})
    (tmp_path / 'config.json').symlink_to(source.folder / 'config.json')
    found = read(tmp_path, position=position)
    np.testing.assert_array_equal(found.variables['lam']['head'], lam_LN.float())
    assert_same_logits(without_rotation(theirs) if position else theirs, found)
