"""Models of every family, as its tests take them."""

from __future__ import annotations

import dataclasses
import functools
import json
from typing import Any

import jax
import numpy as np

from nope.interop.families import FAMILIES, Described, family_of
from nope.interop.mapping import Tensor
from nope.model import LayerKind, ModelConfig
from nope.model.lam import GivenLaw, LogFloor
from nope.model.mixers import Mamba2
from nope.positions import Alibi, ByParts, Linear, LongRoPE, NoPE, RoPE, Yarn
from nope.variables import abstract_variables
from tests import tiny

NONE: frozenset[str] = frozenset()
BY_NAME = {family.name: family for family in FAMILIES}
ROPE = RoPE(500.0)
HALF_WINDOWS = (LayerKind(ROPE, 5), LayerKind(ROPE))
SOME_LONGROPE = RoPE(1e4, LongRoPE((1.0, 1.5), (2.0, 4.0), 16, 1.25), dims=4)
TWO_BASES = (LayerKind(RoPE(1e4, Linear(2.0)), 5), LayerKind(RoPE(5e4, Linear(2.0))))
HYBRID = (LayerKind(ROPE, 5), LayerKind())
BIASES = {'qkv_bias': True, 'output_bias': True, 'mlp_bias': True}

_DECODER: dict[str, Any] = {
    'layers': 3,
    'width': 24,
    'heads': 4,
    'kv_heads': 2,
    'mlp_width': 20,
    'vocab_size': 40,
    'head_dim': 6,
}
_UNIFORM: dict[str, Any] = {
    **_DECODER,
    'kv_heads': 4,
    'mlp_width': 96,
    'position': Alibi(),
    'norm': 'layer',
    'mlp': 'plain',
    'tied_head': True,
}


def growing(span: int) -> GivenLaw:
    """Queries that grow by position, as Ministral 3's."""
    return GivenLaw(LogFloor(span), 0.1, first=0)


def decoder(**changes: Any) -> ModelConfig:
    return ModelConfig(**{**_DECODER, **changes})


def bloom(**changes: Any) -> ModelConfig:
    own = {**BIASES, 'norm_bias': True, 'embedding_norm': True, 'activation': 'gelu_tanh'}
    return ModelConfig(**{**_UNIFORM, **own, **changes})


def mpt(**changes: Any) -> ModelConfig:
    return ModelConfig(**{**_UNIFORM, 'activation': 'gelu', **changes})


def beside(**changes: Any) -> ModelConfig:
    """Attention and MLP side by side, a window where layers turn."""
    own = {'norm': 'layer', 'block': 'parallel', 'tied_head': True}
    kinds = {} if 'position' in changes else {'pattern': HYBRID}
    return decoder(**{**own, **kinds, **changes})


def behind(**changes: Any) -> ModelConfig:
    """Norms behind attention and MLP."""
    own = {'block': 'post', 'qk_norm': True, 'qk_norm_over': 'projection', 'position': ROPE}
    if 'pattern' in changes:
        del own['position']
    return decoder(**{**own, **changes})


def both_ends(**changes: Any) -> ModelConfig:
    """Norms at both ends of attention and MLP."""
    own = {'block': 'both', 'qk_norm': True, 'norm_offset': True, 'embedding_multiplier': 24**0.5}
    return behind(qk_norm_over='head', **{**own, **changes})


GLOBAL = LayerKind(RoPE(1e6, share=0.5), head_dim=8)
AS_KEYS = dataclasses.replace(GLOBAL, kv_heads=1, values_from='keys')
LOCAL = LayerKind(RoPE(1e4), 5)


def gemma4(**changes: Any) -> ModelConfig:
    """Values of unit norm, and layers that differ in their heads, the last one without a window."""
    own = {'norm_offset': False, 'softmax_scale': 1.0, 'value_norm': True, 'layer_scale': True}
    own |= {'pattern': (LOCAL, LOCAL, GLOBAL), 'tied_head': True, 'token_width': 4}
    return both_ends(**{**own, 'logit_cap': 30.0, **changes})


def without_keys(*kinds: LayerKind, mlp_width: int | None = None) -> tuple[LayerKind, ...]:
    """Kinds that attend to the keys of earlier layers."""
    changes: dict[str, Any] = {'keys_from': 'earlier', 'mlp_width': mlp_width}
    return tuple(dataclasses.replace(kind, **changes) for kind in kinds)


def multiplied(**changes: Any) -> ModelConfig:
    """Multipliers of embeddings, of what layers add, of attention and of logits."""
    own = {'embedding_multiplier': 12.0, 'residual_multiplier': 0.22, 'softmax_scale': 0.125}
    kinds = {} if 'pattern' in changes else {'position': ROPE}
    return decoder(**{**own, 'logit_multiplier': 1 / 49, **kinds, **changes})


MAMBA = Mamba2(6, 4, 5, groups=2, least_step=0.001)


def one_part(**changes: Any) -> ModelConfig:
    """Layers of Mamba-2, an MLP or attention alone."""
    kinds = LayerKind(mixer=MAMBA, mlp=False), LayerKind(mixer=None), LayerKind(mlp=False)
    own = {'mlp': 'plain', 'activation': 'relu2', 'pattern': kinds}
    return decoder(**{**own, **changes})


def beside_mamba(**changes: Any) -> ModelConfig:
    """Mamba-2 in two layers of three."""
    mamba = LayerKind(mixer=Mamba2(8, 6, 5))
    return multiplied(**{'pattern': (mamba, LayerKind()), **changes})


# The family that writes each model; every one comes back as it was.
WRITTEN: dict[str, tuple[str, ModelConfig]] = {
    'rope': ('llama', decoder(position=ROPE)),
    'wide heads and biases': (
        'llama',
        decoder(position=ROPE, head_dim=10, activation='gelu', tied_head=True, **BIASES),
    ),
    'scaled RoPE': ('llama', decoder(position=RoPE(1e4, Yarn(4.0, 16)), activation='relu')),
    'uneven heads': ('mistral', decoder(position=ROPE, width=26)),
    'window': ('mistral', decoder(position=ROPE, window=5, activation='gelu_tanh')),
    'some biases': ('qwen2', decoder(position=ROPE, qkv_bias=True)),
    'some biases and windows': (
        'qwen2',
        decoder(qkv_bias=True, pattern=(LayerKind(ROPE), LayerKind(ROPE, 5))),
    ),
    'QK-norm': ('qwen3', decoder(position=ROPE, qk_norm=True, head_dim=8)),
    'QK-norm, biases and windows': (
        'qwen3',
        decoder(
            qk_norm=True,
            qkv_bias=True,
            output_bias=True,
            pattern=(LayerKind(ROPE, 5), LayerKind(ROPE, 5), LayerKind(ROPE)),
        ),
    ),
    'no positions': ('smollm3', decoder()),
    'no positions, window': ('smollm3', decoder(window=7, tied_head=True, **BIASES)),
    'some RoPE': ('smollm3', decoder(pattern=(LayerKind(ROPE), LayerKind()))),
    'some RoPE and windows': (
        'smollm3',
        decoder(pattern=(LayerKind(ROPE, 5), LayerKind(ROPE), LayerKind(NoPE(), 5))),
    ),
    'some windows': ('smollm3', decoder(pattern=(LayerKind(ROPE, 5), LayerKind(ROPE)))),
    'side by side': ('cohere2', beside(logit_multiplier=0.25)),
    'side by side, biases, a head, scaled RoPE': (
        'cohere2',
        beside(
            qkv_bias=True,
            output_bias=True,
            tied_head=False,
            pattern=(LayerKind(), LayerKind(RoPE(1e4, Linear(4.0)), 7)),
        ),
    ),
    'side by side, no positions': ('cohere2', beside(position=NoPE())),
    'side by side, all windows': ('cohere2', beside(position=ROPE, window=5)),
    'norms behind': ('olmo2', behind()),
    'norms behind, biases, tied': (
        'olmo2',
        behind(qkv_bias=True, output_bias=True, tied_head=True, position=RoPE(1e4, Linear(2.0))),
    ),
    'norms behind, windows': (
        'olmo3',
        behind(pattern=(LayerKind(ROPE, 5), LayerKind(ROPE, 5), LayerKind(ROPE))),
    ),
    'norms behind, scaled in some layers': (
        'olmo3',
        behind(pattern=(LayerKind(ROPE, 5), LayerKind(RoPE(500_000.0, Linear(4.0))))),
    ),
    'norms behind, scaled in some layers, one base': (
        'olmo3',
        behind(pattern=(LayerKind(RoPE(5e5), 5), LayerKind(RoPE(5e5, Linear(4.0))))),
    ),
    'norms behind, two bases': (
        'olmo3',
        behind(pattern=(LayerKind(RoPE(1e4), 5), LayerKind(RoPE(2e4, Linear(4.0))))),
    ),
    'norms behind, all windows': ('olmo3', behind(position=RoPE(1e4), window=5)),
    'norms behind and of each head': ('exaone4', behind(qk_norm_over='head')),
    'norms behind and of each head, hybrid': (
        'exaone4',
        behind(qk_norm_over='head', pattern=(*(LayerKind(ROPE, 5),) * 2, LayerKind())),
    ),
    'norms behind and of each head, no positions': (
        'exaone4',
        behind(qk_norm_over='head', position=NoPE(), tied_head=True),
    ),
    'norms behind and of each head, all windows': (
        'exaone4',
        behind(qk_norm_over='head', position=RoPE(1e4), window=5),
    ),
    'growing queries': ('ministral3', decoder(position=RoPE(1e4), law=growing(7), window=5)),
    'growing queries, scaled': (
        'ministral3',
        decoder(position=RoPE(1e6, Yarn(16.0, 32, multiplier=1.5)), law=growing(32)),
    ),
    'norms at both ends': ('gemma3_text', both_ends(softmax_scale=7**-0.5, tied_head=True)),
    'norms at both ends, windows': (
        'gemma3_text',
        both_ends(
            activation='gelu_tanh',
            qkv_bias=True,
            output_bias=True,
            pattern=(LayerKind(ROPE, 5), LayerKind(RoPE(1e6, Linear(8.0)))),
        ),
    ),
    'norms at both ends, all windows': ('gemma3_text', both_ends(position=RoPE(2e4), window=5)),
    'heads of two sizes': ('gemma4_text', gemma4()),
    'heads of two sizes, values from keys': (
        'gemma4_text',
        gemma4(pattern=(LOCAL, LOCAL, AS_KEYS), qkv_bias=True, output_bias=True, tied_head=False),
    ),
    'keys of earlier layers': (
        'gemma4_text',
        gemma4(layers=5, pattern=(LOCAL, GLOBAL, *without_keys(LOCAL, LOCAL, GLOBAL))),
    ),
    'keys of earlier layers, other MLPs, no inputs, no cap': (
        'gemma4_text',
        gemma4(
            layers=4,
            pattern=(LOCAL, AS_KEYS, *without_keys(LOCAL, AS_KEYS, mlp_width=40)),
            token_width=None,
            logit_cap=None,
        ),
    ),
    'fewer key-value heads': (
        'gemma4_text',
        gemma4(pattern=(LOCAL, dataclasses.replace(GLOBAL, kv_heads=4)), layers=4),
    ),
    'norms at both ends, unit values, layers alike': (
        'gemma4_text',
        gemma4(pattern=(LOCAL, LayerKind(RoPE(1e6))), layers=2, token_width=None),
    ),
    'some dimensions': ('phi3', decoder(position=RoPE(1e4, dims=4))),
    'some dimensions, LongRoPE, window': ('phi3', decoder(position=SOME_LONGROPE, window=5)),
    'multipliers': ('granite', multiplied(**BIASES)),
    'multipliers, scaled RoPE': (
        'granite',
        multiplied(position=RoPE(1e4, Yarn(4.0, 16)), softmax_scale=None, tied_head=True),
    ),
    'sinks': ('granite_swa', decoder(position=ROPE, sinks=True)),
    'sinks, multipliers, windows, some RoPE': (
        'granite_swa',
        multiplied(sinks=True, tied_head=True, pattern=(LayerKind(), LayerKind(ROPE, 5))),
    ),
    'sinks, two bases, biases': ('granite_swa', decoder(sinks=True, pattern=TWO_BASES, **BIASES)),
    'sinks, no positions': ('granite_swa', decoder(sinks=True)),
    'layers of one part': ('nemotron_h', one_part()),
    'layers of one part, biases': (
        'nemotron_h',
        one_part(
            mlp_bias=True,
            layers=3,
            pattern=(
                LayerKind(mlp=False),
                LayerKind(mixer=Mamba2(6, 4, 5, bias=True, convolution_bias=False), mlp=False),
            ),
        ),
    ),
    'Mamba-2 and multipliers': ('granitemoehybrid', beside_mamba()),
    'Mamba-2, bounded steps, biases, RoPE': (
        'granitemoehybrid',
        beside_mamba(
            qkv_bias=True,
            output_bias=True,
            tied_head=True,
            pattern=(
                LayerKind(mixer=Mamba2(4, 12, 5, 2, 3, False, True, 0.01, 0.5)),
                LayerKind(RoPE(1e4, Linear(2.0))),
            ),
        ),
    ),
    'BLOOM': ('bloom', bloom()),
    'BLOOM with a head': ('bloom', bloom(tied_head=False, norm_epsilon=1e-6)),
    'MPT': ('mpt', mpt()),
    'MPT with a head and a scale': ('mpt', mpt(tied_head=False, softmax_scale=0.3)),
}
# Where it is not a decoder of Llama's kind.
OF_FAMILY = {
    'bloom': bloom(),
    'mpt': mpt(),
    'cohere2': beside(),
    'olmo2': behind(),
    'olmo3': behind(pattern=HALF_WINDOWS),
    'ministral3': decoder(position=RoPE(1e6, ByParts(16.0, 32)), law=growing(32)),
    'gemma3_text': both_ends(pattern=HALF_WINDOWS),
    'gemma4_text': gemma4(layers=4, pattern=(LOCAL, AS_KEYS, *without_keys(LOCAL, AS_KEYS))),
    'gemma4_unified_text': gemma4(token_width=None),
    'phi3': decoder(position=SOME_LONGROPE),
    'granite': multiplied(),
    'nemotron_h': one_part(),
    'granitemoehybrid': beside_mamba(),
    'granite_swa': multiplied(sinks=True, pattern=(LayerKind(), LayerKind(ROPE, 5))),
    'exaone4': behind(qk_norm_over='head', pattern=HYBRID),
}
CASES = [
    *WRITTEN.values(),
    ('gemma4_unified_text', OF_FAMILY['gemma4_unified_text']),
    ('lit-gpt', decoder(position=ROPE)),
]


@functools.cache
def parameters_of(config: ModelConfig) -> dict[tuple[str, ...], tuple[int, ...]]:
    leaves = jax.tree_util.tree_leaves_with_path(abstract_variables(config, tiny.mesh())['params'])
    return {tuple(key.key for key in path): leaf.shape for path, leaf in leaves}


def described(config: ModelConfig, **facts: Any) -> Described:
    facts = {'train_length': 16, **facts}
    return Described(config, **{'longest': facts['train_length'], **facts})


def written(family: str, about: Described) -> dict[str, Any]:
    """config.json, as it is read from a file."""
    return json.loads(json.dumps(BY_NAME[family].write_config(about.model, about)))


def inside(outer: str, family: str, **text: Any) -> dict[str, Any]:
    """config.json of a model of images and text, with keys of its text model changed."""
    model = OF_FAMILY.get(family, decoder(position=ROPE))
    config = written(family, described(model)) | text
    return {'model_type': outer, 'vision_config': {'hidden_size': 8}, 'text_config': config}


def read(config: dict[str, Any], names: frozenset[str] = NONE) -> Described:
    return family_of(config, names).read_config(config, names)


def draw(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)


def assert_same(actual: np.ndarray, expected: np.ndarray) -> None:
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
    assert actual.tobytes() == expected.tobytes()


def by_name(tensors: list[Tensor]) -> dict[str, tuple[int, ...]]:
    assert len({tensor.name for tensor in tensors}) == len(tensors)
    return {tensor.name: tensor.shape for tensor in tensors}
