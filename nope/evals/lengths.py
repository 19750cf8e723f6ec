"""Loss against window length, on the same tokens at every length."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jax.sharding import Mesh

from nope.data.prefix import begun
from nope.evals import bootstrap
from nope.evals.forward import Progress, means
from nope.model import ModelConfig
from nope.records import Measure, Records
from nope.variables import Variables, last_multipliers


def run(
    config: ModelConfig,
    variables: Sequence[Variables],
    blocks: np.ndarray,
    lengths: Sequence[int],
    *,
    tail: int,
    mesh: Mesh,
    batch_size: int,
    of_document: np.ndarray | None = None,
    prefix: Sequence[int] = (),
    progress: Progress = iter,
) -> Records:
    """Measures variables[i] on the last lengths[i] tokens of blocks [windows, T + 1].

    All windows end at the same tokens. `loss_tail` [length], the mean over the last `tail` of them
    (all of a shorter window), therefore compares like with like. `loss_window` [length] is the mean
    over the whole window, `multiplier_mean` [length] the mean multiplier of the last token. Both
    losses of every resample of the documents (nope.evals.bootstrap) are `loss_window_resampled` and
    `loss_tail_resampled` [resample, length]. The batch grows as windows get shorter: about
    batch_size * T tokens at a time. of_document: [windows], the document of each; None for no
    resamples. prefix: tokens in place of the first ones of every window, as BOS. ValueError for a
    length outside 1 .. T and for a `tail` below 1.
    """
    longest = blocks.shape[1] - 1
    for length in lengths:
        if not 1 <= length <= longest:
            raise ValueError(f'a length is {length}; it must be in 1 .. {longest}, of the blocks')
    if tail < 1:
        raise ValueError(f'tail is {tail}; it must be at least 1')
    window, ends, multipliers = [], [], []
    windows_R, ends_R = [], []
    for length, model in progress(list(zip(lengths, variables, strict=True))):
        found = means(
            config,
            model,
            np.ascontiguousarray(begun(blocks[:, -(length + 1) :], prefix)),
            mesh=mesh,
            batch_size=max(batch_size * longest // length, 1),
            entropy=False,
            of_document=of_document,
        )
        window.append(found.loss.mean())
        ends.append(found.loss[-tail:].mean())
        if found.resampled_loss is not None:
            windows_R.append(found.resampled_loss.mean(axis=1))
            ends_R.append(found.resampled_loss[:, -tail:].mean(axis=1))
        multipliers.append(float(last_multipliers(config, model, length).mean()))
    axes = ('length',)
    resampled = {
        name: np.stack(by_length, axis=1) if by_length else None
        for name, by_length in (('loss_window', windows_R), ('loss_tail', ends_R))
    }
    return Records(
        attributes={
            'evaluation': 'lengths',
            'length': longest,
            'windows': len(blocks),
            'n_layers': config.attention_layers,
            'n_heads': config.heads,
        },
        measures={
            'loss_window': Measure(np.array(window), axes, 'nats'),
            'loss_tail': Measure(np.array(ends), axes, 'nats'),
            'multiplier_mean': Measure(np.array(multipliers), axes, 'softmax scale'),
            **bootstrap.measures(resampled, 'length'),
        },
        coordinates={'length': np.array(lengths)},
    )
