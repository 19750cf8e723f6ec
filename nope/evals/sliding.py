"""Perplexity in sliding windows over documents (arXiv 2404.12224, table 2).

A window holds W tokens of one document; the last S of them are scored, so each sees between
W - S and W - 1 tokens before it. The next window ends S tokens later. Every length scores the
tokens that the longest can or, as published, those of its own windows.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
from collections.abc import Iterator, Sequence

import jax
import numpy as np
from jax.sharding import Mesh

from nope import losses, sharding
from nope.data.documents import Documents
from nope.evals import batching, bootstrap
from nope.evals.forward import Progress
from nope.evals.samples import SampleLog
from nope.model import ModelConfig, apply
from nope.records import FLOOR, Measure, Records, unigram_entropy
from nope.variables import Variables

_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class WindowPlan:
    """Windows of `window` tokens: tokens ends[i] - window .. ends[i] - 1 of documents[i].

    documents, ends: int64 [windows], in the order of the documents.
    """

    window: int
    documents: np.ndarray
    ends: np.ndarray

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def documents_used(self) -> int:
        return len(np.unique(self.documents))

    @functools.cached_property
    def keys(self) -> list[str]:
        """Names of the windows in a `SampleLog`."""
        places = zip(self.documents, self.ends, strict=True)
        return [f'{self.window}/{document}/{end}' for document, end in places]


def plans(
    counts: np.ndarray,
    lengths: Sequence[int],
    *,
    stride: int,
    budget: int,
    per_document: int | None = None,
    aligned: bool = True,
) -> list[WindowPlan]:
    """The windows of every length. aligned: all end at the same tokens. Errors as `plan`."""
    first = max(lengths, default=0) if aligned else 0
    one = functools.partial(plan, counts, stride=stride, budget=budget, per_document=per_document)
    for window in lengths:  # the message for the one that is wrong
        one(window)
    return [one(window, first=max(first, window)) for window in lengths]


def plan(
    counts: np.ndarray,
    window: int,
    *,
    stride: int,
    budget: int,
    per_document: int | None = None,
    first: int | None = None,
) -> WindowPlan:
    """The windows of documents of counts[i] tokens each.

    They end at first (None: window), first + stride, ... below the document's length (never at
    it), so that a document of T tokens has ceil((T - first) / stride) of them, and none unless it
    is longer. Documents come in order until budget // stride windows are found, at most
    per_document of each; where there are fewer, all are taken.

    counts: int [documents]; the others are tokens too. ValueError for a stride of the window or
    more, which leaves the first scored token nothing to see. ValueError also for a budget below one
    stride, and if no document is longer than the window.
    """
    if not 1 <= stride < window:
        raise ValueError(f'stride {stride}: must be at least 1 and below the window, {window}')
    if budget < stride:
        raise ValueError(f'budget {budget}: scores less than one stride, {stride} tokens')
    if not len(counts):
        raise ValueError('there are no documents')
    first = window if first is None else first
    windows = np.clip(-((first - counts) // stride), 0, per_document)
    if not windows.any():
        raise ValueError(
            f'window {first}: no document is longer; the longest of {len(counts)} has '
            f'{int(np.max(counts))} tokens'
        )
    documents = np.repeat(np.arange(len(counts)), windows)
    before = np.cumsum(windows) - windows
    ends = first + stride * (np.arange(len(documents)) - before[documents])
    taken = slice(budget // stride)
    return WindowPlan(window, documents[taken], ends[taken])


def run(
    config: ModelConfig,
    variables: Variables,
    documents: Documents,
    lengths: Sequence[int],
    *,
    stride: int = 256,
    budget: int = 2**21,
    per_document: int | None = None,
    aligned: bool = True,
    mesh: Mesh,
    batch_tokens: int,
    log: SampleLog,
    progress: Progress = iter,
) -> Records:
    """Measures a model in windows of each of `lengths` tokens (see `plans`).

    Measures: `loss` [length], nats, the mean over windows, each the mean of its `stride` losses;
    `perplexity` = exp(loss); `windows` and `documents` [length], how many were used. Of every
    resample of the documents, where each length has enough (nope.evals.bootstrap), `loss_resampled`
    [resample, length].

    budget: at most so many tokens are scored at each length. per_document: windows of a document.
    batch_tokens: a batch has so many on each part of the mesh's batch axes.
    log: its windows are not measured again; the others are added batch by batch.
        It belongs to one model, its documents and its stride.
    ValueError as `plans`, before anything is computed. Lengths must not repeat or exceed the
    position encoding, and losses must be finite.
    """
    if not lengths or len(set(lengths)) != len(lengths):
        raise ValueError(f'lengths {tuple(lengths)}: must be one or more, each of them once')
    if config.longest is not None and max(lengths) > config.longest:
        raise ValueError(
            f'length {max(lengths)}: {config.describe_position()} positions end at {config.longest}'
        )
    found = plans(
        documents.lengths,
        lengths,
        stride=stride,
        budget=budget,
        per_document=per_document,
        aligned=aligned,
    )
    for p in found:
        _log.info(
            'window %d: %d tokens scored in %d windows of %d documents (%s)',
            *(p.window, stride * len(p), len(p), p.documents_used, documents.description),
        )
        if len(p) < budget // stride:
            _log.warning(
                'window %d: only %d of %d windows found in %s',
                *(p.window, len(p), budget // stride, documents.description),
            )
    batches = [
        (p, rows, size)
        for p in found
        for rows, size in _batches(p, stride, log, batch_tokens, mesh)
    ]
    pending: tuple[WindowPlan, np.ndarray, jax.Array] | None = None
    for p, rows, size in progress(batches):
        tokens = documents.windows(p.documents[rows], p.ends[rows], p.window)
        filled = np.concatenate([tokens, np.repeat(tokens[:1], size - len(rows), axis=0)])
        with sharding.use(mesh):
            sums_B = loss_sums(config, stride, variables, sharding.put(filled, sharding.rows(mesh)))
        if pending is not None:
            _finish(*pending, stride, log)
        pending = p, rows, sums_B
    if pending is not None:
        _finish(*pending, stride, log)
    return _records(found, documents, stride, budget, log)


@functools.partial(jax.jit, static_argnums=(0, 1))
def loss_sums(
    config: ModelConfig, stride: int, variables: Variables, tokens_BW: jax.Array
) -> jax.Array:
    """Sums of the losses of the last `stride` tokens of each window, [B] float32, nats.

    The model reads whole windows of n tokens: it may depend on that length, and a mesh that divides
    W divides the sequence. The last token predicts nothing. Logits are made for the scored tokens
    alone.
    """
    output = apply(config, variables, tokens_BW)
    hidden_BSD = output.hidden[:, -stride - 1 : -1]
    nll_BS = losses.token_loss(
        hidden_BSD, output.head, tokens_BW[:, -stride:], cap=config.logit_cap
    )
    return nll_BS.sum(axis=1)


def _batches(
    plan: WindowPlan, stride: int, log: SampleLog, batch_tokens: int, mesh: Mesh
) -> Iterator[tuple[np.ndarray, int]]:
    """Batches of windows that the log lacks, and their padded size. The mesh divides it, and it
    does not depend on the number of missing windows."""
    for key in plan.keys:
        if key in log and log[key]['tokens'] != stride:
            raise ValueError(
                f'stride {stride}: the log holds the window {key} with {log[key]["tokens"]} tokens '
                'scored'
            )
    missing = np.asarray([i for i, key in enumerate(plan.keys) if key not in log], np.int64)
    parts = sharding.batch_parts(mesh)
    every = -(-len(plan) // parts) * parts
    size = min(batching.most_rows(batch_tokens, plan.window, parts), every)
    for start in range(0, len(missing), size):
        yield missing[start : start + size], size


def _finish(
    plan: WindowPlan, rows: np.ndarray, sums_B: jax.Array, stride: int, log: SampleLog
) -> None:
    """Fetches a batch and puts its windows into the log."""
    means = np.asarray(sharding.fetch(sums_B), np.float64)[: len(rows)] / stride
    found = dict(zip([plan.keys[i] for i in rows], means.tolist(), strict=True))
    for key, loss in found.items():
        if not np.isfinite(loss):
            raise ValueError(f'the loss of the window {key} (length/document/end) is {loss}')
    log.append({key: {'loss': loss, 'tokens': stride} for key, loss in found.items()})


def _records(
    plans: Sequence[WindowPlan], documents: Documents, stride: int, budget: int, log: SampleLog
) -> Records:
    """Records computed from the log's rows alone."""
    by_window = [np.array([log[key]['loss'] for key in plan.keys]) for plan in plans]
    loss = np.asarray([np.mean(losses_W) for losses_W in by_window])
    # Resamples are of the documents that some length uses, the same ones at every length. There are
    # none where a length uses too few, or has none in a resample.
    used = np.unique(np.concatenate([plan.documents for plan in plans]))
    counts_DR, resampled = bootstrap.counts(len(used)), None
    if counts_DR is not None and min(p.documents_used for p in plans) >= bootstrap.LEAST:
        counts = [counts_DR[np.searchsorted(used, plan.documents)] for plan in plans]
        windows = [counts_WR.sum(axis=0) for counts_WR in counts]
        if all(windows_R.all() for windows_R in windows):
            sums = [loss_W @ counts_WR for loss_W, counts_WR in zip(by_window, counts, strict=True)]
            resampled = np.stack(sums, axis=1) / np.stack(windows, axis=1)
    shortest = min(plans, key=lambda p: p.window)
    # A prefix may stand in front of what is read, and is not scored.
    size = min(stride + len(documents.prefix), shortest.window)
    scored = documents.windows(shortest.documents, shortest.ends, size)[:, -stride:]
    axes = ('length',)
    return Records(
        attributes={
            'evaluation': 'perplexity',
            FLOOR: unigram_entropy(scored),
            'stride': stride,
            'scored': stride * min(map(len, plans)),
            'bos': bool(documents.prefix),
            'corpus': documents.name,
        },
        measures={
            'loss': Measure(loss, axes, 'nats'),
            'perplexity': Measure(np.exp(loss), axes, ''),
            'windows': Measure(np.array([len(plan) for plan in plans]), axes, ''),
            'documents': Measure(np.array([plan.documents_used for plan in plans]), axes, ''),
            **bootstrap.measures({'loss': resampled}, 'length'),
        },
        coordinates={'length': np.array([plan.window for plan in plans])},
    )
