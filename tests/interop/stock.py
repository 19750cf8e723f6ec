"""Small random models of stock `transformers` on the CPU, as folders, and what they compute; and
what ours compute, in the same terms.

No parameter is what a fresh model starts from: biases are not 0 nor the norms' weights 1, so that
one that is left out, transposed or given to the wrong head shows in logits of several units.
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import re
from typing import Any

import jax
import numpy as np
import torch
from jax.sharding import Mesh
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from nope import losses
from nope.interop import describe, load, open_directory
from nope.interop.families.base import Described
from nope.model import ModelConfig, apply
from nope.positions import Position
from nope.variables import Variables
from tests import tiny

# Matrices this small take longer to share out than to multiply.
torch.set_num_threads(1)

VOCAB = 128
TRAINED = 64  # the length in every config
LONGEST = 160  # the longest sequence that is compared; ours are padded to it: one compilation

_GROUPED = {
    'vocab_size': VOCAB,
    'hidden_size': 64,
    'intermediate_size': 96,
    'num_hidden_layers': 4,
    'num_attention_heads': 4,
    'num_key_value_heads': 2,
    'max_position_embeddings': TRAINED,
    'bos_token_id': 1,
    'eos_token_id': 2,
    'pad_token_id': None,
    'tie_word_embeddings': False,
}
_SHAPES: dict[str, dict[str, Any]] = {
    'llama': _GROUPED,
    'mistral': {**_GROUPED, 'sliding_window': None},
    'qwen2': _GROUPED,
    'qwen3': {**_GROUPED, 'head_dim': 16},
    'smollm3': _GROUPED,
    'cohere2': {**_GROUPED, 'sliding_window': 24, 'logit_scale': 0.5, 'tie_word_embeddings': True},
    'olmo2': _GROUPED,
    'olmo3': {**_GROUPED, 'sliding_window': 24},
    'exaone4': {**_GROUPED, 'sliding_window': 24},
    'ministral3': {**_GROUPED, 'head_dim': 16},
    'gemma3_text': {
        **_GROUPED,
        'head_dim': 16,
        'query_pre_attn_scalar': 16,
        'sliding_window': 24,
        'tie_word_embeddings': True,
    },
    # One layer in three sees every key; the last two have no keys of their own.
    'gemma4_text': {
        **_GROUPED,
        'num_hidden_layers': 6,
        'head_dim': 16,
        'global_head_dim': 24,
        'sliding_window': 24,
        'layer_types': ['sliding_attention', 'sliding_attention', 'full_attention'] * 2,
        'num_kv_shared_layers': 2,
        'hidden_size_per_layer_input': 12,
        'vocab_size_per_layer_input': VOCAB,
        'use_double_wide_mlp': True,
        'final_logit_softcapping': 4.0,
        'tie_word_embeddings': True,
    },
    'gemma4_unified_text': {
        **_GROUPED,
        'num_hidden_layers': 6,
        'head_dim': 16,
        'global_head_dim': 24,
        'num_global_key_value_heads': 1,
        'attention_k_eq_v': True,
        'sliding_window': 24,
        'layer_types': ['sliding_attention', 'sliding_attention', 'full_attention'] * 2,
        'final_logit_softcapping': 4.0,
        'tie_word_embeddings': True,
    },
    'phi3': _GROUPED,
    'granite': {**_GROUPED, 'attention_multiplier': 0.3, 'residual_multiplier': 0.4},
    'granite_swa': {
        **_GROUPED,
        'sliding_window': 24,
        'attention_multiplier': 0.25,
        'residual_multiplier': 0.5,
        'layer_rope_theta': [0, 500.0, 500.0, 500.0],
    },
    # Heads of attention in groups, and of Mamba-2 too.
    'nemotron_h': {
        **{key: value for key, value in _GROUPED.items() if key != 'num_hidden_layers'},
        'hybrid_override_pattern': 'M-*-M',
        'head_dim': 16,
        'mamba_num_heads': 4,
        'mamba_head_dim': 12,
        'ssm_state_size': 10,
        'n_groups': 2,
        'chunk_size': 32,
        'time_step_min': 1e-5,
    },
    'granitemoehybrid': {
        **_GROUPED,
        'shared_intermediate_size': 96,
        'num_local_experts': 0,
        'layer_types': ['mamba', 'mamba', 'attention', 'mamba'],
        'position_embedding_type': 'nope',
        'attention_multiplier': 0.3,
        'residual_multiplier': 0.4,
        'mamba_n_heads': 8,
        'mamba_d_state': 12,
        'mamba_chunk_size': 32,
    },
    'muse_glimmer_text': {
        **_GROUPED,
        'sliding_window': 24,
        'qk_scale_factor': 1.5,
        'output_multiplier': 0.7,
        'post_norm_eps': 0.1,
        'final_logit_softcapping': 4.0,
    },
    'bloom': {'vocab_size': VOCAB, 'hidden_size': 64, 'n_layer': 3, 'n_head': 4},
    # Stock cannot run MPT beyond `max_seq_len`.
    'mpt': {
        'vocab_size': VOCAB,
        'd_model': 64,
        'n_layers': 3,
        'n_heads': 4,
        'max_seq_len': 2 * LONGEST,
    },
}


def make(family: str, **changes: Any) -> PreTrainedModel:
    """A model of the family with other fields of its config, float32, every parameter drawn."""
    config = AutoConfig.for_model(family, **config_of(family, **changes))
    return drawn(AutoModelForCausalLM.from_config(config, attn_implementation='eager'))


def config_of(family: str, **changes: Any) -> dict[str, Any]:
    """Keys of a small model's config.json, with other values."""
    return {**_SHAPES[family], **changes}


def drawn(model: PreTrainedModel) -> PreTrainedModel:
    """The model with every parameter drawn, for evaluation, and every buffer that is learned."""
    draw = torch.Generator().manual_seed(0)
    learned = (item for item in model.named_buffers() if item[0].endswith('layer_scalar'))
    with torch.no_grad():
        for name, parameter in (*model.named_parameters(), *learned):
            noise = torch.randn(parameter.shape, generator=draw)
            parameter.copy_(_drawn(name, noise))
            if name.endswith('q_norm.weight') and 'Gemma4' in type(model).__name__:
                parameter.mul_(0.25)  # no 1 / sqrt(H) follows there
    return model.eval()


def save(
    model: PreTrainedModel, folder: pathlib.Path, *, dtype: str = 'float32', **options: Any
) -> pathlib.Path:
    """Writes it as stock does, in that dtype; options of `save_pretrained`."""
    model.to(getattr(torch, dtype)).save_pretrained(folder, **options)
    return folder


def restore(folder: pathlib.Path) -> PreTrainedModel:
    """The folder's model in float32. AssertionError unless its tensors are the model's one to
    one."""
    model, report = AutoModelForCausalLM.from_pretrained(
        folder, attn_implementation='eager', dtype=torch.float32, output_loading_info=True
    )
    assert not any(report.values()), report
    return model.eval()


def logits(model: PreTrainedModel, tokens_BT: np.ndarray) -> np.ndarray:
    """[B, T, V] float32."""
    with torch.no_grad():
        return model(torch.from_numpy(tokens_BT.astype(np.int64))).logits.float().numpy()


def entropy(model: PreTrainedModel, tokens_BT: np.ndarray) -> np.ndarray:
    """Of every row of attention weights, [L, B, N, T] float32, in nats."""
    with torch.no_grad():
        tokens = torch.from_numpy(tokens_BT.astype(np.int64))
        weights = model(tokens, output_attentions=True).attentions
    return torch.stack([torch.special.entr(layer).sum(-1) for layer in weights]).float().numpy()


def generate(
    model: PreTrainedModel, prompt_BT: np.ndarray, new_tokens: int, *, use_cache: bool = True
) -> np.ndarray:
    """The prompt and its greedy continuation, [B, T + new_tokens]; no token ends it."""
    model.generation_config.eos_token_id = None
    prompt = torch.from_numpy(prompt_BT.astype(np.int64))
    with torch.no_grad():
        whole = model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            do_sample=False,
            max_new_tokens=new_tokens,
            use_cache=use_cache,
            pad_token_id=0,
        )
    assert whole.shape[1] == prompt_BT.shape[1] + new_tokens
    return whole.numpy()


def ours(
    folder: pathlib.Path, *, position: Position | None = None, mesh: Mesh | None = None
) -> tuple[Described, Variables]:
    """The folder as this library reads it. Attention is the reference, which compiles fastest."""
    directory = open_directory(folder)
    described = describe(directory, position=position)
    model = dataclasses.replace(described.model, attention='reference')
    return described._replace(model=model), load(directory, model, mesh or tiny.mesh())


def our_logits(
    model: ModelConfig,
    variables: Variables,
    tokens_BT: np.ndarray,
    *,
    length: int | None = None,
    positions_T: np.ndarray | None = None,
) -> np.ndarray:
    """[B, T, V] float32 at the sequence length `length`, by default T, and the positions
    `positions_T`, by default 0, 1, 2 and so on.

    The tokens are padded to `LONGEST`, which no output before the padding can see.
    """
    T = tokens_BT.shape[1]
    padded = np.pad(tokens_BT, ((0, 0), (0, LONGEST - T)))
    places = np.arange(LONGEST) if positions_T is None else np.resize(positions_T, LONGEST)
    n = T if length is None else length
    return np.asarray(_forward(model, variables, padded, n, places[None]))[:, :T]


def our_entropy(model: ModelConfig, variables: Variables, tokens_BT: np.ndarray) -> np.ndarray:
    """As `entropy`."""
    with jax.default_matmul_precision('highest'):
        return np.asarray(apply(model, variables, tokens_BT, entropy=True).entropy)


def greedy(
    model: ModelConfig,
    variables: Variables,
    prompt_BT: np.ndarray,
    new_tokens: int,
    *,
    length: int | None = None,
) -> np.ndarray:
    """As `generate`, by a full forward pass for every token.

    length: of the sequence, which encodings and laws of lambda may follow: one for all of it, as in
    this library's own generation; None for as many tokens as there are at each step.
    """
    tokens_BT = prompt_BT
    for _ in range(new_tokens):
        last_BV = our_logits(model, variables, tokens_BT, length=length)[:, -1]
        chosen_B = last_BV.argmax(axis=-1).astype(tokens_BT.dtype)
        tokens_BT = np.concatenate([tokens_BT, chosen_B[:, None]], axis=1)
    return tokens_BT


def _drawn(name: str, noise: torch.Tensor) -> torch.Tensor:
    """A parameter, of standard normal noise.

    Queries and keys are small: where attention is so sharp that it all but chooses, the last bit
    of a frequency shows in the fourth digit of the logits.
    """
    if name.endswith('dt_bias'):
        return noise - 3  # states that remember some twenty tokens
    if noise.ndim == 1:
        return 0.3 * noise + (0 if name.endswith('bias') else 1)
    if re.search('(q|k|qkv)_proj', name):
        return 0.08 * noise
    return (0.4 if noise.shape[0] == VOCAB else 0.25) * noise


@functools.partial(jax.jit, static_argnums=0)
def _forward(
    model: ModelConfig,
    variables: Variables,
    tokens_BT: jax.Array,
    length: jax.Array,
    positions_BT: jax.Array,
) -> jax.Array:
    with jax.default_matmul_precision('highest'):
        out = apply(model, variables, tokens_BT, length=length, positions_BT=positions_BT)
        return losses.logits(out.hidden, out.head, model.logit_cap)
