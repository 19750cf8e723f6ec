"""Multipliers of a form of lambda with one coefficient, for tests."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from nope.model import lam


def by_length(form: lam.Form, coefficient: float, lengths: Sequence[int]) -> np.ndarray:
    """Multipliers in sequences of so many tokens."""
    coefficients_LN = jnp.asarray([[coefficient]], jnp.float32)
    return np.array([form.multipliers(coefficients_LN, n)[0, 0] for n in lengths])


def by_keys(form: lam.Form, coefficient: float, keys: Sequence[int]) -> np.ndarray:
    """Multipliers of queries that see so many keys."""
    positions_T = jnp.asarray(keys, jnp.int32) - 1
    found = form.multipliers(jnp.asarray([[coefficient]], jnp.float32), 10_000, positions_T)
    return np.asarray(found[0, :, 0])
