"""Floating-point operations of a traced program, from its matrix products."""

from __future__ import annotations

import math
from typing import Any, NamedTuple


class Flops(NamedTuple):
    """weights: products with weights. attention: products of activations, with batch axes."""

    weights: float = 0.0
    attention: float = 0.0

    def __add__(self, other: Any) -> Flops:
        return Flops(self.weights + other.weights, self.attention + other.attention)

    def times(self, factor: float) -> Flops:
        return Flops(factor * self.weights, factor * self.attention)


def count(jaxpr: Any, rounds: int = 0) -> Flops:
    """FLOPs of all matrix products in a jaxpr: 2 m n k each, a loop's body as often as it runs, of
    branches the dearest one.

    Recomputed products count again, elementwise work does not. rounds: how often a loop with a
    condition runs at most; ValueError for such a loop where it is 0.
    """
    jaxpr = getattr(jaxpr, 'jaxpr', jaxpr)
    total = Flops()
    for equation in jaxpr.eqns:
        total += _of_equation(equation, rounds)
    return total


def _of_equation(equation: Any, rounds: int) -> Flops:
    name, params = equation.primitive.name, equation.params
    if name == 'dot_general':
        (contracted, _), (batched, _) = params['dimension_numbers']
        terms = math.prod(equation.invars[0].aval.shape[axis] for axis in contracted)
        product = 2.0 * math.prod(equation.outvars[0].aval.shape) * terms
        return Flops(attention=product) if batched else Flops(weights=product)
    if name == 'scan':
        return count(params['jaxpr'], rounds).times(params['length'])
    if name == 'cond':
        return max((count(branch, rounds) for branch in params['branches']), key=sum)
    if name == 'while':
        body = count(params['body_jaxpr'], rounds)
        if sum(body) and not rounds:
            raise ValueError('a while loop holds matrix products: how often it runs is not known')
        return body.times(rounds)
    if name == 'pallas_call':
        return count(params['jaxpr'], rounds).times(math.prod(params['grid_mapping'].grid))
    for field in ('jaxpr', 'call_jaxpr', 'fun_jaxpr'):  # not the rules of a call's derivatives
        if hasattr(params.get(field), 'eqns') or hasattr(params.get(field), 'jaxpr'):
            # The body of a shard_map is what one device does.
            devices = params['mesh'].size if name == 'shard_map' else 1
            return count(params[field], rounds).times(devices)
    return Flops()
