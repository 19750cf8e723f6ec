"""The tensors of a Mamba-2 layer, and the bounds of its steps in a config.json.

in_proj.{weight,bias}        rows of gate, x, b, c and step, in this order
conv1d.{weight,bias}         of x, b and c
dt_bias, A_log, D
norm.weight
out_proj.{weight,bias}
"""

from __future__ import annotations

import math

import numpy as np

from nope.interop.families.templates import LayerTensor
from nope.interop.fields import Fields
from nope.interop.mapping import SAME, Layout, fused, part_vectors, parts_in, parts_out, taps
from nope.model.mixers import Mamba2

LIMIT = 'time_step_limit'
INFINITE = {'__float__': 'Infinity'}  # as transformers 5 writes it


def tensors(prefix: str, mixer: Mamba2, width: int) -> list[LayerTensor]:
    """Tensors of a layer whose names begin with `prefix` and a dot."""
    N, H, K, E = mixer.heads, mixer.head_dim, mixer.groups, mixer.state
    convolved = {'x': (N, H), 'b': (K, E), 'c': (K, E)}
    projected = {'gate': (N, H), **convolved, 'step': (N, 1)}

    def one(name: str, ours: str, shape: tuple[int, ...], layout: Layout = SAME) -> LayerTensor:
        return LayerTensor(f'{prefix}.{name}', shape, (_path(ours),), layout)

    def joined(
        name: str, of: dict[str, tuple[int, int]], end: str, layouts: list[Layout], *rest: int
    ) -> LayerTensor:
        """A tensor with the rows of several parts one after the other."""
        ends = np.cumsum([heads * size for heads, size in of.values()])
        layout = fused(layouts, np.split(np.arange(ends[-1]), ends[:-1]))
        paths = tuple(_path(f'{ours}{end}') for ours in of)
        return LayerTensor(f'{prefix}.{name}', (int(ends[-1]), *rest), paths, layout)

    def vectors(of: dict[str, tuple[int, int]]) -> list[Layout]:
        return [part_vectors(*sizes) for sizes in of.values()]

    matrices = [parts_out(width, *sizes) for sizes in projected.values()]
    filters = [taps(mixer.taps, *sizes) for sizes in convolved.values()]
    found = [
        joined('in_proj.weight', projected, '', matrices, width),
        joined('conv1d.weight', convolved, '_taps', filters, 1, mixer.taps),
        one('dt_bias', 'dt_bias', (N,)),
        one('A_log', 'log_a', (N,)),
        one('D', 'skip', (N,)),
        one('norm.weight', 'scale', (N * H,), part_vectors(N, H)),
        one('out_proj.weight', 'output', (width, N * H), parts_in(width, N, H)),
    ]
    if mixer.convolution_bias:
        found.append(joined('conv1d.bias', convolved, '_taps_bias', vectors(convolved)))
    if mixer.bias:
        found.append(joined('in_proj.bias', projected, '_bias', vectors(projected)))
        found.append(one('out_proj.bias', 'output_bias', (width,)))
    return found


def read_limits(fields: Fields) -> tuple[float, float | None]:
    """Least and most steps; None for none above."""
    if not fields.has(LIMIT):
        return 0.0, None
    given = fields.values[LIMIT]
    pair = [math.inf if x == INFINITE else x for x in given] if isinstance(given, list) else []
    if len(pair) != 2 or not all(type(x) in (int, float) for x in pair):
        raise fields.wrong(LIMIT, 'two numbers, the least and the most')
    least, most = map(float, pair)
    if not 0 <= least < most or math.isinf(least):
        raise fields.wrong(LIMIT, '0 or more, and more')
    return least, None if math.isinf(most) else most


def _path(ours: str) -> tuple[str, ...]:
    return 'layers', 'mamba2', ours
