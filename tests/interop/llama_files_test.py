"""Numbers in checkpoints of Llama, of stock, of ours and of lit-gpt, and in parameters here."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import flax.traverse_util
import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from transformers import AutoConfig, PreTrainedModel

from nope.interop import fold
from nope.model import ModelConfig, counts
from tests import tiny
from tests.interop import stock
from tests.interop.imported import (
    Imported,
    assert_equal_models,
    assert_same_logits,
    exported,
    lam_between,
    read,
)
from tests.interop.stock import TRAINED, VOCAB
from tests.interop.stock_cases import CASES


def lit_gpt_tensors(model: PreTrainedModel) -> dict[str, torch.Tensor]:
    """Its weights under the names of lit-gpt: for every key-value head the rows of its query
    heads, then its key's, then its value's, in one matrix."""
    state = model.state_dict()
    H, K = model.config.head_dim, model.config.num_key_value_heads
    G = model.config.num_attention_heads // K
    tensors = {
        'transformer.wte.weight': state['model.embed_tokens.weight'],
        'transformer.ln_f.weight': state['model.norm.weight'],
        'lm_head.weight': state['lm_head.weight'],
    }
    for layer in range(model.config.num_hidden_layers):
        there, here = f'model.layers.{layer}.', f'transformer.h.{layer}.'
        q, k, v = (state[f'{there}self_attn.{name}_proj.weight'] for name in 'qkv')
        fused = torch.empty((G + 2) * K * H, q.shape[1])
        for head in range(G * K):
            row = (G + 2) * H * (head // G) + H * (head % G)
            fused[row : row + H] = q[H * head : H * (head + 1)]
        for group in range(K):
            row = (G + 2) * H * group + G * H
            fused[row : row + H] = k[H * group : H * (group + 1)]
            fused[row + H : row + 2 * H] = v[H * group : H * (group + 1)]
        tensors[f'{here}attn.attn.weight'] = fused
        for ours, stocks in (
            ('norm_1', 'input_layernorm'),
            ('attn.proj', 'self_attn.o_proj'),
            ('norm_2', 'post_attention_layernorm'),
            ('mlp.swiglu.w1', 'mlp.gate_proj'),
            ('mlp.swiglu.w2', 'mlp.up_proj'),
            ('mlp.swiglu.w3', 'mlp.down_proj'),
        ):
            tensors[f'{here}{ours}.weight'] = state[f'{there}{stocks}.weight']
    return tensors


def llama_parameters(state: Mapping[str, np.ndarray], model: ModelConfig) -> dict[str, np.ndarray]:
    """Stock's tensors of a Llama with biases and a tied head as ours, under '/'-separated names."""
    N, K, H, D = model.heads, model.kv_heads, model.head_dim, model.width

    def stacked(name: str, change: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        tensors = (state[f'model.layers.{layer}.{name}'] for layer in range(model.layers))
        return np.stack([change(tensor) for tensor in tensors])

    found = {
        'embedding': state['model.embed_tokens.weight'],
        'final_norm/scale': state['model.norm.weight'],
        'layers/attention_norm/scale': stacked('input_layernorm.weight', np.asarray),
        'layers/mlp_norm/scale': stacked('post_attention_layernorm.weight', np.asarray),
        'layers/attention/output': stacked(
            'self_attn.o_proj.weight', lambda array: array.T.reshape(N, H, D)
        ),
        'layers/attention/output_bias': stacked('self_attn.o_proj.bias', np.asarray),
    }
    for letter, name, heads in (('q', 'query', N), ('k', 'key', K), ('v', 'value', K)):
        stem = f'self_attn.{letter}_proj'
        shape = heads, H
        found[f'layers/attention/{name}'] = stacked(
            f'{stem}.weight', lambda array, shape=shape: array.T.reshape(D, *shape)
        )
        found[f'layers/attention/{name}_bias'] = stacked(
            f'{stem}.bias', lambda array, shape=shape: array.reshape(shape)
        )
    for name in ('gate', 'up', 'down'):
        found[f'layers/mlp/{name}'] = stacked(f'mlp.{name}_proj.weight', np.transpose)
        found[f'layers/mlp/{name}_bias'] = stacked(f'mlp.{name}_proj.bias', np.asarray)
    return found


@pytest.mark.parametrize('shard_size', ['1GB', '40KB'])
@pytest.mark.parametrize('dtype', ['float32', 'bfloat16', 'float16'])
def test_parameters_are_the_numbers_in_the_files(tmp_path, dtype: str, shard_size: str) -> None:
    model = stock.make('llama', **CASES['llama, biases, tied'][1])
    stock.save(model, tmp_path, dtype=dtype, max_shard_size=shard_size)
    assert (len(list(tmp_path.glob('*.safetensors'))) > 1) == (shard_size == '40KB')
    found = read(tmp_path)
    assert found.described.dtype == dtype
    state = {name: tensor.float().numpy() for name, tensor in model.state_dict().items()}
    actual = flax.traverse_util.flatten_dict(found.variables['params'], sep='/')
    tiny.assert_same(actual, llama_parameters(state, found.model))
    assert counts.parameters(found.model) == model.num_parameters()


def test_lit_gpt_checkpoints(imported: Callable[[str], Imported], tmp_path) -> None:
    """The names and the fused matrix of the code that TinyLlama was trained with."""
    source = imported('llama')
    theirs = stock.restore(source.folder)
    save_file(lit_gpt_tensors(theirs), tmp_path / 'lit_model.safetensors')
    model = source.model
    config = {
        'name': 'tiny',
        'block_size': TRAINED,
        'vocab_size': VOCAB,
        'padded_vocab_size': VOCAB,
        'n_layer': model.layers,
        'n_head': model.heads,
        'n_query_groups': model.kv_heads,
        'n_embd': model.width,
        'rotary_percentage': 1.0,
        'parallel_residual': False,
        'bias': False,
        'shared_attention_norm': False,
        '_norm_class': 'FusedRMSNorm',
        'norm_eps': model.norm_epsilon,
        '_mlp_class': 'LLaMAMLP',
        'intermediate_size': model.mlp_width,
    }
    (tmp_path / 'lit_config.json').write_text(json.dumps(config))
    found = read(tmp_path)
    assert_equal_models(found, source)
    assert_same_logits(theirs, found)


@pytest.mark.parametrize('dtype', ['bfloat16', 'float16'])
def test_numbers_are_rounded_once(
    imported: Callable[[str], Imported], tmp_path, dtype: str
) -> None:
    """To the dtype of the files, after lambda was folded; and in several files as in one."""
    source = imported('llama, biases, tied')
    found = source.with_lam(lam_between(1, 2, source.model))
    folder = exported(tmp_path / 'out', found, dtype=dtype, shard_bytes=20_000)
    assert len(list(folder.glob('*.safetensors'))) > 2
    assert AutoConfig.from_pretrained(folder).dtype == getattr(torch, dtype)
    wanted = {
        path: torch.from_numpy(np.array(array)).to(getattr(torch, dtype)).float().numpy()
        for path, array in flax.traverse_util.flatten_dict(
            fold(found.model, found.variables)[1]['params'], sep='/'
        ).items()
    }
    state = {name: tensor.numpy() for name, tensor in stock.restore(folder).state_dict().items()}
    tiny.assert_same(llama_parameters(state, found.model), wanted)
    params = read(folder).variables['params']
    tiny.assert_same(flax.traverse_util.flatten_dict(params, sep='/'), wanted)
