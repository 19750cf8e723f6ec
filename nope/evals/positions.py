"""Loss by position, and attention entropy by layer, head and position, in one pass."""

from __future__ import annotations

import numpy as np
from jax.sharding import Mesh

from nope.evals import bootstrap
from nope.evals.forward import Progress, means
from nope.model import ModelConfig
from nope.records import Measure, Records
from nope.variables import Variables, last_multipliers


def run(
    config: ModelConfig,
    variables: Variables,
    blocks: np.ndarray,
    *,
    mesh: Mesh,
    batch_size: int,
    of_document: np.ndarray | None = None,
    progress: Progress = iter,
) -> Records:
    """Measures a model on blocks [windows, T + 1] int32 (arXiv 2404.12224).

    Measures: `loss` [position], nats per token, and its standard deviation over windows,
    `loss_std`. `entropy` [layer, head, position] is in nats. `multiplier` [layer, head], of the
    softmax scale, is the last token's. Positions count from 1: the number of tokens seen.
    Resamples of the documents (nope.evals.bootstrap) add `loss_resampled` and `entropy_resampled`
    [resample, position]; the latter is the mean over layers and heads. of_document: [windows], the
    document of each; None for no resamples.
    """
    length = blocks.shape[1] - 1
    found = means(
        config,
        variables,
        blocks,
        mesh=mesh,
        batch_size=batch_size,
        entropy=True,
        of_document=of_document,
        progress=progress,
    )
    multipliers_LN = last_multipliers(config, variables, length)
    assert found.entropy is not None
    return Records(
        attributes={
            'evaluation': 'positions',
            'length': length,
            'windows': found.windows,
            'n_layers': config.attention_layers,
            'n_heads': config.heads,
        },
        measures={
            'loss': Measure(found.loss, ('position',), 'nats'),
            'loss_std': Measure(found.loss_std, ('position',), 'nats'),
            'entropy': Measure(
                found.entropy.astype(np.float32), ('layer', 'head', 'position'), 'nats'
            ),
            'multiplier': Measure(multipliers_LN, ('layer', 'head'), 'softmax scale'),
            **bootstrap.measures(
                {'loss': found.resampled_loss, 'entropy': found.resampled_entropy}, 'position'
            ),
        },
        coordinates={'position': np.arange(1, length + 1)},
    )
