"""Families of fixed shape: as many key-value heads as heads, which share the width, an MLP of 4
times that width, ALiBi in every layer."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from nope.interop.families import common
from nope.interop.families.base import Described, Ignored
from nope.interop.fields import MAX_LAYERS, MAX_VOCABULARY, MAX_WIDTH, Fields
from nope.model import LayerKind, ModelConfig
from nope.positions import Alibi


class Uniform:
    """Shared methods of these families; see `nope.interop.families.base.Family`.

    fixed: fields of the model that are the same in all of its checkpoints. width, heads, layers:
    the keys of these, the one that is written first. length: that of the longest sequence.
    defaults: token ids of the stock class.
    """

    name: str
    architecture: str
    fixed: Mapping[str, Any]
    width: tuple[str, ...]
    heads: tuple[str, ...]
    layers: tuple[str, ...]
    length: str
    defaults: Mapping[str, int] = MappingProxyType({})

    def owns(self, config: Mapping[str, Any], names: frozenset[str]) -> bool:
        return common.is_type(config, self.name, self.architecture)

    def read_config(self, config: Mapping[str, Any], names: frozenset[str]) -> Described:
        fields = Fields(config)
        common.check_plain(fields)
        width, heads = fields.agreed(*self.width), fields.agreed(*self.heads)
        D, N = fields.integer(width, MAX_WIDTH // 4), fields.integer(heads, MAX_WIDTH)
        if D % N:
            raise fields.wrong(width, f'a multiple of {heads}, {N}')
        values = {
            **self.fixed,
            'layers': fields.integer(fields.agreed(*self.layers), MAX_LAYERS),
            'width': D,
            'heads': N,
            'kv_heads': N,
            'mlp_width': 4 * D,
            'vocab_size': fields.integer('vocab_size', MAX_VOCABULARY),
            'head_dim': D // N,
            'position': Alibi(),
            'norm_epsilon': fields.number('layer_norm_epsilon', 1e-5, most=1.0, zero=True),
            'tied_head': fields.flag('tie_word_embeddings', True),
        }
        values |= self._read_own(fields, values)
        train_length = fields.optional_length(self.length)
        model = common.made(fields, values)
        return common.described(fields, model, train_length, self.defaults)

    def ignored(self, config: ModelConfig) -> tuple[Ignored, ...]:
        return common.tied_head(config)

    def unwritable(self, config: ModelConfig) -> str | None:
        position, N, D = Alibi(), config.heads, config.width
        if different := common.differs(config, self.fixed):
            return different
        if config.kinds != (LayerKind(position),):
            return f'its layers have {config.describe_position()}, not {position.describe()}'
        shape = {'kv_heads': N, 'head_dim': D / N, 'mlp_width': 4 * D}
        return common.differs(config, shape)

    def write_config(self, config: ModelConfig, described: Described) -> dict[str, Any]:
        length = described.longest
        return {
            **common.head(self.architecture, self.name),
            'vocab_size': config.vocab_size,
            self.width[0]: config.width,
            self.layers[0]: config.layers,
            self.heads[0]: config.heads,
            'layer_norm_epsilon': config.norm_epsilon,
            **self._write_own(config),
            'tie_word_embeddings': config.tied_head,
            **({} if length is None else {self.length: length}),
            **common.facts(described),
        }

    def _read_own(self, fields: Fields, values: Mapping[str, Any]) -> dict[str, Any]:
        """Checks the family's own keys; the model's fields that they say."""
        raise NotImplementedError

    def _write_own(self, config: ModelConfig) -> dict[str, Any]:
        raise NotImplementedError
