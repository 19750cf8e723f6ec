"""Shared parts of the families: config checks, common keys, the tied head."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from nope.interop.families.base import Described, Ignored
from nope.interop.fields import Fields, check_dtype, optional_token, tokens
from nope.interop.safetensors import shown
from nope.model import ModelConfig

log = logging.getLogger(__name__)

FURTHER = Ignored(re.compile(r'(model\.)?mtp\..+'), 'of the prediction of further tokens')

# Fields of the model that are so in all checkpoints, but in those of families that say otherwise.
PLAIN: Mapping[str, Any] = {
    'block': 'pre',
    'norm_offset': False,
    'embedding_multiplier': 1.0,
    'residual_multiplier': 1.0,
    'logit_multiplier': 1.0,
    'logit_cap': None,
    'law': None,
    'qk_norm_over': 'head',
    'qk_norm_weights': True,
    'output_norm_epsilon': None,
    'value_norm': False,
    'sinks': False,
    'output_gate': 'none',
    'temperature': 'none',
    'weights': 'softmax',
    'layer_scale': False,
    'token_width': None,
    'causal': True,
}


def is_type(config: Mapping[str, Any], model_type: str, architecture: str) -> bool:
    """True for a config.json of this `model_type`, or of this class where it has no type."""
    if config.get('model_type') is None:
        architectures = config.get('architectures')
        return isinstance(architectures, list) and architecture in architectures
    return config['model_type'] == model_type


def check_plain(fields: Fields, *, by_layer: bool = False) -> None:
    """ValueError where the tensors are not the weights, or the model is no plain decoder. by_layer:
    whether its layers may differ in their sizes."""
    own = fields.values.get('auto_map')
    if isinstance(own, Mapping) and 'AutoModelForCausalLM' in own:
        log.warning(
            '%sauto_map names other code, %s, which is not run: the model is read as a plain %s',
            *(fields.where, shown(own['AutoModelForCausalLM'])),
            shown(fields.values.get('model_type')),
        )
    fields.only('quantization_config', why='quantized weights are not read')
    if not by_layer:
        fields.only('per_layer_config', why='layers of this class are of one shape')
    fields.only('is_encoder_decoder', False, why='only decoders are read')
    fields.only('add_cross_attention', False, why='only decoders are read')
    fields.only('is_causal', True, why='tokens of decoders see no later ones')


def made(fields: Fields, values: Mapping[str, Any]) -> ModelConfig:
    """The model, its errors with the file's name before them."""
    try:
        return ModelConfig(**values)
    except ValueError as error:
        raise ValueError(f'{fields.where}it makes a model that is not accepted: {error}') from error


def described(
    fields: Fields,
    model: ModelConfig,
    train_length: int | None,
    defaults: Mapping[str, int | None] = MappingProxyType({}),
    longest: int | None = None,
) -> Described:
    """The model and what its config.json says besides. defaults: token ids of the stock class, for
    files that leave their keys out, those in the vocabulary; null is none. longest: None for
    train_length."""
    check_dtype(fields)
    known = {key: token for key, token in defaults.items() if (token or 0) < model.vocab_size}
    fields = Fields({**known, **fields.values}, fields.where)
    bos, *_ = tokens(fields, 'bos_token_id', model.vocab_size) or (None,)
    eos, *ends = tokens(fields, 'eos_token_id', model.vocab_size) or (None,)
    return Described(
        model,
        train_length,
        bos=bos,
        eos=eos,
        longest=longest or train_length,
        ends=tuple(ends),
        pad=optional_token(fields, 'pad_token_id', model.vocab_size),
    )


def head(architecture: str, model_type: str) -> dict[str, Any]:
    """The first keys of a config.json."""
    return {'architectures': [architecture], 'model_type': model_type}


def facts(described: Described) -> dict[str, Any]:
    """Keys of a config.json for all but the model. Unknown facts are null. Stock would replace a
    missing key by its own token, which may lie beyond the vocabulary."""
    return {
        'torch_dtype': described.dtype,
        'bos_token_id': described.bos,
        'eos_token_id': [described.eos, *described.ends] if described.ends else described.eos,
        'pad_token_id': described.pad,
    }


def differs(config: ModelConfig, wanted: Mapping[str, Any]) -> str | None:
    """The first field in which a model is not as it has to be; None where there is none."""
    for field, value in wanted.items():
        if getattr(config, field) != value:
            return f'{field} is {getattr(config, field)!r}, not {value!r}'
    return None


def tied_head(config: ModelConfig) -> tuple[Ignored, ...]:
    """The head that files of a model with a tied head may hold once more."""
    reason = 'the head is the embedding, as tie_word_embeddings says'
    return (Ignored(re.compile(r'lm_head\.weight'), reason),) if config.tied_head else ()
