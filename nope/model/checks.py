"""Checks of a model configuration: values of its fields, and values that do not go together.

Each raises FieldError with the field, its value and what is accepted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nope.attention.api import BACKENDS
from nope.attention.dense import WEIGHTS as DENSE_WEIGHTS
from nope.model import lam
from nope.model.fields import ModelFields
from nope.model.kinds import LayerKind
from nope.positions import NoPE, Position
from nope.runtime.errors import FieldError, inside, one_of

WEIGHTS = 'softmax', *DENSE_WEIGHTS
CHOICES = {
    'dtype': ('float32', 'bfloat16'),
    'remat': ('none', 'elementwise', 'dots', 'full', 'fit'),
    'norm': ('rms', 'layer', 'none'),
    'block': ('pre', 'parallel', 'post', 'both'),
    'qk_norm_over': ('head', 'projection'),
    'mlp': ('gated', 'plain'),
    'activation': ('silu', 'gelu', 'gelu_tanh', 'relu', 'relu2'),
    'init': ('tinyllama', 'sharp', 't5'),
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
# Of encoders, by the field's one value: what else it may be is defined by earlier tokens alone.
OF_ENCODERS = {
    'lam': lam.Constant(),
    'law': None,
    'weights': 'softmax',
    'temperature': 'none',
    'position_range': None,
}
MOST_POSITIONS = 2**24  # below which float32, in which angles are computed, has every whole number


def check(model: ModelFields) -> None:
    _check_values(vars(model))
    if model.heads % model.kv_heads:
        raise FieldError(
            'kv_heads', model.kv_heads, f'heads, {model.heads}, must be a multiple of it'
        )
    if model.norm_bias and model.norm != 'layer':
        raise FieldError('norm_bias', True, "only the norm 'layer' has a bias")
    if model.embedding_norm and model.norm == 'none':
        raise FieldError('embedding_norm', True, "the norm is 'none'")
    if model.block in ('post', 'both') and model.norm == 'none':
        raise FieldError('block', model.block, "accepted: pre, parallel, where the norm is 'none'")
    if model.qk_norm_over != 'head' and not model.qk_norm:
        raise FieldError('qk_norm_over', model.qk_norm_over, 'qk_norm is False')
    if not model.qk_norm_weights and (not model.qk_norm or model.qk_norm_over != 'head'):
        rule = 'only a QK-norm of each head may have none; accepted: True'
        raise FieldError('qk_norm_weights', False, rule)
    if model.output_norm_epsilon is not None and model.block not in ('post', 'both'):
        rule = f'no norm stands behind a part of block {model.block!r}; accepted: None'
        raise FieldError('output_norm_epsilon', model.output_norm_epsilon, rule)
    if model.unroll is not None and not 1 <= model.unroll <= model.layers:
        raise FieldError(
            'unroll', model.unroll, f'accepted: 1 to layers, {model.layers}, or None for all'
        )
    if model.attention_dropout > 0 and model.attention not in (None, 'reference'):
        raise FieldError(
            'attention',
            model.attention,
            f"attention_dropout is {model.attention_dropout}, which 'reference' alone has; "
            "accepted: None, 'reference', or attention_dropout 0.0",
        )
    _check_kinds(model)
    _check_weights(model)
    if not model.causal:
        _check_encoder(model)


def _check_values(values: Mapping[str, Any]) -> None:
    """FieldError for a value that its field does not accept by itself. values: by name."""
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
    for name in ('norm_epsilon', 'output_norm_epsilon'):
        if values[name] is not None and not 0 <= values[name] < float('inf'):
            raise FieldError(name, values[name], 'it must be finite, 0 or more')
    for name in ('dropout', 'attention_dropout'):
        if not 0 <= values[name] < 1:
            raise FieldError(name, values[name], 'accepted: 0 or more, and below 1')
    if values['softmax_scale'] is not None:
        _check_scale('softmax_scale', values['softmax_scale'], ', or None for 1 / sqrt(H)')


def _check_scale(name: str, scale: float, otherwise: str = '') -> None:
    if not 0 < scale < float('inf'):
        raise FieldError(name, scale, f'it must be finite and above 0{otherwise}')


def _check_kinds(model: ModelFields) -> None:
    LayerKind(model.position, model.window)  # checks the window
    if not model.pattern:
        check_position(model, LayerKind(model.position), 'position')
    else:
        _check_pattern(model)
        _check_sizes(model)
    for kind in model.kinds:
        with inside('lam'):
            model.lam.check_head_dim(kind.head_dim or model.head_dim)
        if model.law is not None:
            with inside('law.law'):
                model.law.law.check_head_dim(kind.head_dim or model.head_dim)
    most = model.position_range
    if most is not None:
        encodings = [kind.position for kind in model.kinds if kind.position != NoPE()]
        if not encodings:
            raise FieldError(
                'position_range', most, 'the model has no position encoding, and no use'
            )
        for position in encodings:
            if not position.takes_positions or position.follows_length:
                raise FieldError(
                    'position_range',
                    most,
                    f'{position.describe()} does not follow given positions alone; accepted: '
                    'RoPE without a rule that follows the length, sinusoidal, learned, and split '
                    'heads of them',
                )
            if position.longest is not None and position.longest < most:
                rule = f'{position.describe()} positions end at {position.longest}'
                raise FieldError('position_range', most, rule)
        if not 1 <= most <= MOST_POSITIONS:
            raise FieldError('position_range', most, f'accepted: 1 to {MOST_POSITIONS:,}')
    reaches = {'lam_layers': model.lam_layers}
    if model.law is not None:
        reaches['law.heads'] = model.law.heads
    for name, reach in reaches.items():
        if reach == 'nope' and not model.heads_without_position.any():
            rule = f'every head has a position encoding ({model.describe_position()})'
            raise FieldError(name, reach, rule)


def _check_weights(model: ModelFields) -> None:
    """FieldError for what softmax alone has, where the weights are others, and for sinks beside
    gates that softmax alone does not cancel."""
    if model.sinks and model.gate is not None:
        raise FieldError(
            'sinks',
            True,
            f'forget gates ({model.describe_position()}) move the logits of all keys of a query '
            'alike, and a sink has a logit that stays; accepted: False',
        )
    if model.weights == 'softmax':
        return
    if model.attention is not None:
        rule = f"weights {model.weights!r} have one implementation; accepted: None, or 'softmax'"
        raise FieldError('attention', model.attention, rule)
    if model.temperature == 'entropy':
        rule = f'it follows the entropy of softmax, and weights are {model.weights!r}'
        raise FieldError('temperature', model.temperature, rule)
    if model.sinks:
        raise FieldError('sinks', True, f"weights {model.weights!r} have none; only 'softmax'")
    if model.weights == 'stick_breaking' and model.gate is not None:
        raise FieldError(
            'weights',
            model.weights,
            f'forget gates ({model.describe_position()}) move every logit of a query alike, '
            "which 'softmax' and 'entmax' remove and it does not",
        )


def _check_encoder(model: ModelFields) -> None:
    """FieldError for what is not defined, or not built, where tokens see later ones."""
    for name, accepted in OF_ENCODERS.items():
        if getattr(model, name) != accepted:
            rule = f'accepted: {accepted!r} where causal is False'
            raise FieldError(name, getattr(model, name), rule)
    for kind in model.kinds:
        if not kind.attends and kind.mixer is not None:
            rule = f'layers of {kind.describe()} see earlier tokens alone; accepted: True'
            raise FieldError('causal', False, rule)
        if not kind.position.two_sided:
            raise FieldError(
                'causal',
                False,
                f'{kind.position.describe()} is not defined for keys after the query; accepted: '
                'True, or RoPE, ALiBi, sinusoidal, learned or no positions',
            )
        if kind.is_limited:
            rule = f'layers of {kind.describe()} see earlier tokens alone; accepted: True'
            raise FieldError('causal', False, rule)


def _check_pattern(model: ModelFields) -> None:
    for name, neutral in (('position', NoPE()), ('window', None)):
        value = getattr(model, name)
        if value != neutral:
            shown = value.describe() if isinstance(value, Position) else value
            raise FieldError(name, shown, 'it must be left out: pattern says what layers are')
    described = tuple(kind.describe() for kind in model.pattern)
    if len(model.pattern) > model.layers:
        rule = f'it has {len(model.pattern)} kinds of layers; there are {model.layers} layers'
        raise FieldError('pattern', described, rule)
    if not model.attending:
        rule = 'none of its layers has attention, which lambda and entropy are of'
        raise FieldError('pattern', described, rule)
    for i, kind in enumerate(model.pattern):
        check_position(model, kind, f'pattern[{i}].position')
    for i, kind in enumerate(model.pattern):
        if kind.qk_norm and not model.qk_norm:
            raise FieldError(
                f'pattern[{i}].qk_norm',
                True,
                'the model has no QK-norm; accepted: qk_norm of the model True, and False for '
                'the kinds of layers without it',
            )
    if model.qk_norm and not any(model.layers_with_qk_norm):
        raise FieldError('qk_norm', True, 'every kind of layer in pattern is without it')
    tables = {k.position for k in model.kinds if k.position.table(model.width, model.heads)}
    if len(tables) > 1:
        rule = 'it has several learned encodings; accepted is one'
        raise FieldError('pattern', described, rule)
    gates = {kind.position.gate(model.heads) for kind in model.pattern} - {None}
    if len(gates) > 1:
        raise FieldError(
            'pattern',
            described,
            'it has forget gates of several forms; accepted is one number of gated heads and '
            'one start',
        )


def _check_sizes(model: ModelFields) -> None:
    """FieldError for sizes of a kind that do not fit the model, and for keys of a layer that
    there is not."""
    for i, kind in enumerate(model.pattern):
        if kind.kv_heads is not None and model.heads % kind.kv_heads:
            rule = f'heads, {model.heads}, must be a multiple of it'
            raise FieldError(f'pattern[{i}].kv_heads', kind.kv_heads, rule)
        if kind.keys_from == 'earlier' and model.gate is not None:
            raise FieldError(
                f'pattern[{i}].keys_from',
                kind.keys_from,
                f'forget gates ({model.describe_position()}) are of the layer that keys are of',
            )
    if None in model.sources:
        layer = model.sources.index(None)
        place, kind = f'pattern[{layer % len(model.pattern)}]', model.layer_kinds[layer]
        wanted = kind.source.describe()
        rule = f'no layer before layer {layer} has keys of its own and is {wanted}'
        raise FieldError(f'{place}.keys_from', kind.keys_from, rule)


def check_position(model: ModelFields, kind: LayerKind, place: str) -> None:
    """FieldError for an encoding, of the field `place`, that does not fit such layers of the
    model."""
    position = kind.position
    with inside(place, 'head_dim'):
        position.check(kind.head_dim or model.head_dim)
        position.check_heads(model.heads, kind.kv_heads or model.kv_heads)
    if model.pattern and position.embeds:
        rule = 'it is added to the embeddings: layers cannot differ in it'
        raise FieldError(place, position.describe(), rule)
