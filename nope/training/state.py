"""Training state: a step counter, the two collections of variables, optimizer state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding

from nope import sharding
from nope.variables import COLLECTIONS, Variables


class TrainState(flax.struct.PyTreeNode):
    """step: int32 scalar, updates made so far; variables; opt_state of the optimizer."""

    step: jax.Array
    variables: Variables
    opt_state: optax.OptState

    @property
    def arrays(self) -> dict[str, Any]:
        """What a checkpoint of this state holds: `params`, `lam` and `opt_state`."""
        return {**self.variables, 'opt_state': self.opt_state}

    def with_arrays(self, step: int, arrays: Mapping[str, Any]) -> TrainState:
        """The state of a checkpoint's arrays, with the step counter placed as this one's."""
        counter = sharding.put(np.asarray(step, np.int32), self.step.sharding)
        variables = {name: arrays[name] for name in COLLECTIONS}
        return TrainState(counter, variables, arrays['opt_state'])


def fresh_state(
    variables: Variables, optimizer: optax.GradientTransformation, mesh: Mesh
) -> TrainState:
    """Step 0 around a copy of `variables` (a training step donates its state).

    The optimizer's moments lie where their variables do, the counters on every device.
    """
    # Not under jit: there the moments are zeros that depend on nothing, and get replicated.
    state = TrainState(
        jnp.zeros((), jnp.int32), jax.tree.map(jnp.copy, variables), optimizer.init(variables)
    )
    everywhere = sharding.replicated(mesh)
    return jax.tree.map(
        lambda leaf: (
            leaf if isinstance(leaf.sharding, NamedSharding) else sharding.put(leaf, everywhere)
        ),
        state,
    )
