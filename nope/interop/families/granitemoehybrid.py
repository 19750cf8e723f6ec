"""GraniteMoeHybridForCausalLM (Granite 4 H) where no layer has experts: Mamba-2 or attention, then
an MLP, with Granite's multipliers.

    "layer_types": ["mamba", "attention", ...], "position_embedding_type": "nope", ...

    model.layers.N.input_layernorm.weight
    model.layers.N.self_attn.{q,k,v,o}_proj.{weight,bias}
    model.layers.N.mamba.{in_proj,conv1d,...}           see `mamba_tensors`
    model.layers.N.post_attention_layernorm.weight
    model.layers.N.shared_mlp.input_linear.weight       rows of gate, then of up
    model.layers.N.shared_mlp.output_linear.weight
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nope.interop.families import decoder_tensors, kinds, mamba_tensors
from nope.interop.families.base import Described
from nope.interop.families.decoder import Alike, Defaults
from nope.interop.families.granite import FREE, Granite
from nope.interop.families.templates import (
    LayerTensor,
    apart,
    embedding,
    head,
    matrix,
    norm,
    outer_norm,
    stacked,
)
from nope.interop.fields import MAX_WIDTH, Fields
from nope.interop.mapping import TRANSPOSED, Tensor, fused
from nope.model import LayerKind, ModelConfig
from nope.model.mixers import Attention, Mamba2
from nope.positions import NoPE, RoPE

# Names of types here -> both that files have.
_TYPES = {'mamba': ('mamba', 'linear_attention'), 'attention': ('attention', kinds.FULL)}
_ROTATES = 'position_embedding_type'


@dataclasses.dataclass(eq=False)
class GraniteHybrid(Granite):
    """A `nope.interop.families.base.Family`."""

    def _check_foreign(self, fields: Fields) -> None:
        super()._check_foreign(fields)
        experts = fields.integer('num_local_experts', 2**16, 8, least=0)
        if experts:
            accepted = '0: sizes without experts, as Granite 4 H Micro, 1B and 350M'
            raise fields.wrong('num_local_experts', accepted)

    def _read_shape(self, fields: Fields) -> dict[str, int]:
        width = fields.integer('shared_intermediate_size', MAX_WIDTH, 1024)
        of_mlp = {**fields.values, 'intermediate_size': width}
        return super()._read_shape(Fields(of_mlp, fields.where))

    def _read_layers(
        self, fields: Fields, shape: Mapping[str, int]
    ) -> tuple[RoPE, Sequence[LayerKind]]:
        rotates = fields.values.get(_ROTATES)
        if rotates not in (None, 'nope', 'rope'):
            raise fields.wrong(_ROTATES, '"rope", "nope" or null')
        rope = self._read_rope(fields, shape) if rotates == 'rope' else RoPE()
        attention = LayerKind(rope if rotates == 'rope' else NoPE())
        named = {name: ours for ours, names in _TYPES.items() for name in names}
        types: Sequence[str] = ['mamba'] * shape['layers']
        if fields.has('layer_types'):
            types = fields.choices('layer_types', named)
        if len(types) != shape['layers'] or not {*_TYPES['attention']} & {*types}:
            rule = f'one for each of {shape["layers"]} layers, attention among them'
            raise fields.wrong('layer_types', rule)
        found = {'attention': attention}
        if {*_TYPES['mamba']} & {*types}:
            found['mamba'] = LayerKind(mixer=_read_mamba(fields, shape))
        return rope, [found[named[name]] for name in types]

    def tensors(self, config: ModelConfig, names: frozenset[str]) -> list[Tensor]:
        D, F = config.width, config.mlp_width
        halves = fused([TRANSPOSED, TRANSPOSED], np.split(np.arange(2 * F), 2))
        joined = ('layers', 'mlp', 'gate'), ('layers', 'mlp', 'up')

        def of_layer(layer: int) -> list[LayerTensor]:
            kind = config.layer_kinds[layer]
            if isinstance(kind.mixer, Mamba2):
                mixed = mamba_tensors.tensors('mamba', kind.mixer, D)
            else:
                mixed = decoder_tensors.attention(config, kind)
            assert kind.mixer is not None
            return [
                *norm('input_layernorm', f'{kind.mixer.name}_norm', config),
                *mixed,
                *norm('post_attention_layernorm', 'mlp_norm', config),
                LayerTensor('shared_mlp.input_linear.weight', (2 * F, D), joined, halves),
                matrix('shared_mlp.output_linear.weight', ('mlp', 'down'), D, F),
            ]

        return [
            embedding('model.embed_tokens.weight', config),
            *(
                apart('model.layers.', of_layer, config.layers)
                if config.apart
                else stacked('model.layers.', of_layer(0), config.layers)
            ),
            *outer_norm('model.norm', 'final_norm', config),
            *head(config),
        ]

    def _unwritable_positions(self, config: ModelConfig) -> str | None:
        if not all(kind.mlp and kind.mixer is not None for kind in config.kinds):
            return f'some of its layers lack a part ({config.describe_kinds()})'
        mixers = {kind.mixer for kind in config.kinds} - {Attention()}
        if len(mixers) != 1 or not isinstance(next(iter(mixers)), Mamba2):
            return f'its layers are {config.describe_kinds()}, without one kind of Mamba-2'
        (mamba,) = mixers
        assert isinstance(mamba, Mamba2)
        if config.activation != 'silu':
            return f'activation is {config.activation!r}, which Mamba-2 would have there too'
        if mamba.heads * mamba.head_dim % config.width:
            return (
                f'its Mamba-2 is {mamba.heads * mamba.head_dim} wide, no multiple of the model, '
                f'{config.width}'
            )
        attending = {kind.position for kind in config.kinds if kind.attends}
        windowed = kinds.windows_of(config)
        if len(attending) > 1 or windowed:
            return f'its layers with attention are not alike ({config.describe_kinds()})'
        (position,) = attending
        if position == NoPE():
            return None
        if not isinstance(position, RoPE):
            return f'its layers have {position.describe()}, not RoPE or none'
        return self._unwritable_rope(config, position)

    def write_config(self, config: ModelConfig, described: Described) -> dict[str, Any]:
        return {
            **super().write_config(config, described),
            'shared_intermediate_size': config.mlp_width,
            'num_local_experts': 0,
            'num_experts_per_tok': 0,
        }

    def _write_positions(self, config: ModelConfig, longest: int | None) -> dict[str, Any]:
        (mamba,) = {kind.mixer for kind in config.kinds if isinstance(kind.mixer, Mamba2)}
        assert isinstance(mamba, Mamba2)
        types = ['attention' if kind.attends else 'mamba' for kind in kinds.of_layers(config)]
        (position,) = {kind.position for kind in config.kinds if kind.attends}
        turned: dict[str, Any] = {} if longest is None else {'max_position_embeddings': longest}
        if isinstance(position, RoPE):
            turned = self._write_rope(config, position, longest)
        most = mamba_tensors.INFINITE if mamba.most_step is None else mamba.most_step
        bounded = mamba.least_step > 0 or mamba.most_step is not None
        return {
            **turned,
            _ROTATES: 'nope' if position == NoPE() else 'rope',
            'layer_types': types,
            'mamba_n_heads': mamba.heads,
            'mamba_d_head': mamba.head_dim,
            'mamba_d_state': mamba.state,
            'mamba_n_groups': mamba.groups,
            'mamba_d_conv': mamba.taps,
            'mamba_expand': mamba.heads * mamba.head_dim // config.width,
            'mamba_conv_bias': mamba.convolution_bias,
            'mamba_proj_bias': mamba.bias,
            **({mamba_tensors.LIMIT: [mamba.least_step, most]} if bounded else {}),
        }


def _read_mamba(fields: Fields, shape: Mapping[str, int]) -> Mamba2:
    why = 'stock ends the convolution in it too, which has silu here'
    fields.only('hidden_act', 'silu', 'swish', why=why)
    inner = fields.integer('mamba_expand', MAX_WIDTH // shape['width'], 2) * shape['width']
    heads = fields.integer('mamba_n_heads', inner, 128)
    if inner % heads:
        raise fields.wrong('mamba_n_heads', f'a divisor of mamba_expand hidden_size, {inner}')
    if fields.values.get('mamba_d_head') != 'auto':
        fields.only('mamba_d_head', inner // heads, why='it follows from width and heads')
    groups = fields.integer('mamba_n_groups', heads, 1)
    if heads % groups:
        raise fields.wrong('mamba_n_groups', f'a divisor of mamba_n_heads, {heads}')
    least, most = mamba_tensors.read_limits(fields)
    return Mamba2(
        heads=heads,
        head_dim=inner // heads,
        state=fields.integer('mamba_d_state', 2**16, 256),
        groups=groups,
        taps=fields.integer('mamba_d_conv', 2**8, 4, least=2),
        convolution_bias=fields.flag('mamba_conv_bias', True),
        bias=fields.flag('mamba_proj_bias', False),
        least_step=least,
        most_step=most,
    )


GRANITE_HYBRID = GraniteHybrid(
    name='granitemoehybrid',
    architecture='GraniteMoeHybridForCausalLM',
    defaults=Defaults(
        longest=2048, heads=32, vocabulary=32_000, tokens={'bos_token_id': 1, 'eos_token_id': 2}
    ),
    biases={'attention_bias': ('qkv_bias', 'output_bias')},
    layers=Alike(('layer_types', _ROTATES)),
    free=FREE,
    mixes=True,
)
