"""NemotronHForCausalLM (Nemotron-H, Nano 2, the dense ones of Nano 3): layers of one part each.

    "layers_block_type": ["linear_attention", "mlp", "full_attention", ...]
    "hybrid_override_pattern": "M-*..."     the same in older files; E is a mixture of experts

    model.embeddings.weight                 also backbone.embeddings.weight, and so below
    model.layers.N.norm.weight
    model.layers.N.mixer.{q,k,v,o}_proj.weight
    model.layers.N.mixer.{in_proj,conv1d,...}   of Mamba-2, see `mamba_tensors`
    model.layers.N.mixer.{up,down}_proj.{weight,bias}
    model.norm_f.weight
    lm_head.weight

Attention has no positions. As in stock, steps of Mamba-2 are at least `time_step_min`, whatever
`time_step_limit` says. Stock leaves that bound out where it decodes a token by its cache; here it
holds there too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nope.interop.families import common, decoder_tensors, kinds, mamba_tensors
from nope.interop.families.base import Described, Ignored
from nope.interop.families.decoder import Alike, Decoder, Defaults
from nope.interop.families.templates import (
    LayerTensor,
    apart,
    embedding,
    head,
    matrix,
    norm,
    outer_norm,
    vector,
)
from nope.interop.fields import MAX_LAYERS, MAX_WIDTH, WHERE, Fields
from nope.interop.mapping import Tensor
from nope.model import LayerKind, ModelConfig
from nope.model.mixers import Mamba2
from nope.positions import RoPE

_MAMBA, _MLP, _EXPERTS = 'linear_attention', 'mlp', 'moe'
_LETTERS = {'M': _MAMBA, '-': _MLP, '*': kinds.FULL, 'E': _EXPERTS}
_OLDER = {'mamba': _MAMBA, 'attention': kinds.FULL}  # of transformers before 5.24
# Keys of a list of types, of which a file has one.
_TYPES = ('layers_block_type', 'layer_types')
_PATTERN = 'hybrid_override_pattern'
# Keys of transformers before 5 -> those of today.
_RENAMED = {
    'mamba_n_groups': 'n_groups',
    'mamba_d_conv': 'conv_kernel',
    'mamba_dt_min': 'time_step_min',
    'mamba_conv_bias': 'use_conv_bias',
}


class NemotronH(Decoder):
    """A `nope.interop.families.base.Family`."""

    def read_config(self, config: Mapping[str, Any], names: frozenset[str]) -> Described:
        renamed = {_RENAMED.get(key, key): value for key, value in config.items()}
        return super().read_config(renamed, names)

    def _read_shape(self, fields: Fields) -> dict[str, int]:
        counted = {**fields.values, 'num_hidden_layers': len(_types(fields))}
        return super()._read_shape(Fields(counted, fields.where))

    def _read_layers(
        self, fields: Fields, shape: Mapping[str, int]
    ) -> tuple[RoPE, Sequence[LayerKind]]:
        mamba = LayerKind(mixer=_read_mamba(fields), mlp=False)
        found = {_MAMBA: mamba, _MLP: LayerKind(mixer=None), kinds.FULL: LayerKind(mlp=False)}
        return RoPE(), [found[name] for name in _types(fields)]

    def tensors(self, config: ModelConfig, names: frozenset[str]) -> list[Tensor]:
        prefix = 'backbone.' if 'backbone.embeddings.weight' in names else 'model.'
        D, F = config.width, config.mlp_width

        def of_layer(layer: int) -> list[LayerTensor]:
            kind, own = config.layer_kinds[layer], 'mixer'
            if isinstance(kind.mixer, Mamba2):
                return [
                    *norm('norm', 'mamba2_norm', config),
                    *mamba_tensors.tensors(own, kind.mixer, D),
                ]
            if kind.attends:
                return [
                    *norm('norm', 'attention_norm', config),
                    *decoder_tensors.attention(config, kind, own=own),
                ]
            found = [*norm('norm', 'mlp_norm', config)]
            for ours, out, inputs in (('up', F, D), ('down', D, F)):
                found.append(matrix(f'{own}.{ours}_proj.weight', ('mlp', ours), out, inputs))
                if config.mlp_bias:
                    found.append(vector(f'{own}.{ours}_proj.bias', ('mlp', f'{ours}_bias'), out))
            return found

        return [
            embedding(f'{prefix}embeddings.weight', config),
            *apart(f'{prefix}layers.', of_layer, config.layers),
            *outer_norm(f'{prefix}norm_f', 'final_norm', config),
            *head(config),
        ]

    def ignored(self, config: ModelConfig) -> tuple[Ignored, ...]:
        return (common.FURTHER, *common.tied_head(config))

    def _unwritable_positions(self, config: ModelConfig) -> str | None:
        mixers = {kind.mixer for kind in config.kinds if not kind.attends} - {None}
        for kind in config.kinds:
            if kind.mixer is not None and kind.mlp:
                return f'its layers have a mixer and an MLP ({kind.describe()})'
            if kind.attends and kind.reach != LayerKind(mixer=kind.mixer):
                return f'its layers with attention have {kind.reach.describe()}, not none'
        if len(mixers) != 1:
            return f'its layers are {config.describe_kinds()}, without one kind of Mamba-2'
        (mamba,) = mixers
        if not isinstance(mamba, Mamba2) or mamba.most_step is not None:
            return f'its layers are {config.describe_kinds()}, not Mamba-2 with steps of any size'
        return None

    def _write_positions(self, config: ModelConfig, longest: int | None) -> dict[str, Any]:
        names = [
            kinds.FULL if kind.attends else _MLP if kind.mixer is None else _MAMBA
            for kind in kinds.of_layers(config)
        ]
        (mamba,) = {kind.mixer for kind in config.kinds if isinstance(kind.mixer, Mamba2)}
        assert isinstance(mamba, Mamba2)
        letters = {name: letter for letter, name in _LETTERS.items()}
        return {
            _PATTERN: ''.join(letters[name] for name in names),
            'mamba_num_heads': mamba.heads,
            'mamba_head_dim': mamba.head_dim,
            'ssm_state_size': mamba.state,
            'n_groups': mamba.groups,
            'conv_kernel': mamba.taps,
            'use_conv_bias': mamba.convolution_bias,
            'use_bias': mamba.bias,
            'time_step_min': mamba.least_step,
            **({} if longest is None else {'max_position_embeddings': longest}),
        }


def _types(fields: Fields) -> list[str]:
    """The type of every layer; ValueError for mixtures of experts, and for no types."""
    keys = [key for key in _TYPES if fields.has(key)]
    if keys:
        given = fields.choices(keys[0], (*_LETTERS.values(), *_OLDER))
        types = [_OLDER.get(name, name) for name in given]
    else:
        pattern = fields.values.get(_PATTERN)
        if not isinstance(pattern, str) or not set(pattern) <= set(_LETTERS):
            raise fields.wrong(_PATTERN, 'a text of M (Mamba-2), - (MLP) and * (attention)')
        types = [_LETTERS[letter] for letter in pattern]
    key = (*keys, _PATTERN)[0]
    if kinds.FULL not in types or len(types) > MAX_LAYERS:
        raise fields.wrong(key, f'up to {MAX_LAYERS} layers, one with attention among them')
    if _EXPERTS in types:
        raise ValueError(
            f'{WHERE}{key} has mixtures of experts in {types.count(_EXPERTS)} of '
            f'{len(types)} layers, which are not among ours; accepted: the dense sizes, as '
            'Nemotron-H 4B to 56B, Nano 9B v2 and 3 Nano 4B'
        )
    return types


def _read_mamba(fields: Fields) -> Mamba2:
    if mamba_tensors.read_limits(fields) != (0.0, None):
        raise fields.wrong(mamba_tensors.LIMIT, '[0, Infinity]; stock bounds by time_step_min')
    fields.only('mamba_hidden_act', 'silu', why='the convolution ends in it here')
    heads = fields.integer('mamba_num_heads', MAX_WIDTH, 128)
    groups = fields.integer('n_groups', heads, 8)
    if heads % groups:
        raise fields.wrong('n_groups', f'a divisor of mamba_num_heads, {heads}')
    return Mamba2(
        heads=heads,
        head_dim=fields.integer('mamba_head_dim', MAX_WIDTH // heads, 64),
        state=fields.integer('ssm_state_size', 2**16, 128),
        groups=groups,
        taps=fields.integer('conv_kernel', 2**8, 4, least=2),
        convolution_bias=fields.flag('use_conv_bias', True),
        bias=fields.flag('use_bias', False),
        least_step=fields.number('time_step_min', 0.001, zero=True),
    )


NEMOTRON_H = NemotronH(
    name='nemotron_h',
    architecture='NemotronHForCausalLM',
    defaults=Defaults(
        longest=4096,
        heads=32,
        vocabulary=131_072,
        kv_heads=8,
        head_dim=128,
        epsilon=1e-5,
        activation='relu2',
        tokens={'bos_token_id': 1, 'eos_token_id': 2, 'pad_token_id': 0},
    ),
    layers=Alike(_TYPES),
    biases={'mlp_bias': ('mlp_bias',)},
    fixed={'mlp': 'plain', 'tied_head': False},
    notes={
        'tie_word_embeddings': (False,),
        'position_embedding_type': ('nope',),
        'use_rope': (False,),
    },
    epsilon='layer_norm_epsilon',
    activation='mlp_hidden_act',
    mixes=True,
)
