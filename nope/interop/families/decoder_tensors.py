"""The tensors of checkpoints shaped like Llama's.

    model.embed_tokens.weight
    model.layers.N.input_layernorm.weight               not where norms stand behind
    model.layers.N.self_attn.{q,k,v,o}_proj.{weight,bias}
    model.layers.N.self_attn.qkv_proj.weight            of Phi-3, in place of q, k and v
    model.layers.N.self_attn.{q,k}_norm.weight          with QK-norm
    model.layers.N.self_attn.sinks                      of models with attention sinks
    model.layers.N.self_attn.scale_param                of HeadScale: lambda of every head
    model.layers.N.post_attention_layernorm.weight      not of a parallel block
    model.layers.N.pre_feedforward_layernorm.weight     where norms stand at both ends
    model.layers.N.post_feedforward_layernorm.weight    where norms stand behind
    model.layers.N.mlp.{gate,up,down}_proj.{weight,bias}
    model.layers.N.mlp.gate_up_proj.weight              of Phi-3, in place of gate and up
    model.norm.weight
    lm_head.weight                                      unless the head is the embedding

Some files leave out 'model.'. Rows of fused projections go by part, in the order of the names.
"""

from __future__ import annotations

import numpy as np

from nope.interop.families.templates import (
    Template,
    embedding,
    fused_qkv,
    head,
    heads_bias,
    heads_weight,
    matrix,
    norm,
    outer_norm,
    output_weight,
    paired,
    qk_norm,
    stacked,
    vector,
)
from nope.interop.mapping import LAM, SAME, TRANSPOSED, Tensor, fused
from nope.model import ModelConfig

_EMBEDDING = 'embed_tokens.weight'
# Of a layer of each block, by their names there.
_NORMS = {
    'pre': {'input_layernorm': 'attention_norm', 'post_attention_layernorm': 'mlp_norm'},
    'parallel': {'input_layernorm': 'attention_norm'},
    'both': {
        'input_layernorm': 'attention_norm',
        'post_attention_layernorm': 'attention_output_norm',
        'pre_feedforward_layernorm': 'mlp_norm',
        'post_feedforward_layernorm': 'mlp_output_norm',
    },
    'post': {
        'post_attention_layernorm': 'attention_norm',
        'post_feedforward_layernorm': 'mlp_norm',
    },
}


def tensors(
    config: ModelConfig,
    names: frozenset[str],
    *,
    neighbours: bool = False,
    joined: bool = False,
) -> list[Tensor]:
    """Tensors of the model; see `nope.interop.families.base.Family.tensors`. neighbours, joined:
    see `nope.interop.families.decoder.Decoder`."""
    prefix = '' if _EMBEDDING in names else 'model.'
    layers = [
        part for name, ours in _NORMS[config.block].items() for part in norm(name, ours, config)
    ]
    layers += _projections_in_one(config) if joined else _projections(config, neighbours)
    layers += _attention(config)
    if any(name.endswith('.self_attn.scale_param') for name in names):
        layers.append(Template('self_attn.scale_param', (config.heads,), (LAM,), SAME))
    layers += _mlp_in_two(config) if joined else _mlp(config)
    return [
        embedding(prefix + _EMBEDDING, config),
        *stacked(f'{prefix}layers.', layers, config.layers),
        *outer_norm(f'{prefix}norm', 'final_norm', config),
        *head(config),
    ]


def _projections(config: ModelConfig, neighbours: bool) -> list[Template]:
    """To queries, keys and values."""
    found = []
    for ours, heads in _heads(config).items():
        name = f'self_attn.{ours[0]}_proj'
        projection = [heads_weight(f'{name}.weight', ours, config, heads)]
        if config.qkv_bias:
            projection.append(heads_bias(f'{name}.bias', ours, config, heads))
        turning = neighbours and ours != 'value'
        found += [paired(part) if turning else part for part in projection]
    return found


def _projections_in_one(config: ModelConfig) -> list[Template]:
    ends = np.cumsum([heads * config.head_dim for heads in _heads(config).values()])
    return fused_qkv('self_attn.qkv_proj', config, np.split(np.arange(ends[-1]), ends[:-1]))


def _heads(config: ModelConfig) -> dict[str, int]:
    return {'query': config.heads, 'key': config.kv_heads, 'value': config.kv_heads}


def _attention(config: ModelConfig) -> list[Template]:
    """All but the projections to queries, keys and values."""
    found = [output_weight('self_attn.o_proj.weight', config)]
    if config.sinks:
        found.append(vector('self_attn.sinks', ('attention', 'sinks'), config.heads))
    if config.output_bias:
        found.append(vector('self_attn.o_proj.bias', ('attention', 'output_bias'), config.width))
    if config.qk_norm:
        found += [qk_norm(ours, config, _heads(config)[ours]) for ours in ('query', 'key')]
    return found


def _mlp(config: ModelConfig) -> list[Template]:
    D, F = config.width, config.mlp_width
    found = []
    for ours, out, inputs in (('gate', F, D), ('up', F, D), ('down', D, F)):
        found.append(matrix(f'mlp.{ours}_proj.weight', ('mlp', ours), out, inputs))
        if config.mlp_bias:
            found.append(vector(f'mlp.{ours}_proj.bias', ('mlp', f'{ours}_bias'), out))
    return found


def _mlp_in_two(config: ModelConfig) -> list[Template]:
    D, F = config.width, config.mlp_width
    paths = ('layers', 'mlp', 'gate'), ('layers', 'mlp', 'up')
    layout = fused([TRANSPOSED, TRANSPOSED], np.split(np.arange(2 * F), 2))
    return [
        Template('mlp.gate_up_proj.weight', (2 * F, D), paths, layout),
        matrix('mlp.down_proj.weight', ('mlp', 'down'), D, F),
    ]
