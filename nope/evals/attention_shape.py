"""Shape of attention by position: entropy, weight on the first and the latest tokens, output."""

from __future__ import annotations

import numpy as np
from jax.sharding import Mesh

from nope.evals.forward import Progress, means
from nope.model import ModelConfig
from nope.records import Measure, Records
from nope.variables import Variables

AXES = ('layer', 'head', 'position')


def run(
    config: ModelConfig,
    variables: Variables,
    blocks: np.ndarray,
    *,
    span: int,
    mesh: Mesh,
    batch_size: int,
    progress: Progress = iter,
) -> Records:
    """Measures a model on blocks [windows, T + 1] int32; means over windows.

    Measures: `loss` [position], nats per token. By layer, head and position there are `entropy` in
    nats, `first`, the weight on the first token, and `local`, that on the latest `span` tokens (T
    at least as many, or all). `norm` is the Euclidean norm of the head's output. `global` [layer,
    head] is 1 for heads without position encoding, else 0. Positions count from 1.
    """
    length = blocks.shape[1] - 1
    found = means(
        config,
        variables,
        blocks,
        mesh=mesh,
        batch_size=batch_size,
        entropy=True,
        span=span,
        progress=progress,
    )
    assert found.entropy is not None and found.shape is not None
    shape = found.shape
    without_LN = config.heads_without_position.astype(np.float32)
    return Records(
        attributes={
            'evaluation': 'attention_shape',
            'length': length,
            'span': span,
            'windows': found.windows,
            'n_layers': config.attention_layers,
            'n_heads': config.heads,
        },
        measures={
            'loss': Measure(found.loss, ('position',), 'nats'),
            'entropy': Measure(found.entropy.astype(np.float32), AXES, 'nats'),
            'first': Measure(np.asarray(shape.first, np.float32), AXES, 'share'),
            'local': Measure(np.asarray(shape.local, np.float32), AXES, 'share'),
            'norm': Measure(np.asarray(shape.norm, np.float32), AXES, ''),
            'global': Measure(without_LN, ('layer', 'head'), ''),
        },
        coordinates={'position': np.arange(1, length + 1)},
    )
