"""Training state: a step counter, the collections that train, their optimizer's state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding

from nope import sharding
from nope.runtime.libraries import optax
from nope.training import optim
from nope.variables import Variables


class TrainState(flax.struct.PyTreeNode):
    """step: int32 scalar, updates made so far; trained: {'params': ...}, {'lam': ...} or both;
    opt_state of the optimizer.

    The frozen collection is no part of it: a training step donates its state, and the weights
    that a search of lambda stands on belong to whoever made them.
    """

    step: jax.Array
    trained: Variables
    opt_state: optax.OptState

    def arrays(self, frozen: Variables) -> dict[str, Any]:
        """Arrays of a checkpoint: `params`, `lam` and `opt_state`; of a search `lam` and
        `opt_state`, since its parameters are saved with the run it starts from."""
        kept = {} if self.searches else frozen
        return {**kept, **self.trained, 'opt_state': self.opt_state}

    @property
    def searches(self) -> bool:
        """Whether lambda alone trains."""
        return 'params' not in self.trained

    def with_arrays(self, step: int, arrays: Mapping[str, Any]) -> TrainState:
        """The state of a checkpoint's arrays, with the step counter placed as this one's."""
        counter = sharding.put(np.asarray(step, np.int32), self.step.sharding)
        trained = {name: arrays[name] for name in self.trained}
        return TrainState(counter, trained, arrays['opt_state'])


def fresh_state(
    variables: Variables, optimizer: optim.OptimizerConfig, mesh: Mesh
) -> tuple[TrainState, Variables]:
    """Step 0 and the frozen variables.

    Trained arrays are copied, since a step donates its state. Frozen ones are not. The optimizer's
    moments lie where their variables do, the counters on every device.
    """
    trained, frozen = optim.split(variables, optimizer.trains)
    # Not under jit: there the moments are zeros that depend on nothing, and get replicated.
    state = TrainState(
        jnp.zeros((), jnp.int32),
        jax.tree.map(jnp.copy, trained),
        optim.make_optimizer(optimizer).init(variables),
    )
    everywhere = sharding.replicated(mesh)
    placed = jax.tree.map(
        lambda leaf: (
            leaf if isinstance(leaf.sharding, NamedSharding) else sharding.put(leaf, everywhere)
        ),
        state,
    )
    return placed, frozen
