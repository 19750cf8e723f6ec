"""RoPE settings of a config.json to and from `nope.positions`.

Two spellings are read. Of transformers 4:

    "rope_theta": 10000.0, "rope_scaling": null | {"rope_type" or "type": "yarn", ...}

and of transformers 5, where the base is one of the settings:

    "rope_parameters": {"rope_type": "yarn", "rope_theta": 10000.0, ...}

Written is the first, which both versions read.
"""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Callable
from typing import Any

from nope.interop.fields import MAX_LENGTH, MAX_NUMBER, Fields
from nope.positions import (
    NTK,
    ByParts,
    DynamicNTK,
    Linear,
    Llama3,
    LongRoPE,
    RoPE,
    Scaling,
    Unscaled,
    Yarn,
    longrope_multiplier,
)

log = logging.getLogger(__name__)

THETA = 10_000.0
ORIGINAL = 'original_max_position_embeddings'
_SHARE = 'partial_rotary_factor'
_COMMON = ('rope_type', 'type', 'rope_theta', _SHARE)


def read(
    config: Fields,
    *,
    theta: float = THETA,
    longest: int = 2048,
    settings: Fields | None = None,
    head_dim: int | None = None,
) -> RoPE:
    """The encoding that a config.json describes. theta, longest: the class's defaults of
    `rope_theta` and `max_position_embeddings`.

    settings: of the kind of scaling; None for `rope_scaling` or `rope_parameters`. head_dim: of a
    class without p-RoPE, whose `partial_rotary_factor` is the turning share of a head's dimensions;
    None for classes that turn whole heads. ValueError for a kind of scaling, a setting or a value
    that is not among ours.
    """
    fields = settings
    if fields is None:
        fields = config.section(config.agreed('rope_scaling', 'rope_parameters'))
    kind = fields.text(fields.agreed('rope_type', 'type'), _READERS, 'default')
    keys, read_scaling = _READERS[kind]
    fields.known((*_COMMON, *keys), f'what rope_type {kind!r} has')
    for key in fields.values if settings is None else ():
        if key.endswith('_attention'):  # null, of layers that some class would not turn
            raise fields.wrong(key, 'no type of layers: the class has one rotation for all')
    both = fields, config
    if head_dim is None and kind != 'proportional':
        for holder in both:
            why = f'rope_type {kind!r} turns all dimensions of a head in these models'
            holder.only(_SHARE, 1, why=why)
    shares = [holder.number(_SHARE, most=1.0) for holder in both if holder.has(_SHARE)]
    share, dims = _same(fields, _SHARE, shares, 1.0), None
    if head_dim is not None:
        dims, share = int(head_dim * share), 1.0
        if dims % 2 or dims < 4:
            rule = f'a share of head_dim, {head_dim}, that is an even number from 4, not {dims}'
            raise (fields if fields.has(_SHARE) else config).wrong(_SHARE, rule)
    longest = config.integer('max_position_embeddings', MAX_LENGTH, longest)
    originals = [holder.integer(ORIGINAL, MAX_LENGTH) for holder in both if holder.has(ORIGINAL)]
    scaling = read_scaling(fields, longest, _same(fields, ORIGINAL, originals, longest))
    if dims is not None and isinstance(scaling, LongRoPE):
        for key in ('short_factor', 'long_factor'):
            if len(fields.values[key]) != dims // 2:
                turning = f'{dims} dimensions turn by head_dim, {head_dim}, and {_SHARE}'
                raise fields.wrong(key, f'a list of {dims // 2} numbers: {turning}')
    names = [holder for holder in both if 'rope_theta' in holder.values]
    bases = [holder.number('rope_theta', above=1.0) for holder in names]
    base = _same(fields, 'rope_theta', bases, theta)
    return RoPE(base, scaling, dims=None if dims == head_dim else dims, share=share)


def unwritable(rope: RoPE, head_dim: int, *, partial: bool = False) -> str | None:
    """Reason why a config.json cannot describe the encoding; None if it can. partial: for a class
    that may turn a share of a head's dimensions."""
    scaling = rope.scaling
    if rope.interleaved:
        return 'its RoPE pairs are neighbours, where stock models turn halves'
    dims = rope.dims or head_dim
    if dims != head_dim and not partial:
        return f'only {rope.dims} of {head_dim} dimensions of a head turn'
    if type(scaling) not in _WRITERS:
        return f'stock models have no scaling like {type(scaling).__name__}'
    if rope.share < 1 and not isinstance(scaling, Unscaled | NTK | Linear):
        return f'stock models have no {type(scaling).__name__} of {rope.share:g} of the pairs'
    if rope.share < 1 and dims != head_dim:
        return f'stock models have no p-RoPE of {dims} of {head_dim} dimensions'
    base = scaling.scaled_base(rope.base, dims)
    if not 1 < base <= MAX_NUMBER:
        return f'its base is {base:g}, not above 1 and at most {MAX_NUMBER:g}'
    return None


def write(rope: RoPE, head_dim: int, longest: int | None) -> dict[str, Any]:
    """The keys of config.json for an encoding that `unwritable` has no reason against.

    longest: the longest sequence the model is for, if known. Rules that follow from
    `max_position_embeddings` decide on it themselves.
    """
    scaling, dims = rope.scaling, rope.dims or head_dim
    settings = _WRITERS[type(scaling)](scaling)
    if rope.share < 1:
        settings = {**settings, 'rope_type': 'proportional', _SHARE: float(rope.share)}
    # NTK-aware scaling is a larger base and nothing else.
    base = float(scaling.scaled_base(rope.base, dims))
    keys: dict[str, Any] = {'rope_theta': base, 'rope_scaling': settings or None}
    if dims != head_dim:
        share = dims / head_dim  # whose product with the head dim is rounded down
        keys[_SHARE] = share if int(head_dim * share) == dims else math.nextafter(share, 1.0)
    if isinstance(scaling, LongRoPE):
        # Transformers 4 looks here for the length that decides between short and long factors.
        keys[ORIGINAL] = settings[ORIGINAL]
    if isinstance(scaling, DynamicNTK):
        longest = scaling.train_length
    # Some versions take the ratio of `max_position_embeddings` to the length of pre-training for
    # the factor, or make the multiplier of it, whatever the settings say.
    if isinstance(scaling, ByParts | Llama3 | LongRoPE):
        extended = scaling.train_length * float(scaling.factor or 1.0)
        whole = extended.is_integer() and 1 <= extended <= MAX_LENGTH
        extended = int(extended) if whole else scaling.train_length
        if isinstance(scaling, LongRoPE):
            longest = max(longest or 0, extended, scaling.train_length)
        elif isinstance(scaling, ByParts) or (longest or 0) <= scaling.train_length:
            longest = extended
    return keys if longest is None else {**keys, 'max_position_embeddings': longest}


def in_one(keys: dict[str, Any]) -> dict[str, Any]:
    """`rope_parameters` of transformers 5, where `write` has the keys of transformers 4."""
    settings = {'rope_type': 'default', **(keys['rope_scaling'] or {})}
    return {**settings, 'rope_theta': keys['rope_theta']}


def _same(fields: Fields, key: str, found: list[Any], default: Any) -> Any:
    """A value that may stand in the settings and outside of them, where it has to be the same."""
    if found and found[0] != found[-1]:
        raise fields.wrong(key, f'{found[-1]}, what it is outside')
    return found[0] if found else default


def _read_yarn(fields: Fields, longest: int, original: int) -> Scaling:
    factor = fields.number('factor', longest / original)
    slow, fast = fields.number('beta_slow', 1.0), fields.number('beta_fast', 32.0)
    if fast <= slow:
        raise fields.wrong('beta_fast', f'a number above beta_slow, {slow:g}')
    truncate = fields.flag('truncate', True)
    if fields.has('attn_factor'):
        log.warning('config.json: attn_factor of YaRN is read over, as by transformers')
    by_parts = ByParts(factor, original, slow, fast, truncate)
    multiplier = fields.optional_number('attention_factor')
    over, under = (fields.number(key, 0.0, zero=True) for key in ('mscale', 'mscale_all_dim'))
    if multiplier is None and over and under:  # which count only together and above 0
        top, bottom = (1 + 0.1 * scale * math.log(max(factor, 1)) for scale in (over, under))
        multiplier = top / bottom
    if multiplier == 1:
        return by_parts
    yarn = Yarn(**dataclasses.asdict(by_parts))
    if multiplier is None or multiplier == yarn.attention_factor:
        return yarn
    return dataclasses.replace(yarn, multiplier=multiplier)


def _read_longrope(fields: Fields, longest: int, original: int) -> Scaling:
    if original < 2:
        raise fields.wrong(ORIGINAL, 'at least 2')
    factor = fields.number('factor', longest / original)
    multiplier = fields.number('attention_factor', longrope_multiplier(factor, original))
    return LongRoPE(
        fields.numbers('short_factor'), fields.numbers('long_factor'), original, multiplier
    )


def _read_llama3(fields: Fields, longest: int, original: int) -> Scaling:
    low, high = fields.number('low_freq_factor'), fields.number('high_freq_factor')
    if high <= low:
        raise fields.wrong('high_freq_factor', f'a number above low_freq_factor, {low:g}')
    return Llama3(fields.number('factor'), original, low, high)


# rope_type: the settings it has, and the scaling of these, of the longest sequence and of the
# length of pre-training. 'finetuned' and YaRN's own 'attn_factor' change nothing in stock.
_READERS: dict[str, tuple[tuple[str, ...], Callable[[Fields, int, int], Scaling]]] = {
    'default': ((), lambda fields, longest, original: Unscaled()),
    'linear': (('factor',), lambda fields, longest, original: Linear(fields.number('factor'))),
    'dynamic': (
        ('factor',),
        lambda fields, longest, original: DynamicNTK(fields.number('factor'), longest),
    ),
    'yarn': (
        (
            *('factor', 'attention_factor', 'beta_fast', 'beta_slow', 'mscale', 'mscale_all_dim'),
            *('truncate', 'finetuned', 'attn_factor', ORIGINAL),
        ),
        _read_yarn,
    ),
    'longrope': (
        ('factor', 'attention_factor', 'short_factor', 'long_factor', ORIGINAL),
        _read_longrope,
    ),
    'llama3': (('factor', 'low_freq_factor', 'high_freq_factor', ORIGINAL), _read_llama3),
    # p-RoPE of Gemma 4, whose factor is that of position interpolation.
    'proportional': (
        ('factor',),
        lambda fields, longest, original: (
            Linear(fields.number('factor')) if fields.has('factor') else Unscaled()
        ),
    ),
}
# Kinds of scaling, and the settings of each.
KINDS = {kind: keys for kind, (keys, _) in _READERS.items()}


def _write_by_parts(scaling: Any) -> dict[str, Any]:
    settings = {
        'rope_type': 'yarn',
        'factor': float(scaling.factor),
        ORIGINAL: scaling.train_length,
        'beta_fast': float(scaling.fast),
        'beta_slow': float(scaling.slow),
    }
    if not scaling.truncate:
        settings['truncate'] = False
    multiplier = scaling.multiplier if isinstance(scaling, Yarn) else 1.0
    return settings if multiplier is None else {**settings, 'attention_factor': float(multiplier)}


_WRITERS: dict[type, Callable[[Any], dict[str, Any]]] = {
    Unscaled: lambda scaling: {},
    NTK: lambda scaling: {},
    Linear: lambda scaling: {'rope_type': 'linear', 'factor': float(scaling.factor)},
    DynamicNTK: lambda scaling: {'rope_type': 'dynamic', 'factor': float(scaling.factor)},
    ByParts: _write_by_parts,
    Yarn: _write_by_parts,
    Llama3: lambda scaling: {
        'rope_type': 'llama3',
        'factor': float(scaling.factor),
        'low_freq_factor': float(scaling.low),
        'high_freq_factor': float(scaling.high),
        ORIGINAL: scaling.train_length,
    },
    LongRoPE: lambda scaling: {
        'rope_type': 'longrope',
        'short_factor': list(scaling.short),
        'long_factor': list(scaling.long),
        ORIGINAL: scaling.train_length,
        'attention_factor': float(scaling.attention_factor),
    },
}
