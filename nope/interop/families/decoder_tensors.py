"""The tensors of checkpoints shaped like Llama's.

    model.embed_tokens.weight
    model.layers.N.input_layernorm.weight               not where norms stand behind
    model.layers.N.self_attn.{q,k,v,o}_proj.{weight,bias}
    model.layers.N.self_attn.qkv_proj.weight            of Phi-3, in place of q, k and v
    model.layers.N.self_attn.{q,k}_norm.weight          with QK-norm
    model.layers.N.self_attn.sinks                      of models with attention sinks
    model.layers.N.self_attn.gate_proj.weight           of models with output gates
    model.layers.N.self_attn.scale_param                of HeadScale: lambda of every head
    model.layers.N.post_attention_layernorm.weight      not of a parallel block
    model.layers.N.pre_feedforward_layernorm.weight     where norms stand at both ends
    model.layers.N.post_feedforward_layernorm.weight    where norms stand behind
    model.layers.N.mlp.{gate,up,down}_proj.{weight,bias}
    model.layers.N.mlp.gate_up_proj.weight              of Phi-3, in place of gate and up
    model.layers.N.layer_scalar                         of Gemma 4, with the next six
    model.layers.N.per_layer_input_gate.weight          where layers read the tokens
    model.layers.N.per_layer_projection.weight
    model.layers.N.post_per_layer_input_norm.weight
    model.embed_tokens_per_layer.weight
    model.per_layer_model_projection.weight
    model.per_layer_projection_norm.weight
    model.norm.weight
    lm_head.weight                                      unless the head is the embedding

Some files leave out 'model.'. Rows of fused projections go by part, in the order of the names.
"""

from __future__ import annotations

import numpy as np

from nope.interop.families.templates import (
    LayerTensor,
    apart,
    embedding,
    fused_qkv,
    head,
    heads_bias,
    heads_weight,
    matrix,
    norm,
    outer_norm,
    output_weight,
    qk_norm,
    stacked,
    vector,
)
from nope.interop.mapping import LAM, LAM_TENSOR, SAME, TRANSPOSED, Parameter, Tensor, fused, halves
from nope.interop.mapping import matrix as outer_matrix
from nope.interop.mapping import vector as outer_vector
from nope.model import LayerKind, ModelConfig

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
    config: ModelConfig, names: frozenset[str], *, neighbours: bool = False, joined: bool = False
) -> list[Tensor]:
    """Tensors of the model; see `nope.interop.families.base.Family.tensors`. neighbours, joined:
    see `nope.interop.families.decoder.Decoder`."""
    prefix = '' if _EMBEDDING in names else 'model.'
    scaled = any(name.endswith(f'.{LAM_TENSOR}') for name in names)

    def of_layer(layer: int) -> list[LayerTensor]:
        own, kind = config.of_layer(layer), config.layer_kinds[layer]
        found = [part for name, ours in _NORMS[own.block].items() for part in norm(name, ours, own)]
        found += attention(own, kind, neighbours, joined)
        if scaled:
            found.append(LayerTensor(LAM_TENSOR, (own.heads,), (LAM,), SAME))
        return found + _mlp(own, joined) + _of_gemma4(own)

    layers = f'{prefix}layers.'
    return [
        embedding(prefix + _EMBEDDING, config),
        *_token_inputs(prefix, config),
        *(
            apart(layers, of_layer, config.layers)
            if config.apart
            else stacked(layers, of_layer(0), config.layers)
        ),
        *outer_norm(f'{prefix}norm', 'final_norm', config),
        *head(config),
    ]


def attention(
    config: ModelConfig,
    kind: LayerKind,
    neighbours: bool = False,
    joined: bool = False,
    own: str = 'self_attn',
) -> list[LayerTensor]:
    """Tensors of a layer's attention, whose names begin with `own`. neighbours, joined: as for
    `tensors`."""
    heads = {'query': config.heads}  # of each projection that layers of that kind have
    if kind.keys_from == 'input':
        heads['key'] = config.kv_heads
        if kind.values_from == 'input':
            heads['value'] = config.kv_heads
    found = []
    if joined:
        ends = np.cumsum([count * config.head_dim for count in heads.values()])
        rows = np.split(np.arange(ends[-1]), ends[:-1])
        found += fused_qkv(f'{own}.qkv_proj', config, rows)
    for ours, count in {} if joined else heads.items():
        name = f'{own}.{ours[0]}_proj'
        projection = [heads_weight(f'{name}.weight', ours, config, count)]
        if config.qkv_bias:
            projection.append(heads_bias(f'{name}.bias', ours, config, count))
        if neighbours and ours != 'value':
            projection = [part._replace(layout=halves(part.layout)) for part in projection]
        found += projection
    found.append(output_weight(f'{own}.o_proj.weight', config))
    if config.sinks:
        found.append(vector(f'{own}.sinks', ('attention', 'sinks'), config.heads))
    if config.output_bias:
        found.append(vector(f'{own}.o_proj.bias', ('attention', 'output_bias'), config.width))
    if config.output_gate == 'element':
        name = f'{own}.gate_proj.weight'
        found.append(heads_weight(name, 'output_gate', config, config.heads))
    if config.qk_norm and config.qk_norm_weights:
        found += [qk_norm(ours, config, heads[ours]) for ours in ('query', 'key') if ours in heads]
    return found


def _mlp(config: ModelConfig, joined: bool) -> list[LayerTensor]:
    D, F = config.width, config.mlp_width
    found, sides = [], (('gate', F, D), ('up', F, D), ('down', D, F))
    if joined:
        paths = ('layers', 'mlp', 'gate'), ('layers', 'mlp', 'up')
        layout = fused([TRANSPOSED, TRANSPOSED], np.split(np.arange(2 * F), 2))
        found.append(LayerTensor('mlp.gate_up_proj.weight', (2 * F, D), paths, layout))
    for ours, out, inputs in sides[2:] if joined else sides:
        found.append(matrix(f'mlp.{ours}_proj.weight', ('mlp', ours), out, inputs))
        if config.mlp_bias:
            found.append(vector(f'mlp.{ours}_proj.bias', ('mlp', f'{ours}_bias'), out))
    return found


def _of_gemma4(config: ModelConfig) -> list[LayerTensor]:
    """Output scale of a Gemma 4 layer, and its projections of per-layer embeddings."""
    found = []
    if config.layer_scale:
        found.append(vector('layer_scalar', ('layer_scale',), 1))
    if config.token_width is not None:
        D, P, ours = config.width, config.token_width, 'token_input'
        found += [
            matrix('per_layer_input_gate.weight', (ours, 'gate'), P, D),
            matrix('per_layer_projection.weight', (ours, 'output'), D, P),
            vector('post_per_layer_input_norm.weight', (ours, 'norm', 'scale'), D),
        ]
    return found


def _token_inputs(prefix: str, config: ModelConfig) -> list[Tensor]:
    """Per-layer embedding table of Gemma 4, its context projection and norm."""
    if config.token_width is None:
        return []
    P, ours = config.token_width, 'token_inputs'
    shape = config.vocab_size, config.layers * P
    table = Parameter((ours, 'embedding'))
    return [
        Tensor(f'{prefix}embed_tokens_per_layer.weight', shape, (table,), SAME),
        outer_matrix(
            f'{prefix}per_layer_model_projection.weight',
            *((ours, 'projection'), None, config.layers * P, config.width),
        ),
        outer_vector(f'{prefix}per_layer_projection_norm.weight', (ours, 'norm', 'scale'), None, P),
    ]
