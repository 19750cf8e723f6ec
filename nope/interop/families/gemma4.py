"""Gemma4ForCausalLM, the text models of Gemma 4 but its mixture of experts, and of the unified 12B.

What they have beyond Gemma 3, layer by layer:

    layers that see every key   heads of `global_head_dim`, p-RoPE, and with `attention_k_eq_v`
                                `num_global_key_value_heads`, whose values are their keys
    the last                    `num_kv_shared_layers` attend to the keys and values of the last
                                layer before them of their type; with `use_double_wide_mlp` their
                                MLP is twice as wide
    all                         values of unit norm, a learned factor of what leaves the layer, and
                                with `hidden_size_per_layer_input` an input of the tokens

`transformers` 5 writes heads of other sizes as `per_layer_config`, by number of the layer.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

from nope.interop import rope_settings
from nope.interop.families import kinds
from nope.interop.families.base import Described, Ignored
from nope.interop.families.by_type import SETTINGS, ByType, both_types
from nope.interop.families.gemma3 import GEMMA3
from nope.interop.families.interleaved import Interleaved
from nope.interop.fields import MAX_LAYERS, MAX_WIDTH, Fields
from nope.model import LayerKind, ModelConfig
from nope.positions import RoPE

_INPUTS = 'hidden_size_per_layer_input'
_SHARED = 'num_kv_shared_layers'
_WIDE = 'use_double_wide_mlp'
_AS_KEYS = 'attention_k_eq_v'
_BY_LAYER = 'per_layer_config'
_HEAD_DIM, _KV_HEADS = 'global_head_dim', 'num_global_key_value_heads'
_CAP = 'final_logit_softcapping'


@dataclasses.dataclass(frozen=True)
class _Types(Interleaved):
    """The last layer sees every key, whatever the file says of it."""

    def read(self, fields: Fields, layers: int, rope: RoPE) -> Sequence[LayerKind]:
        if not fields.has('layer_types'):
            why = f'stock takes every {self.interval}th layer where layer_types is left out'
            fields.only('sliding_window_pattern', self.interval, why=why)
        *others, last = super().read(fields, layers, rope)
        return [*others, dataclasses.replace(last, window=None)]


@dataclasses.dataclass(eq=False)
class _Gemma4(ByType):
    """inputs: whether the class has inputs of the tokens and a mixture of experts."""

    inputs: bool = True

    def _read_layers(
        self, fields: Fields, shape: Mapping[str, int]
    ) -> tuple[RoPE, Sequence[LayerKind]]:
        rope, found = super()._read_layers(fields, shape)
        whole = [i for i, kind in enumerate(found) if kind.window is None]
        as_keys = fields.flag(_AS_KEYS, False)
        sizes = self._read_sizes(fields, shape, whole, as_keys)
        changes: dict[str, Any] = {
            name: size for name, size in sizes.items() if size != shape[name]
        }
        if as_keys:
            changes['values_from'] = 'keys'
        found = [
            dataclasses.replace(kind, **changes) if kind.window is None else kind for kind in found
        ]
        return rope, self._read_shared(fields, shape, found)

    def _read_ropes(self, fields: Fields) -> tuple[RoPE, RoPE]:
        if fields.has(SETTINGS):
            return super()._read_ropes(fields)
        for key in ('rope_theta', 'rope_scaling'):
            fields.only(key, why=f'{self.architecture} reads {SETTINGS} alone')
        return RoPE(self.defaults.theta, share=0.25), RoPE(self.sliding_theta)

    def _unnamed(self, fields: Fields, full: RoPE) -> bool:
        return False

    def _read_sizes(
        self, fields: Fields, shape: Mapping[str, int], whole: Sequence[int], as_keys: bool
    ) -> dict[str, int]:
        """Sizes of heads in the layers `whole`, which see every key. By the layers' numbers ('4' or
        '04') they have to be the same."""
        most = MAX_WIDTH // shape['heads']
        if not fields.has(_BY_LAYER):
            kv_heads = _kv_heads(fields, _KV_HEADS, shape) if as_keys else shape['kv_heads']
            return {'head_dim': fields.integer(_HEAD_DIM, most, 512), 'kv_heads': kv_heads}
        section, found = fields.section(_BY_LAYER), []
        numbers = {layer: str(layer) for layer in whole}
        for key in section.values:
            if isinstance(key, str) and re.fullmatch('[0-9]{1,5}', key) and int(key) in numbers:
                numbers[int(key)] = key
        section.known(numbers.values(), 'the layers that see every key')
        for key in numbers.values():
            entry = section.section(key)
            entry.known(('head_dim', 'num_key_value_heads'), 'sizes in which layers differ here')
            head_dim = entry.integer('head_dim', most, shape['head_dim'])
            kv_heads = _kv_heads(entry, 'num_key_value_heads', shape)
            found.append({'head_dim': head_dim, 'kv_heads': kv_heads})
            if found[-1] != found[0]:
                raise section.wrong(key, f'the same as of layer {whole[0]}')
        return found[0]

    def _read_shared(
        self, fields: Fields, shape: Mapping[str, int], found: Sequence[LayerKind]
    ) -> Sequence[LayerKind]:
        """The kinds of layers with those of the last that have no keys of their own."""
        shared = fields.integer(_SHARED, MAX_LAYERS, 0, least=0)
        first = len(found) - shared
        if not set(found) <= set(found[: max(first, 0)]):
            rule = 'fewer, so that layers of each of the layer_types have keys of their own'
            raise fields.wrong(_SHARED, rule)
        wide = 2 * shape['mlp_width'] if fields.flag(_WIDE, False) else None
        return [
            *found[:first],
            *(
                dataclasses.replace(kind, keys_from='earlier', mlp_width=wide)
                for kind in found[first:]
            ),
        ]

    def _read_values(self, fields: Fields, shape: Mapping[str, int]) -> dict[str, Any]:
        values = {
            'embedding_multiplier': shape['width'] ** 0.5,
            'logit_cap': fields.optional_number(_CAP),
        }
        if not self.inputs:
            return values
        fields.only('enable_moe_block', False, why='mixtures of experts are not among ours')
        width = fields.integer(_INPUTS, MAX_WIDTH, 256, least=0) or None
        if width is not None:
            fields.only(
                'vocab_size_per_layer_input',
                shape['vocab_size'],
                why='both embeddings are of the same tokens here',
            )
        return {**values, 'token_width': width}

    def ignored(self, config: ModelConfig) -> tuple[Ignored, ...]:
        shared = [i for i in range(config.layers) if config.source_of(i) != i]
        if not shared:
            return super().ignored(config)
        layers, reason = '|'.join(map(str, shared)), 'of layers that attend to keys of earlier ones'
        name = rf'(model\.)?layers\.({layers})\.self_attn\.(k_proj|v_proj|k_norm|v_norm)\..+'
        return (*super().ignored(config), Ignored(re.compile(name), reason))

    def unwritable(self, config: ModelConfig) -> str | None:
        if config.embedding_multiplier != config.width**0.5:
            return f'its embeddings are multiplied by {config.embedding_multiplier:g}'
        reason = super().unwritable(config)
        if reason is not None:
            return reason
        found = kinds.of_layers(config)
        if found[-1].window is not None:
            return 'its last layer has a window'
        plain = LayerKind()
        for kind in found:
            own = dataclasses.replace(kind.source, position=plain.position, window=None)
            if kind.window is not None and own != plain:
                return f'its layers with a window have other heads ({kind.describe()})'
        if len({kind.source for kind in found if kind.window is None}) > 1:
            return f'its layers without a window differ ({config.describe_kinds()})'
        with_keys = [kind.keys_from == 'input' for kind in found]
        if with_keys != sorted(with_keys, reverse=True):
            return 'layers with keys of their own follow on others without'
        widths = {kind.mlp_width for kind in found if kind.keys_from == 'earlier'}
        if any(kind.mlp_width for kind in found if kind.keys_from == 'input') or not (
            widths <= {None} or widths <= {2 * config.mlp_width}
        ):
            return (
                'its MLPs are of other widths than twice that of the model, in layers without keys'
            )
        return None

    def write_config(self, config: ModelConfig, described: Described) -> dict[str, Any]:
        kinds_of = kinds.of_layers(config)
        shared = sum(kind.keys_from == 'earlier' for kind in kinds_of)
        whole = kinds_of[-1]  # of the layers that see every key
        head_dim, as_keys = whole.head_dim or config.head_dim, whole.values_from == 'keys'
        sizes: dict[str, Any] = {_AS_KEYS: as_keys, _HEAD_DIM: head_dim}
        if as_keys:
            sizes[_KV_HEADS] = whole.kv_heads or config.kv_heads
        elif whole.kv_heads is not None:
            own = {'head_dim': head_dim, 'num_key_value_heads': whole.kv_heads}
            layers = [str(i) for i, kind in enumerate(kinds_of) if kind.window is None]
            sizes = {_AS_KEYS: False, _BY_LAYER: dict.fromkeys(layers, own)}
        written = {
            **super().write_config(config, described),
            **sizes,
            _SHARED: shared,
            _WIDE: kinds_of[-1].mlp_width is not None,
            _CAP: config.logit_cap,
        }
        if self.inputs:
            written[_INPUTS] = config.token_width or 0
            written['vocab_size_per_layer_input'] = config.vocab_size
        return written

    def _write_positions(self, config: ModelConfig, longest: int | None) -> dict[str, Any]:
        both = self._ropes(config)
        assert both is not None
        full, sliding = (rope_settings.write(rope, config.head_dim, longest) for rope in both)
        return {**both_types(full, sliding), **self.layers.write(config)}

    def _foreign(self) -> dict[str, tuple[tuple[Any, ...], str]]:
        foreign = super()._foreign()
        return {key: foreign[key] for key in foreign if key != _CAP}


def _kv_heads(fields: Fields, key: str, shape: Mapping[str, int]) -> int:
    found = fields.integer(key, shape['heads'], shape['kv_heads'])
    if shape['heads'] % found:
        raise fields.wrong(key, f'a divisor of {shape["heads"]} heads')
    return found


_TEXT: dict[str, Any] = {
    'biases': {'attention_bias': ('qkv_bias', 'output_bias')},
    'qk_norm': True,
    'fixed': {'block': 'both', 'softmax_scale': 1.0, 'value_norm': True, 'layer_scale': True},
    'activation': 'hidden_activation',
    'notes': {'use_bidirectional_attention': (False, 'vision')},
    'by_layer': True,
}
_DEFAULTS = GEMMA3.defaults._replace(vocabulary=262_144)

GEMMA4 = _Gemma4(
    name='gemma4_text',
    architecture='Gemma4ForCausalLM',
    defaults=_DEFAULTS,
    layers=_Types(interval=6, window=512),
    free=('embedding_multiplier', 'logit_cap', 'token_width'),
    **_TEXT,
)
GEMMA4_UNIFIED = _Gemma4(
    name='gemma4_unified_text',
    architecture='Gemma4UnifiedForCausalLM',
    defaults=_DEFAULTS._replace(longest=262_144),
    layers=_Types(interval=6, window=1024),
    free=('embedding_multiplier', 'logit_cap'),
    inputs=False,
    **_TEXT,
)
