"""Accepted values of each field of a model configuration by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nope.attention.api import BACKENDS
from nope.attention.dense import WEIGHTS as DENSE_WEIGHTS
from nope.runtime.errors import FieldError, one_of

WEIGHTS = 'softmax', *DENSE_WEIGHTS
CHOICES = {
    'dtype': ('float32', 'bfloat16'),
    'remat': ('none', 'elementwise', 'dots', 'full', 'offload'),
    'norm': ('rms', 'layer', 'none'),
    'block': ('pre', 'parallel', 'post', 'both'),
    'qk_norm_over': ('head', 'projection'),
    'mlp': ('gated', 'plain'),
    'activation': ('silu', 'gelu', 'gelu_tanh', 'relu'),
    'init': ('tinyllama', 't5'),
    'output_gate': ('none', 'head', 'element'),
    'temperature': ('none', 'adaptive', 'entropy'),
    'weights': WEIGHTS,
    'lam_layers': ('all', 'nope'),
}
# Beyond what any device holds, and below what would take minutes to say so.
MOST = {
    'layers': 10_000,
    'width': 2**24,
    'heads': 2**16,
    'kv_heads': 2**16,
    'mlp_width': 2**24,
    'vocab_size': 2**31 - 1,
    'head_dim': 2**16,
}


def check(values: Mapping[str, Any]) -> None:
    """FieldError for a value that its field does not accept. values: of all fields, by name."""
    for name, most in MOST.items():
        if values[name] < 1:
            raise FieldError(name, values[name], 'it must be at least 1')
        if values[name] > most:
            raise FieldError(name, values[name], f'accepted: up to {most:,}')
    for name, accepted in CHOICES.items():
        if values[name] not in accepted:
            raise FieldError(name, values[name], one_of(accepted))
    if values['attention'] not in (None, *BACKENDS):
        rule = f'{one_of(BACKENDS)}, or None for the fastest that can'
        raise FieldError('attention', values['attention'], rule)
    for name in ('embedding_multiplier', 'residual_multiplier', 'logit_multiplier'):
        _check_scale(name, values[name])
    if values['logit_cap'] is not None:
        _check_scale('logit_cap', values['logit_cap'], ', or None for logits as they are')
    if values['token_width'] is not None and not 1 <= values['token_width'] <= MOST['width']:
        rule = f'accepted: 1 to {MOST["width"]:,}, or None for no input of tokens'
        raise FieldError('token_width', values['token_width'], rule)
    if not 0 <= values['norm_epsilon'] < float('inf'):
        raise FieldError('norm_epsilon', values['norm_epsilon'], 'it must be finite, 0 or more')
    for name in ('dropout', 'attention_dropout'):
        if not 0 <= values[name] < 1:
            raise FieldError(name, values[name], 'accepted: 0 or more, and below 1')
    if values['softmax_scale'] is not None:
        _check_scale('softmax_scale', values['softmax_scale'], ', or None for 1 / sqrt(H)')


def _check_scale(name: str, scale: float, otherwise: str = '') -> None:
    if not 0 < scale < float('inf'):
        raise FieldError(name, scale, f'it must be finite and above 0{otherwise}')
