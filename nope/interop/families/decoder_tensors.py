"""The tensors of checkpoints shaped like Llama's.

    model.embed_tokens.weight
    model.layers.N.input_layernorm.weight
    model.layers.N.self_attn.{q,k,v,o}_proj.{weight,bias}
    model.layers.N.self_attn.{q,k}_norm.weight          with QK-norm
    model.layers.N.self_attn.scale_param                of HeadScale: lambda of every head
    model.layers.N.post_attention_layernorm.weight      not of a parallel block
    model.layers.N.mlp.{gate,up,down}_proj.{weight,bias}
    model.norm.weight
    lm_head.weight                                      unless the head is the embedding

Some files leave out 'model.'.
"""

from __future__ import annotations

from nope.interop.families.templates import (
    Template,
    embedding,
    head,
    heads_bias,
    heads_weight,
    matrix,
    norm,
    outer_norm,
    output_weight,
    paired,
    stacked,
    vector,
)
from nope.interop.mapping import LAM, SAME, Tensor
from nope.model import ModelConfig

_EMBEDDING = 'embed_tokens.weight'


def tensors(
    config: ModelConfig, names: frozenset[str], *, neighbours: bool = False
) -> list[Tensor]:
    """Tensors of the model; see `nope.interop.families.base.Family.tensors`. neighbours: see
    `nope.interop.families.decoder.Decoder`."""
    prefix = '' if _EMBEDDING in names else 'model.'
    layers = norm('input_layernorm', 'attention_norm', config) + _attention(config, neighbours)
    if any(name.endswith('.self_attn.scale_param') for name in names):
        layers.append(Template('self_attn.scale_param', (config.heads,), (LAM,), SAME))
    if config.block != 'parallel':
        layers += norm('post_attention_layernorm', 'mlp_norm', config)
    layers += _mlp(config)
    return [
        embedding(prefix + _EMBEDDING, config),
        *stacked(f'{prefix}layers.', layers, config.layers),
        *outer_norm(f'{prefix}norm', 'final_norm', config),
        *head(config),
    ]


def _attention(config: ModelConfig, neighbours: bool) -> list[Template]:
    found = []
    heads_of = {'query': config.heads, 'key': config.kv_heads, 'value': config.kv_heads}
    for ours, heads in heads_of.items():
        name = f'self_attn.{ours[0]}_proj'
        projection = [heads_weight(f'{name}.weight', ours, config, heads)]
        if config.qkv_bias:
            projection.append(heads_bias(f'{name}.bias', ours, config, heads))
        turning = neighbours and ours != 'value'
        found += [paired(part) if turning else part for part in projection]
    found.append(output_weight('self_attn.o_proj.weight', config))
    if config.output_bias:
        found.append(vector('self_attn.o_proj.bias', ('attention', 'output_bias'), config.width))
    if config.qk_norm:
        for ours in ('query', 'key'):
            path = 'attention', f'{ours}_norm', 'scale'
            found.append(vector(f'self_attn.{ours[0]}_norm.weight', path, config.head_dim))
    return found


def _mlp(config: ModelConfig) -> list[Template]:
    D, F = config.width, config.mlp_width
    found = []
    for ours, out, inputs in (('gate', F, D), ('up', F, D), ('down', D, F)):
        found.append(matrix(f'mlp.{ours}_proj.weight', ('mlp', ours), out, inputs))
        if config.mlp_bias:
            found.append(vector(f'mlp.{ours}_proj.bias', ('mlp', f'{ours}_bias'), out))
    return found
