"""Base class of mixers, what a layer does with the sequence: attention, or a state space."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import jax


@dataclasses.dataclass(frozen=True)
class Parts:
    """Parts of a model that a mixer takes.

    parameter: an array of the layer by its name, the role of its first values (`nope.model.init`)
        or an initializer, its shape and logical axes, and 'float32' where it is not read in the
        model's dtype. epsilon: of the norms.
    """

    parameter: Callable[..., jax.Array]
    epsilon: float


@dataclasses.dataclass(frozen=True)
class Mixer:
    """A mixer by its sizes, from which every one derives.

    name: of its arrays under a layer. attends: whether it is attention, whose options are the
    model's (`nope.model.fields`), and which alone has lambda, entropy and positions.
    """

    name: ClassVar[str]
    attends: ClassVar[bool] = False

    def weights(self, width: int) -> int:
        """Weights in the matrix products of a layer of a model of this width."""
        raise NotImplementedError

    def vectors(self, width: int) -> int:
        """All its other parameters there."""
        raise NotImplementedError

    def products(self) -> float:
        """Multiplications of a token that are not with weights."""
        raise NotImplementedError

    def empty(self, rows: int, dtype: str) -> Any:
        """Initial recurrent state of that many rows, named arrays, as `mix` takes it."""
        raise NotImplementedError

    def mix(
        self, parts: Parts, x_BTD: jax.Array, segments_BT: jax.Array | None, state: Any
    ) -> tuple[jax.Array, Any]:
        """(the layer's output [B, T, D], the state with these tokens).

        segments_BT: int32 documents. state: of earlier tokens, which then are of the same document,
        and segment 0 is padding; None before the first.
        """
        raise NotImplementedError

    def describe(self) -> str:
        """A few words for captions."""
        raise NotImplementedError
