"""Interface of a family of checkpoints: reading and writing its config and tensors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from nope.interop.mapping import Tensor
from nope.model import ModelConfig


class Ignored(NamedTuple):
    """Tensors that are left out on purpose: names that match `pattern` whole, and why."""

    pattern: re.Pattern[str]
    reason: str


class Family(Protocol):
    """One kind of checkpoint. Stateless."""

    name: str

    def owns(self, config: Mapping[str, Any], names: frozenset[str]) -> bool:
        """True for a directory with a config.json and tensors of this family."""
        ...

    def read_config(self, config: Mapping[str, Any], names: frozenset[str]) -> Described:
        """The model. ValueError names the key of config.json that cannot be honoured, its value
        and what is accepted."""
        ...

    def tensors(self, config: ModelConfig, names: frozenset[str]) -> list[Tensor]:
        """Every tensor of the model, layer by layer: each parameter exactly once. names: those of
        the file, which decide how tensors are spelled; empty for the family's own."""
        ...

    def ignored(self, config: ModelConfig) -> tuple[Ignored, ...]:
        """Tensors that may be there and are not needed."""
        ...

    def unwritable(self, config: ModelConfig) -> str | None:
        """Reason why a model cannot be written in this family's format; None if it can."""
        ...

    def write_config(self, config: ModelConfig, described: Described) -> dict[str, Any]:
        """config.json of the model, with `architectures` and `model_type` of stock
        `transformers`. Only for models that `unwritable` has no reason against."""
        ...


class Described(NamedTuple):
    """Model of a directory, with its training length, dtype, special tokens and longest sequence.

    train_length: the length it was pre-trained at; None where nothing says so.
    dtype: that holds every value of the tensors, 'float32', 'bfloat16' or 'float16'.
    bos, eos, pad: token ids, None where unknown. ends: other tokens that end a text, which a list
        of them has behind `eos`.
    longest: the longest sequence it is for by its config.json, such as `max_position_embeddings`,
        which a scaling of positions or an export sets beyond train_length; None where unknown.
    """

    model: ModelConfig
    train_length: int | None
    dtype: str = 'float32'
    bos: int | None = None
    eos: int | None = None
    longest: int | None = None
    ends: tuple[int, ...] = ()
    pad: int | None = None
