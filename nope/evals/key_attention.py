"""Attention of the query that must find a passkey, by layer and head: where its weight lies."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from nope import sharding
from nope.data import Tokenizer
from nope.evals import attention_rows
from nope.evals.attention_rows import BUDGET, Model
from nope.evals.forward import Progress
from nope.evals.passkey import PasskeyPlan
from nope.evals.passkey.retrieval import PasskeyPrompt
from nope.model import ModelConfig, cache
from nope.model.decoding import read, unstack
from nope.records import Measure, Records
from nope.runtime.errors import OVERFLOWS
from nope.variables import Variables, last_multipliers

AXES = ('length', 'layer', 'head')
# A smaller weight counts as this one, float32's least normal number: e^-87.
LEAST = float(np.finfo(np.float32).tiny)
UNITS = {'range': 'nats', 'margin': 'nats', 'margin_spread': 'nats', 'values': 'ratio'}


class Look(NamedTuple):
    """Weights of one query by layer and head, [L, N]: summed over the key, the first token and the
    latest, and the largest; the range of the logits, ln(largest / smallest), the margin of the
    key's first token, ln(largest on it / largest elsewhere), and the mean norm of the key's values
    over that of all others."""

    key: np.ndarray
    first: np.ndarray
    latest: np.ndarray
    largest: np.ndarray
    range: np.ndarray
    margin: np.ndarray
    values: np.ndarray


class Asked(NamedTuple):
    """A prompt read up to the query that must find the key.

    length, depth: nominal. tokens: int32 [T], the last of which predicts the first token with a
    digit. key_K: positions of the key's tokens, wherever the prompt states it; starts_S: of the
    first of them.
    """

    length: int
    depth: float
    tokens: np.ndarray
    key_K: np.ndarray
    starts_S: np.ndarray


def asked(plan: PasskeyPlan) -> list[Asked]:
    """Every prompt of a plan. ValueError where the tokenizer cuts a key in a prompt into other
    tokens than in its answer."""
    found = []
    for question in plan.questions:
        prompt = plan.prompt(question)
        lead, key_K, starts_S = _key(plan.tokenizer, prompt)
        if not key_K.size:
            raise ValueError(
                f'the prompt {question.name} does not hold the tokens of its key, '
                f'{prompt.answer[lead:].tolist()}: this tokenizer cuts the key into others there'
            )
        tokens = np.concatenate([prompt.ids, prompt.answer[:lead]])
        found.append(Asked(question.length, question.depth, tokens, key_K, starts_S))
    return found


def _key(tokenizer: Tokenizer, prompt: PasskeyPrompt) -> tuple[int, np.ndarray, np.ndarray]:
    """The answer's tokens before the first with a digit, and positions in the prompt of the others
    and of the first of them."""
    digits = [any(map(str.isdigit, tokenizer.decode([i]))) for i in prompt.answer.tolist()]
    lead = digits.index(True)
    key = prompt.answer[lead:]
    windows = np.lib.stride_tricks.sliding_window_view(prompt.ids, len(key))
    starts = np.flatnonzero((windows == key).all(axis=1))
    return lead, (starts[:, None] + np.arange(len(key))).reshape(-1), starts


def run(
    config: ModelConfig,
    variables: Variables,
    prompts: Sequence[Asked],
    *,
    span: int,
    mesh: Mesh,
    batch_tokens: int,
    progress: Progress = iter,
) -> Records:
    """Measures over the prompts of each nominal length, by [length, layer, head].

    key, first, latest: means of the weight on the key's tokens, on the first token, and on the
    latest `span` tokens, each without those before it; all others have the rest. largest: mean of
    the largest weight of one token. range: the largest difference of two logits of a query, in
    nats, over the prompts; at most 87. margin: mean of the largest logit on a first token of the
    key less the largest elsewhere, in nats; margin_spread: its standard deviation over prompts;
    margin_by_depth: share of its variance between depths; chance alone gives (depths - 1) /
    (prompts - 1). values: mean over prompts of the mean norm of the key's values over that of all
    others. multiplier: of the query's logits. keys [length]: the fewest tokens that a query sees. A
    law that follows the length takes the tokens read.

    batch_tokens: read at once on each part of the mesh. ValueError as
    `attention_rows.check_fits`, and for weights that are NaN.
    """
    sequences = [prompt.tokens for prompt in prompts]
    attention_rows.check_fits(config, sequences)
    lengths = sorted({prompt.length for prompt in prompts})
    found: dict[int, Look] = {}  # prompts are read in the order of their lengths
    # A token's keys and values are held beside its weights.
    held = BUDGET // (2 * config.head_dim)
    budget = min(held, batch_tokens * config.attention_layers * config.heads)
    how: dict[str, Any] = {'mesh': mesh, 'queries': 1, 'budget': budget, 'progress': progress}
    with sharding.use(mesh):
        for rows in attention_rows.over([Model(config, variables)], sequences, **how):
            norms = value_norms(config, variables, rows.tokens_BT)
            weights_LBNT, norms_LBNT = map(sharding.fetch, (rows.weights[0][:, :, :, 0], norms))
            for b, i in enumerate(rows.members):
                weights_LNT, norms_LNT = weights_LBNT[:, b], norms_LBNT[:, b]
                places = prompts[i].key_K, prompts[i].starts_S
                found[i] = look_at(weights_LNT.astype(np.float64), norms_LNT, *places, span)
    if any(np.isnan(values).any() for look in found.values() for values in look):
        raise ValueError(f'attention weights are NaN: {OVERFLOWS}')
    measures: dict[str, list[np.ndarray]] = {}
    for length in lengths:
        of = [i for i, prompt in enumerate(prompts) if prompt.length == length]
        looks = Look(*(np.stack([found[i][k] for i in of]) for k in range(len(Look._fields))))
        depths_P = np.array([prompts[i].depth for i in of])
        own = {name: getattr(looks, name).mean(axis=0) for name in Look._fields}
        own |= {'range': looks.range.max(axis=0), 'margin_spread': looks.margin.std(axis=0)}
        own['margin_by_depth'] = between(looks.margin, depths_P)
        for name, values_LN in own.items():
            measures.setdefault(name, []).append(values_LN)
    keys = np.array([min(len(p.tokens) for p in prompts if p.length == n) for n in lengths])
    multipliers = np.stack([last_multipliers(config, variables, int(n)) for n in keys])
    return Records(
        attributes={
            'evaluation': 'key_attention',
            'span': span,
            'n_layers': config.attention_layers,
            'n_heads': config.heads,
        },
        measures={
            **{
                name: Measure(np.stack(values), AXES, UNITS.get(name, 'share'))
                for name, values in measures.items()
            },
            'multiplier': Measure(multipliers, AXES, 'softmax scale'),
            'keys': Measure(keys, ('length',), 'tokens'),
        },
        coordinates={'length': np.array(lengths)},
    )


@functools.partial(jax.jit, static_argnums=0)
def value_norms(config: ModelConfig, variables: Variables, tokens_BT: jax.Array) -> jax.Array:
    """Euclidean norms of the values that each head reads, float32 [L, B, N, T]."""
    B, T = tokens_BT.shape
    none = cache.empty(config, jnp.full(B, T, jnp.float32), T)
    filled = read(config, unstack(config, variables), tokens_BT, none)[1]
    norms_LBNT = []
    for i in config.attending:
        layer = filled.layers[config.source_of(i)]
        assert layer is not None  # a source has keys of its own
        norms_BTK = jnp.linalg.norm(layer.values_BSKH.astype(jnp.float32), axis=-1)
        K = norms_BTK.shape[2]
        norms_LBNT.append(jnp.repeat(norms_BTK, config.heads // K, axis=2).swapaxes(1, 2))
    return jnp.stack(norms_LBNT)


def look_at(
    weights_LNT: np.ndarray,
    norms_LNT: np.ndarray,
    key_K: np.ndarray,
    starts_S: np.ndarray,
    span: int,
) -> Look:
    """Attention weight of a last query on the key, the first and latest tokens, its margin, and
    the key's values."""
    T = weights_LNT.shape[-1]
    largest, smallest = weights_LNT.max(axis=-1), weights_LNT.min(axis=-1)
    parts = np.full(T, -1)
    parts[max(T - span, 0) :] = 2
    parts[0] = 1
    parts[key_K] = 0
    key, first, latest = (weights_LNT[..., parts == part].sum(axis=-1) for part in range(3))
    on_first, others = weights_LNT[..., starts_S], np.delete(weights_LNT, starts_S, axis=-1)
    top, next_top = (np.maximum(some.max(axis=-1), LEAST) for some in (on_first, others))
    margin = np.log(top / next_top)
    spread = np.log(largest / np.maximum(smallest, LEAST))
    on_key, elsewhere = (norms_LNT[..., some].mean(axis=-1) for some in (parts == 0, parts != 0))
    return Look(key, first, latest, largest, spread, margin, on_key / elsewhere)


def between(values_PLN: np.ndarray, depths_P: np.ndarray) -> np.ndarray:
    """Share [L, N] of the variance over prompts that lies between depths; 0 without any."""
    means_PLN = np.empty_like(values_PLN)
    for depth in np.unique(depths_P):
        means_PLN[depths_P == depth] = values_PLN[depths_P == depth].mean(axis=0)
    whole_LN = values_PLN.var(axis=0)
    return np.divide(
        means_PLN.var(axis=0), whole_LN, out=np.zeros_like(whole_LN), where=whole_LN > 0
    )
