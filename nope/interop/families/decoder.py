"""Decoder families of Llama's shape: gated MLP, RoPE or none.

They differ in a few keys of config.json, in their norms and biases, and in the properties of
layers. A family is a `Decoder` with its own values of these.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from nope.interop import rope_settings
from nope.interop.families import common, decoder_tensors, kinds
from nope.interop.families.base import Described, Ignored
from nope.interop.fields import MAX_LAYERS, MAX_VOCABULARY, MAX_WIDTH, Fields
from nope.interop.mapping import Tensor
from nope.model import LayerKind, ModelConfig
from nope.positions import RoPE

ACTIVATIONS = {
    'silu': 'silu',
    'swish': 'silu',
    'gelu': 'gelu',
    'gelu_new': 'gelu_tanh',
    'gelu_pytorch_tanh': 'gelu_tanh',
    'relu': 'relu',
    'relu2': 'relu2',
}
_WRITTEN = {**{name: name for name in ACTIVATIONS.values()}, 'gelu_tanh': 'gelu_pytorch_tanh'}

# What nothing in a config.json says, unless a family has another value `fixed`.
_SHARED: Mapping[str, Any] = {
    **common.PLAIN,
    'softmax_scale': None,
    'norm': 'rms',
    'embedding_norm': False,
    'mlp': 'gated',
}
_BIASES = ('qkv_bias', 'output_bias', 'mlp_bias')


class Defaults(NamedTuple):
    """Defaults of stock `transformers` for keys that a config.json leaves out.

    heads, vocabulary: None where a file has to have them. kv_heads, head_dim: None for as many as
    heads, and for width / heads. epsilon: of the norms. logit_scale: None for a class that
    multiplies no logits. tokens: ids by their keys, those that a class has.
    """

    longest: int
    heads: int | None = None
    vocabulary: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    tied: bool = False
    theta: float = rope_settings.THETA
    epsilon: float = 1e-6
    logit_scale: float | None = None
    activation: str = 'silu'
    tokens: Mapping[str, int] = MappingProxyType({})


class Layers(Protocol):
    """Layer kinds in a family's config.json."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that it reads, of those that other families have too."""
        ...

    def read(self, fields: Fields, layers: int, rope: RoPE) -> Sequence[LayerKind]:
        """The kind of every layer."""
        ...

    def unwritable(self, config: ModelConfig) -> str | None:
        """Reason why it cannot describe the layers of this model; None if it can."""
        ...

    def write(self, config: ModelConfig) -> dict[str, Any]:
        """The keys that say it."""
        ...


@dataclasses.dataclass(frozen=True)
class Alike:
    """All layers alike: RoPE, every key seen. keys: those by which a family reads others itself."""

    keys: tuple[str, ...] = ()

    def read(self, fields: Fields, layers: int, rope: RoPE) -> Sequence[LayerKind]:
        return [LayerKind(rope)] * layers

    def unwritable(self, config: ModelConfig) -> str | None:
        if windows := kinds.windows_of(config):
            return f'its layers have a window, {windows[0]}'
        return kinds.not_rope(config)

    def write(self, config: ModelConfig) -> dict[str, Any]:
        return {}


@dataclasses.dataclass(eq=False)
class Decoder:
    """A `nope.interop.families.base.Family`.

    name: the `model_type`. architecture: the class of stock `transformers`.
    biases: the biases that a key of config.json turns on, by the key: of `qkv_bias`,
        `output_bias` and `mlp_bias`. always: those that are always there.
    qk_norm: whether queries and keys have norms.
    whole_heads: whether stock `transformers` insists that the heads divide the width.
    fixed: fields of the model in which all of its checkpoints differ from Llama. free: fields that
        its config decides on, where Llama's does not.
    epsilon, activation: the keys of the norms' epsilon and of the MLP's activation.
    neighbours: whether RoPE pairs are neighbouring dimensions there. Here they are halves of a
        head: the rows of queries and keys are read and written in another order.
    joined: whether queries, keys and values come from one matrix, and the MLP's gate and up too.
    notes: keys that the class does not look at, and the values that say what it computes.
    by_layer: whether its layers may differ in the sizes of their arrays. mixes: whether they may
        have another mixer than attention, or one part alone.
    """

    name: str
    architecture: str
    defaults: Defaults
    layers: Layers = dataclasses.field(default_factory=Alike)
    biases: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    always: tuple[str, ...] = ()
    qk_norm: bool = False
    whole_heads: bool = False
    fixed: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    free: tuple[str, ...] = ()
    epsilon: str = 'rms_norm_eps'
    activation: str = 'hidden_act'
    neighbours: bool = False
    joined: bool = False
    notes: Mapping[str, tuple[Any, ...]] = dataclasses.field(default_factory=dict)
    by_layer: bool = False
    mixes: bool = False

    def owns(self, config: Mapping[str, Any], names: frozenset[str]) -> bool:
        return common.is_type(config, self.name, self.architecture)

    def read_config(self, config: Mapping[str, Any], names: frozenset[str]) -> Described:
        fields = Fields(config)
        self._check_foreign(fields)
        shape = self._read_shape(fields)
        rope, layers = self._read_layers(fields, shape)
        values = {
            **self._fixed(),
            **shape,
            **self._read_biases(fields),
            **kinds.arranged(layers),
            'qk_norm': self.qk_norm,
            **self._read_values(fields, shape),
            'activation': ACTIVATIONS[
                fields.text(self.activation, ACTIVATIONS, self.defaults.activation)
            ],
            'norm_epsilon': fields.number(self.epsilon, self.defaults.epsilon, most=1.0, zero=True),
            'tied_head': fields.flag('tie_word_embeddings', self.defaults.tied),
        }
        model = common.made(fields, values)
        longest = fields.optional_length('max_position_embeddings')
        length = getattr(rope.scaling, 'train_length', longest)
        return common.described(fields, model, length, self.defaults.tokens, longest)

    def tensors(self, config: ModelConfig, names: frozenset[str]) -> list[Tensor]:
        return decoder_tensors.tensors(
            config, names, neighbours=self.neighbours, joined=self.joined
        )

    def ignored(self, config: ModelConfig) -> tuple[Ignored, ...]:
        frequencies = Ignored(
            re.compile(r'(model\.)?(layers\.\d+\.self_attn\.)?rotary_emb\.inv_freq'),
            'RoPE frequencies, which follow from the config',
        )
        return (frequencies, *common.tied_head(config))

    def unwritable(self, config: ModelConfig) -> str | None:
        return (
            common.differs(config, {**self._fixed(), 'qk_norm': self.qk_norm})
            or kinds.nowhere_written(config)
            or self._unwritable_biases(config)
            or self._unwritable_heads(config)
            or self._unwritable_positions(config)
        )

    def write_config(self, config: ModelConfig, described: Described) -> dict[str, Any]:
        return {
            **common.head(self.architecture, self.name),
            'vocab_size': config.vocab_size,
            'hidden_size': config.width,
            'intermediate_size': config.mlp_width,
            'num_hidden_layers': config.layers,
            'num_attention_heads': config.heads,
            'num_key_value_heads': config.kv_heads,
            'head_dim': config.head_dim,
            self.activation: _WRITTEN[config.activation],
            self.epsilon: config.norm_epsilon,
            'tie_word_embeddings': config.tied_head,
            **self._write_logit_scale(config),
            **{key: getattr(config, owned[0]) for key, owned in self.biases.items()},
            **self._write_positions(config, described.longest),
            **common.facts(described),
        }

    def _read_layers(
        self, fields: Fields, shape: Mapping[str, int]
    ) -> tuple[RoPE, Sequence[LayerKind]]:
        """The RoPE that the config describes, and the kind of every layer. shape: sizes
        of the model."""
        rope = self._read_rope(fields, shape)
        return rope, self.layers.read(fields, shape['layers'], rope)

    def _read_rope(self, fields: Fields, shape: Mapping[str, int]) -> RoPE:
        return rope_settings.read(fields, theta=self.defaults.theta, longest=self.defaults.longest)

    def _unwritable_positions(self, config: ModelConfig) -> str | None:
        """Reason why the config cannot describe positions and windows; None if it can."""
        rope = kinds.rope_of(config)
        found = self.layers.unwritable(config)
        return found or (self._unwritable_rope(config, rope) if rope else None)

    def _unwritable_rope(self, config: ModelConfig, rope: RoPE) -> str | None:
        return rope_settings.unwritable(rope, config.head_dim)

    def _write_positions(self, config: ModelConfig, longest: int | None) -> dict[str, Any]:
        """The keys for positions and windows. longest: the longest sequence it is for, if known."""
        rope = kinds.rope_of(config)
        if rope is not None:
            position = self._write_rope(config, rope, longest)
        else:
            position = {} if longest is None else {'max_position_embeddings': longest}
        return {**position, **self.layers.write(config)}

    def _write_rope(self, config: ModelConfig, rope: RoPE, longest: int | None) -> dict[str, Any]:
        return rope_settings.write(rope, config.head_dim, longest)

    def _fixed(self) -> dict[str, Any]:
        """Fields of the model that are the same in all checkpoints."""
        fixed = {**_SHARED, **self.fixed}
        return {key: value for key, value in fixed.items() if key not in self.free}

    def _read_values(self, fields: Fields, shape: Mapping[str, int]) -> dict[str, Any]:
        """The fields that are `free`. shape: sizes of the model."""
        if self.defaults.logit_scale is None:
            return {}
        return {'logit_multiplier': fields.number('logit_scale', self.defaults.logit_scale)}

    def _write_logit_scale(self, config: ModelConfig) -> dict[str, float]:
        return {} if self.defaults.logit_scale is None else {'logit_scale': config.logit_multiplier}

    def _read_shape(self, fields: Fields) -> dict[str, int]:
        heads = fields.integer('num_attention_heads', MAX_WIDTH, *_given(self.defaults.heads))
        width = fields.integer('hidden_size', MAX_WIDTH)
        if self.whole_heads and width % heads:
            raise fields.wrong('hidden_size', f'a multiple of num_attention_heads, {heads}')
        kv_heads, head_dim = heads, max(width // heads, 1)
        if 'num_key_value_heads' not in fields.values:
            kv_heads = self.defaults.kv_heads or kv_heads
        if 'head_dim' not in fields.values:
            head_dim = self.defaults.head_dim or head_dim
        kv_heads = fields.integer('num_key_value_heads', heads, kv_heads)
        if heads % kv_heads:
            raise fields.wrong('num_key_value_heads', f'a divisor of {heads} heads')
        return {
            'layers': fields.integer('num_hidden_layers', MAX_LAYERS),
            'width': width,
            'heads': heads,
            'kv_heads': kv_heads,
            'mlp_width': fields.integer('intermediate_size', MAX_WIDTH),
            'vocab_size': fields.integer(
                'vocab_size', MAX_VOCABULARY, *_given(self.defaults.vocabulary)
            ),
            'head_dim': fields.integer('head_dim', MAX_WIDTH // heads, head_dim),
        }

    def _read_biases(self, fields: Fields) -> dict[str, bool]:
        found = {bias: bias in self.always for bias in _BIASES}
        for key, owned in self.biases.items():
            found |= dict.fromkeys(owned, fields.flag(key, False))
        return found

    def _unwritable_biases(self, config: ModelConfig) -> str | None:
        for key, owned in self.biases.items():
            if len({getattr(config, bias) for bias in owned}) > 1:
                return f'{" and ".join(owned)} differ, where {key} is for both'
        free = {bias for owned in self.biases.values() for bias in owned}
        fixed = {bias: bias in self.always for bias in _BIASES if bias not in free}
        return common.differs(config, fixed)

    def _unwritable_heads(self, config: ModelConfig) -> str | None:
        differ = f'its layers differ in their arrays ({config.describe_kinds()})'
        if not self.mixes and not all(kind.attends and kind.mlp for kind in config.kinds):
            return differ
        sized = any(getattr(kind, name) for kind in config.kinds for name in kind.sizes)
        if not self.by_layer and (sized or (config.apart and not self.mixes)):
            return differ
        if config.head_dim % 2:
            return f'head_dim is {config.head_dim}, an odd number'
        if self.whole_heads and config.width % config.heads:
            return f'width is {config.width}, no multiple of the {config.heads} heads'
        return None

    def _check_foreign(self, fields: Fields) -> None:
        """ValueError for what other classes compute and this one does not."""
        common.check_plain(fields, by_layer=self.by_layer)
        for key, (accepted, why) in self._foreign().items():
            if not any(key in own for own in (self.biases, self.layers.keys, self.notes)):
                fields.only(key, *accepted, why=f'{self.architecture} {why}')
        for key, values in self.notes.items():
            fields.only(key, *values, why=f'{self.architecture} computes nothing else')
        if 'layer_types' not in self.layers.keys and fields.has('layer_types'):
            fields.choices('layer_types', (kinds.FULL,))

    def _foreign(self) -> dict[str, tuple[tuple[Any, ...], str]]:
        """Keys, the values of them that change nothing, and why others would."""
        always = {key: key in self.always for key in ('qkv_bias', 'mlp_bias')}
        return {
            'attention_bias': ((always['qkv_bias'],), 'has no such choice of biases'),
            'mlp_bias': ((always['mlp_bias'],), 'has no such choice of biases'),
            'sliding_window': ((), 'has no windows'),
            'use_sliding_window': ((False,), 'has no windows'),
            **{key: (turns, 'leaves no layer out by it') for key, turns in _ROTATES.items()},
            'rope_interleaved': (
                (self.neighbours,),
                f'turns {"neighbouring dimensions" if self.neighbours else "halves of a head"}',
            ),
            'qk_norm': ((self.qk_norm,), 'has no such choice of norms'),
            'use_qk_norm': ((self.qk_norm,), 'has no such choice of norms'),
            'attention_chunk_size': ((), 'has no chunks'),
            'attn_logit_softcapping': ((), 'caps no logits'),
            'final_logit_softcapping': ((), 'caps no logits'),
        }


# Keys by which some class leaves layers without rotation -> their values of a layer that turns. A
# class that has another key, or none, would turn all of them.
_ROTATES: Mapping[str, tuple[Any, ...]] = {
    'no_rope_layers': (),
    'no_rope_layer_interval': (),
    'nope_layer_interval': (),
    'use_rope_layers': (),
    'layer_rope_theta': (),
    'qk_rope_head_dim': (),
    'position_embedding_type': ('rope',),
    'use_rope': (True,),
    'use_nope': (False,),
    'skip_rope': (False,),
    'rotary_pct': (1.0,),
}


def _given(default: int | None) -> tuple[int, ...]:
    """A default as an argument, where there is one."""
    return () if default is None else (default,)
