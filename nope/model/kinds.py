"""Kinds of layers: what may differ between the layers of one model."""

from __future__ import annotations

import dataclasses

from nope.model.mixers import Attention, Mixer
from nope.positions import NoPE, Position
from nope.runtime.errors import FieldError, one_of

SIZES = ('head_dim', 'kv_heads', 'mlp_width')
KEYS_FROM = ('input', 'earlier')
VALUES_FROM = ('input', 'keys')
ATTENTION = Attention()


@dataclasses.dataclass(frozen=True)
class LayerKind:
    """Kind of a layer: what it does with the sequence, and as attention its position encoding, how
    far it sees, whether it has QK-norm, its sizes, and where its keys and values are from.

    window: keys a query sees, itself included; None for all before it.
    chunk: a query at position i sees the keys before it that have floor(i / chunk) in common with
        it, as in the local layers of Llama 4; None for all. A layer has a window or chunks.
    qk_norm: False for a layer without the model's QK-norm; None for what the model says.
    head_dim, kv_heads, mlp_width: sizes of its layers; None for the model's.
    keys_from: 'input', own projections. 'earlier' shares keys and values of the last such layer
        with its own (Gemma 3n).
    values_from: 'input', or 'keys', the projection to keys, before their norm and positions.
    mixer: None for a layer of an MLP alone. mlp: False for a layer without an MLP.
    """

    position: Position = NoPE()
    window: int | None = None
    qk_norm: bool | None = None
    chunk: int | None = None
    head_dim: int | None = None
    kv_heads: int | None = None
    mlp_width: int | None = None
    keys_from: str = 'input'
    values_from: str = 'input'
    mixer: Mixer | None = ATTENTION
    mlp: bool = True

    @property
    def attends(self) -> bool:
        """Whether it has attention, and so lambda and entropy."""
        return isinstance(self.mixer, Attention)

    @property
    def is_limited(self) -> bool:
        """Whether a query sees less than all keys before it."""
        return self.window is not None or self.chunk is not None

    def __post_init__(self) -> None:
        if self.window is not None and not 1 <= self.window <= 2**30:
            raise FieldError(
                'window', self.window, 'accepted: 1 to 2**30, or None for all keys before a query'
            )
        if self.chunk is not None and not 1 <= self.chunk <= 2**30:
            raise FieldError('chunk', self.chunk, 'accepted: 1 to 2**30, or None for no chunks')
        if self.chunk is not None and self.window is not None:
            rule = f'window is {self.window}; accepted is one of them, the other None'
            raise FieldError('chunk', self.chunk, rule)
        for name in SIZES:
            size = getattr(self, name)
            if size is not None and size < 1:
                raise FieldError(name, size, "it must be at least 1, or None for the model's")
        for name, accepted in (('keys_from', KEYS_FROM), ('values_from', VALUES_FROM)):
            if getattr(self, name) not in accepted:
                raise FieldError(name, getattr(self, name), one_of(accepted))
        if self.mixer is None and not self.mlp:
            raise FieldError('mlp', False, 'the layer has no mixer either; accepted: True')
        if self.mlp_width is not None and not self.mlp:
            raise FieldError('mlp_width', self.mlp_width, 'the layer has no MLP')
        for field in () if self.attends else dataclasses.fields(self):
            value, elsewhere = getattr(self, field.name), ('mixer', 'mlp', 'mlp_width')
            if field.name not in elsewhere and value != field.default:
                raise FieldError(field.name, value, 'the layer has no attention')

    @property
    def sizes(self) -> tuple[str, ...]:
        """Those of SIZES that its layers have."""
        of_part = {'head_dim': self.attends, 'kv_heads': self.attends, 'mlp_width': self.mlp}
        return tuple(name for name in SIZES if of_part[name])

    @property
    def has_own_arrays(self) -> bool:
        """Whether its layers have other arrays than the fields of a model say."""
        sized = any(getattr(self, name) is not None for name in SIZES)
        sourced = (self.keys_from, self.values_from) != ('input', 'input')
        return sized or sourced or not self.attends or not self.mlp

    @property
    def source(self) -> LayerKind:
        """Kind of the layer that lends its keys and values. The width of its MLP does not count and
        is None."""
        return dataclasses.replace(self, keys_from='input', mlp_width=None)

    @property
    def reach(self) -> LayerKind:
        """The kind but for sizes and sources: positions, window, chunks and QK-norm, or its
        mixer."""
        return LayerKind(self.position, self.window, self.qk_norm, self.chunk, mixer=self.mixer)

    def describe(self) -> str:
        parts = (
            ('window {}', self.window),
            ('chunks of {}', self.chunk),
            ('no QK-norm', None if self.qk_norm is not False else ''),
            ('head dim {}', self.head_dim),
            ('{} key-value heads', self.kv_heads),
            ('MLP of {}', self.mlp_width),
            ('keys of an earlier layer', None if self.keys_from == 'input' else ''),
            ('values from keys', None if self.values_from == 'input' else ''),
            ('no MLP', None if self.mlp else ''),
        )
        said = (text.format(value) for text, value in parts if value is not None)
        if self.mixer is None:
            first = 'MLP alone'
        elif isinstance(self.mixer, Attention):
            first = self.position.describe()
        else:
            first = self.mixer.describe()
        return ', '.join((first, *said))
