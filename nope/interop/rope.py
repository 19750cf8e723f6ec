"""Rotary settings of a config.json to and from `nope.positions`.

Two spellings are read. Of transformers 4:

    "rope_theta": 10000.0, "rope_scaling": null | {"rope_type" or "type": "yarn", ...}

and of transformers 5, where the base is one of the settings:

    "rope_parameters": {"rope_type": "yarn", "rope_theta": 10000.0, ...}

Written is the first, which both versions read.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from nope.interop.fields import MAX_LENGTH, MAX_NUMBER, Fields
from nope.positions import (
    NTK,
    ByParts,
    DynamicNTK,
    Linear,
    Llama3,
    LongRoPE,
    Rotary,
    Scaling,
    Unscaled,
    Yarn,
    longrope_multiplier,
)

THETA = 10_000.0
_SHARE = 'partial_rotary_factor'
_COMMON = ('rope_type', 'type', 'rope_theta', _SHARE)
ORIGINAL = 'original_max_position_embeddings'


class _Settings(NamedTuple):
    """fields: the settings. longest: the config's max_position_embeddings. original: the length
    of pre-training, for the rules that have one."""

    fields: Fields
    longest: int
    original: int


def read(
    config: Fields,
    *,
    theta: float = THETA,
    longest: int = 2048,
    settings: Fields | None = None,
    head_dim: int | None = None,
) -> Rotary:
    """The encoding that a config.json describes, for the class of models whose `rope_theta` and
    `max_position_embeddings` are these where the file leaves them out.

    settings: those of the kind of scaling; None for `rope_scaling` or `rope_parameters`.
    head_dim: of a class in which `partial_rotary_factor` is the share of a head's first dimensions
    that turn, and which has no p-RoPE; None for classes that turn whole heads.
    ValueError for a kind of scaling, a setting or a value that is not among ours.
    """
    fields = settings
    if fields is None:
        fields = config.section(config.agreed('rope_scaling', 'rope_parameters'))
    kind = fields.text(fields.agreed('rope_type', 'type'), _READERS, 'default')
    keys, reader = _READERS[kind]
    fields.known((*_COMMON, *keys), f'what rope_type {kind!r} has')
    dims, share = None, 1.0
    if head_dim is not None:
        dims = _turning(config, fields, head_dim)
    else:
        if kind != 'proportional':
            _check_whole(config, fields, kind)
        share = _share(config, fields)
    longest = config.integer('max_position_embeddings', MAX_LENGTH, longest)
    found = _Settings(fields, longest, _original(config, fields, longest))
    scaling = reader(found)
    if dims is not None and isinstance(scaling, LongRoPE):
        _check_factors(fields, dims, head_dim)
    dims = None if dims == head_dim else dims
    return Rotary(_theta(config, fields, theta), scaling, dims=dims, share=share)


def train_length(rotary: Rotary, longest: int | None) -> int | None:
    """The length of pre-training: what the scaling says, else the config's longest sequence."""
    return getattr(rotary.scaling, 'train_length', longest)


def unwritable(rotary: Rotary, head_dim: int, *, partial: bool = False) -> str | None:
    """Reason why a config.json cannot describe the encoding; None if it can. partial: for a class
    that may turn a share of a head's dimensions."""
    scaling = rotary.scaling
    if rotary.interleaved:
        return 'its rotary pairs are neighbours, where stock models turn halves'
    dims = rotary.dims or head_dim
    if dims != head_dim and not partial:
        return f'only {rotary.dims} of {head_dim} dimensions of a head turn'
    if type(scaling) not in _WRITERS:
        return f'stock models have no scaling like {type(scaling).__name__}'
    if rotary.share < 1 and not isinstance(scaling, Unscaled | NTK | Linear):
        return f'stock models have no {type(scaling).__name__} of {rotary.share:g} of the pairs'
    if isinstance(scaling, ByParts) and scaling.ramp != 'dimensions':
        return f'stock models have no ramp by {scaling.ramp}'
    if rotary.share < 1 and dims != head_dim:
        return f'stock models have no p-RoPE of {dims} of {head_dim} dimensions'
    if not 1 < _base(rotary, dims) <= MAX_NUMBER:
        return f'its base is {_base(rotary, dims):g}, not above 1 and at most {MAX_NUMBER:g}'
    return None


def write(rotary: Rotary, head_dim: int, longest: int | None) -> dict[str, Any]:
    """The keys of config.json for an encoding that `unwritable` has no reason against.

    longest: the longest sequence the model is for, if known. Rules that follow from
    `max_position_embeddings` decide on it themselves.
    """
    scaling, dims = rotary.scaling, rotary.dims or head_dim
    settings = _WRITERS[type(scaling)](scaling)
    if rotary.share < 1:
        settings = {**settings, 'rope_type': 'proportional', _SHARE: float(rotary.share)}
    keys = {'rope_theta': _base(rotary, dims), 'rope_scaling': settings or None}
    if dims != head_dim:
        keys[_SHARE] = _share_of(dims, head_dim)
    if ORIGINAL in settings and isinstance(scaling, LongRoPE):
        # Transformers 4 looks here for the length that decides between short and long factors.
        keys[ORIGINAL] = settings[ORIGINAL]
    longest = _longest(scaling, longest)
    return keys if longest is None else {**keys, 'max_position_embeddings': longest}


def _check_whole(config: Fields, fields: Fields, kind: str) -> None:
    """ValueError where `partial_rotary_factor` is not 1. kind: the rope_type."""
    why = f'rope_type {kind!r} turns all dimensions of a head in these models'
    for holder in (fields, config):
        holder.only(_SHARE, 1, why=why)


def _share(config: Fields, fields: Fields) -> float:
    """`partial_rotary_factor`: p of p-RoPE, which is rope_type 'proportional', or the share of a
    head's dimensions."""
    holders = [holder for holder in (fields, config) if holder.has(_SHARE)]
    shares = [holder.number(_SHARE, most=1.0) for holder in holders] or [1.0]
    if shares[0] != shares[-1]:
        raise fields.wrong(_SHARE, f'{shares[-1]:g}, what it is outside')
    return shares[0]


def _turning(config: Fields, fields: Fields, head_dim: int) -> int:
    """The number of a head's dimensions that turn, of a class that may turn a share of them."""
    dims = int(head_dim * _share(config, fields))
    if dims % 2 or dims < 4:
        holder = fields if fields.has(_SHARE) else config
        rule = f'a share of head_dim, {head_dim}, that is an even number from 4, not {dims}'
        raise holder.wrong(_SHARE, rule)
    return dims


def _check_factors(fields: Fields, dims: int, head_dim: int | None) -> None:
    """ValueError unless LongRoPE has a factor for every pair of dimensions that turns."""
    for key in ('short_factor', 'long_factor'):
        if len(fields.values[key]) != dims // 2:
            rule = (
                f'a list of {dims // 2} numbers: {dims} dimensions turn by head_dim, {head_dim}, '
                f'and {_SHARE}'
            )
            raise fields.wrong(key, rule)


def _share_of(dims: int, head_dim: int) -> float:
    """The share whose product with the head dim, rounded down, is `dims`."""
    share = dims / head_dim
    return share if int(head_dim * share) == dims else math.nextafter(share, 1.0)


def _theta(config: Fields, fields: Fields, default: float) -> float:
    holders = [holder for holder in (fields, config) if 'rope_theta' in holder.values]
    if not holders:
        return default
    bases = [holder.number('rope_theta', above=1.0) for holder in holders]
    if bases[0] != bases[-1]:
        raise fields.wrong('rope_theta', f'{bases[-1]:g}, what it is outside')
    return bases[0]


def _original(config: Fields, fields: Fields, longest: int) -> int:
    outside = config.optional_integer(ORIGINAL, MAX_LENGTH)
    inside = fields.optional_integer(ORIGINAL, MAX_LENGTH)
    if outside is not None and inside is not None and outside != inside:
        raise fields.wrong(ORIGINAL, f'{outside}, what it is outside')
    return inside or outside or longest


def _read_default(settings: _Settings) -> Scaling:
    return Unscaled()


def _read_linear(settings: _Settings) -> Scaling:
    return Linear(settings.fields.number('factor'))


def _read_proportional(settings: _Settings) -> Scaling:
    """p-RoPE of Gemma 4, whose factor is that of position interpolation."""
    factor = settings.fields.optional_number('factor')
    return Unscaled() if factor is None else Linear(factor)


def _read_dynamic(settings: _Settings) -> Scaling:
    return DynamicNTK(settings.fields.number('factor'), settings.longest)


def _read_yarn(settings: _Settings) -> Scaling:
    fields = settings.fields
    factor = fields.number('factor', settings.longest / settings.original)
    slow = fields.number('beta_slow', 1.0)
    fast = fields.number('beta_fast', 32.0)
    if fast <= slow:
        raise fields.wrong('beta_fast', f'a number above beta_slow, {slow:g}')
    truncate = fields.flag('truncate', True)
    by_parts = ByParts(factor, settings.original, slow, fast, 'dimensions', truncate)
    multiplier = fields.optional_number('attention_factor')
    if multiplier is None:
        multiplier = _mscale_ratio(fields, factor)
    if multiplier == 1:
        return by_parts
    yarn = Yarn(**dataclasses.asdict(by_parts))
    if multiplier is None or multiplier == yarn.attention_factor(1):
        return yarn
    return dataclasses.replace(yarn, multiplier=multiplier)


def _mscale_ratio(fields: Fields, factor: float) -> float | None:
    """The multiplier that the two `mscale` make, which count only together and above 0."""
    over, under = (fields.number(key, 0.0, zero=True) for key in ('mscale', 'mscale_all_dim'))
    if not (over and under):
        return None
    top, bottom = (1 + 0.1 * scale * math.log(max(factor, 1)) for scale in (over, under))
    return top / bottom


def _read_longrope(settings: _Settings) -> Scaling:
    fields = settings.fields
    if settings.original < 2:
        raise fields.wrong(ORIGINAL, 'at least 2')
    factor = fields.number('factor', settings.longest / settings.original)
    multiplier = fields.number('attention_factor', longrope_multiplier(factor, settings.original))
    short, long = fields.numbers('short_factor'), fields.numbers('long_factor')
    return LongRoPE(short, long, settings.original, multiplier)


def _read_llama3(settings: _Settings) -> Scaling:
    fields = settings.fields
    low, high = fields.number('low_freq_factor'), fields.number('high_freq_factor')
    if high <= low:
        raise fields.wrong('high_freq_factor', f'a number above low_freq_factor, {low:g}')
    return Llama3(fields.number('factor'), settings.original, low, high)


# rope_type: the settings it has, and what reads them. 'finetuned' is a note that changes nothing.
_READERS: dict[str, tuple[tuple[str, ...], Callable[[_Settings], Scaling]]] = {
    'default': ((), _read_default),
    'linear': (('factor',), _read_linear),
    'dynamic': (('factor',), _read_dynamic),
    'yarn': (
        (
            *('factor', 'attention_factor', 'beta_fast', 'beta_slow', 'mscale', 'mscale_all_dim'),
            *('truncate', 'finetuned', ORIGINAL),
        ),
        _read_yarn,
    ),
    'longrope': (
        ('factor', 'attention_factor', 'short_factor', 'long_factor', ORIGINAL),
        _read_longrope,
    ),
    'llama3': (('factor', 'low_freq_factor', 'high_freq_factor', ORIGINAL), _read_llama3),
    'proportional': (('factor',), _read_proportional),
}
# Kinds of scaling, and the settings of each.
KINDS = {kind: keys for kind, (keys, _) in _READERS.items()}


def _base(rotary: Rotary, dims: int) -> float:
    """NTK-aware scaling is a larger base and nothing else. dims: the number that turn."""
    return float(rotary.scaling.scaled_base(rotary.base, dims))


def _longest(scaling: Scaling, longest: int | None) -> int | None:
    if isinstance(scaling, DynamicNTK):
        return scaling.train_length
    if isinstance(scaling, ByParts):
        # Some versions take their ratio for the factor, whatever `factor` says.
        return _extended(scaling.train_length, scaling.factor)
    if isinstance(scaling, Llama3):
        known = longest is not None and longest > scaling.train_length
        return longest if known else _extended(scaling.train_length, scaling.factor)
    if isinstance(scaling, LongRoPE):
        # Some versions make the multiplier of their ratio, whatever `attention_factor` says.
        extended = _extended(scaling.train_length, scaling.factor or 1.0)
        return max(longest or 0, extended, scaling.train_length)
    return longest


def _extended(train_length: int, factor: float) -> int:
    """The length of pre-training times the factor, where that is a length; else the former."""
    extended = train_length * float(factor)
    whole = extended.is_integer() and 1 <= extended <= MAX_LENGTH
    return int(extended) if whole else train_length


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


def _write_longrope(scaling: Any) -> dict[str, Any]:
    return {
        'rope_type': 'longrope',
        'short_factor': list(scaling.short),
        'long_factor': list(scaling.long),
        ORIGINAL: scaling.train_length,
        'attention_factor': float(scaling.attention_factor(1)),
    }


def _write_llama3(scaling: Any) -> dict[str, Any]:
    return {
        'rope_type': 'llama3',
        'factor': float(scaling.factor),
        'low_freq_factor': float(scaling.low),
        'high_freq_factor': float(scaling.high),
        ORIGINAL: scaling.train_length,
    }


_WRITERS: dict[type, Callable[[Any], dict[str, Any]]] = {
    Unscaled: lambda scaling: {},
    NTK: lambda scaling: {},
    Linear: lambda scaling: {'rope_type': 'linear', 'factor': float(scaling.factor)},
    DynamicNTK: lambda scaling: {'rope_type': 'dynamic', 'factor': float(scaling.factor)},
    ByParts: _write_by_parts,
    Yarn: _write_by_parts,
    Llama3: _write_llama3,
    LongRoPE: _write_longrope,
}
