"""The text model of MuseGlimmerForConditionalGeneration (Muse Glimmer 30B): windows in three of
four layers, no positions in the others, output gates, norms at both ends, capped logits.

    "layer_types": ["sliding_attention", ..., "full_attention"], "layer_rope_theta": [1e4, ..., 0]

Its QK-norm has no weights, and its embeddings are normed as they are read: here rows of the table.
The weights of the final norm are stored as they are, of all others less 1. Stock has no class of
the text model alone, so it is read and not written.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nope.interop.families import decoder_tensors, kinds
from nope.interop.families.decoder import Alike, Decoder, Defaults
from nope.interop.families.granite_swa import THETAS, with_bases
from nope.interop.fields import MAX_LENGTH, Fields
from nope.interop.mapping import Layout, Tensor
from nope.model import LayerKind, ModelConfig
from nope.positions import NoPE, RoPE

_CAP = 'final_logit_softcapping'


@dataclasses.dataclass(eq=False)
class MuseGlimmer(Decoder):
    """A `nope.interop.families.base.Family`."""

    def _read_layers(
        self, fields: Fields, shape: Mapping[str, int]
    ) -> tuple[RoPE, Sequence[LayerKind]]:
        layers = shape['layers']
        rope = self._read_rope(fields, shape)
        window = fields.integer('sliding_window', MAX_LENGTH, 2048)
        local = [(layers - 1 - i) % 4 != 0 for i in range(layers)]
        windows = kinds.read_windows(fields, layers, local, window)
        found = [
            LayerKind(rope if near else NoPE(), window)
            for near, window in zip(local, windows, strict=True)
        ]
        based = with_bases(fields, rope, found)
        if not {kind.position for kind in based} <= {rope, NoPE()}:
            raise fields.wrong(THETAS, f'0, or rope_theta, {rope.base:g}, which stock turns by')
        return rope, based

    def _read_values(self, fields: Fields, shape: Mapping[str, int]) -> dict[str, Any]:
        return {
            'softmax_scale': fields.number('qk_scale_factor', 3.87) * shape['head_dim'] ** -0.5,
            'logit_multiplier': fields.number('output_multiplier', 0.19611613513818404),
            'logit_cap': fields.number(_CAP, 20.0),
            'output_norm_epsilon': fields.number('post_norm_eps', 1e-8, most=1.0, zero=True),
        }

    def _foreign(self) -> dict[str, tuple[tuple[Any, ...], str]]:
        foreign = super()._foreign()
        return {key: foreign[key] for key in foreign if key != _CAP}

    def tensors(self, config: ModelConfig, names: frozenset[str]) -> list[Tensor]:
        layouts = {
            ('embedding',): Layout(lambda rows: (_normed(rows, config.norm_epsilon),), _unwritten),
            ('final_norm', 'scale'): Layout(lambda w: (w.astype(np.float32) - 1,), _unwritten),
        }
        return [
            dataclasses.replace(tensor, layout=layouts.get(tensor.parts[0].path, tensor.layout))
            for tensor in decoder_tensors.tensors(config, names)
        ]

    def unwritable(self, config: ModelConfig) -> str | None:
        return 'stock has no class of the text model alone'


def _normed(rows_VD: np.ndarray, epsilon: float) -> np.ndarray:
    rows_VD = rows_VD.astype(np.float32)
    mean_square_V1 = np.mean(np.square(rows_VD), axis=1, keepdims=True)
    return rows_VD / np.sqrt(mean_square_V1 + np.float32(epsilon))


def _unwritten(parts: Sequence[np.ndarray]) -> np.ndarray:
    raise NotImplementedError('Muse Glimmer is read alone')


MUSE_GLIMMER = MuseGlimmer(
    name='muse_glimmer_text',
    architecture='MuseGlimmerForCausalLM',
    defaults=Defaults(
        longest=131_072,
        heads=32,
        vocabulary=202_048,
        kv_heads=2,
        head_dim=128,
        epsilon=1e-5,
        tokens={'bos_token_id': 200_000, 'eos_token_id': 200_001},
    ),
    layers=Alike(('sliding_window', 'layer_types', THETAS)),
    biases={'attention_bias': ('qkv_bias', 'output_bias')},
    qk_norm=True,
    fixed={
        'block': 'both',
        'norm_offset': True,
        'output_gate': 'element',
        'qk_norm_weights': False,
    },
    free=('softmax_scale', 'logit_multiplier', 'logit_cap', 'output_norm_epsilon'),
    activation='hidden_activation',
    notes={'tie_word_embeddings': (False,)},
)
