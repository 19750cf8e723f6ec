"""Floating-point operations of a traced program, from its matrix products."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any


def count(jaxpr: Any) -> float:
    """FLOPs of all matrix products in a jaxpr, over all devices: 2 m n k each, a loop's body as
    often as it runs, of branches the dearest one.

    What is recomputed counts again. A kernel counts for every point of its grid, so a kernel that
    passes over masked blocks inside its body counts them too. Elementwise work is not counted.
    ValueError for a loop whose length is not known.
    """
    jaxpr = getattr(jaxpr, 'jaxpr', jaxpr)
    return sum(_of_equation(equation) for equation in jaxpr.eqns)


def _of_equation(equation: Any) -> float:
    name, params = equation.primitive.name, equation.params
    if name == 'dot_general':
        return _of_product(equation)
    if name == 'scan':
        return params['length'] * count(params['jaxpr'])
    if name == 'cond':
        return max(count(branch) for branch in params['branches'])
    if name == 'while':
        body = count(params['body_jaxpr'])
        if body:
            raise ValueError('a while loop holds matrix products: how often it runs is not known')
        return 0.0
    if name == 'pallas_call':
        return math.prod(params['grid_mapping'].grid) * count(params['jaxpr'])
    inner = sum(count(jaxpr) for jaxpr in _inner(params))
    # The body of a shard_map is what one device does.
    return inner * (params['mesh'].size if name == 'shard_map' else 1)


def _of_product(equation: Any) -> float:
    left = equation.invars[0].aval
    (contracted, _), _ = equation.params['dimension_numbers']
    terms = math.prod(left.shape[axis] for axis in contracted)
    return 2.0 * math.prod(equation.outvars[0].aval.shape) * terms


def _inner(params: dict[str, Any]) -> Iterator[Any]:
    """Jaxprs among the parameters of a call, each once (not the rules of its derivatives)."""
    for name in ('jaxpr', 'call_jaxpr', 'fun_jaxpr'):
        if hasattr(params.get(name), 'eqns') or hasattr(params.get(name), 'jaxpr'):
            yield params[name]
            return
