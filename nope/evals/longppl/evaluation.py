"""LongPPL of a model over the documents of a corpus."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from nope.data.documents import Documents
from nope.data.prefix import begun, encode_with_bos, prefix_of
from nope.data.spans import encode_spans
from nope.data.tokenizers import Tokenizer
from nope.evals.forward import Progress
from nope.evals.generation import Generator
from nope.evals.longppl import key_tokens
from nope.evals.longppl.key_tokens import Rule
from nope.evals.samples import SampleLog
from nope.records import Measure, Records

_log = logging.getLogger(__name__)


class Evaluator(NamedTuple):
    """The model that says which tokens are key, and its tokenizer. description: for records."""

    generator: Generator
    tokenizer: Tokenizer
    description: str


def check(counts: np.ndarray, lengths: Sequence[int], rule: Rule, *, budget: int) -> None:
    """ValueError where a length has nothing to compare or no document of its own.

    counts: int [documents], tokens of each. lengths, budget: as `run` takes them.
    """
    if not lengths or len(set(lengths)) != len(lengths):
        raise ValueError(f'lengths {tuple(lengths)}: must be one or more, each of them once')
    for length in lengths:
        if length <= rule.short:
            raise ValueError(
                f'length {length}: it must be above that of the short context, {rule.short}'
            )
        if budget < length:
            raise ValueError(f'budget {budget}: less than one text of {length} tokens')
        if not np.any(counts >= length):
            raise ValueError(
                f'length {length}: no document has so many tokens; the longest of {len(counts)} '
                f'has {int(np.max(counts, initial=0))}'
            )


def run(
    generator: Generator,
    tokenizer: Tokenizer,
    documents: Documents,
    lengths: Sequence[int],
    rule: Rule,
    *,
    budget: int,
    log: SampleLog,
    evaluator: Evaluator | None = None,
    batch_size: int = 8,
    progress: Progress = iter,
) -> Records:
    """Measures a model on the first `length` tokens of documents, for each of `lengths`.

    Documents of at least so many tokens come in order, until budget // length of them are found.
    Measures [length]: `loss` and `perplexity` of all tokens but the first; `key_loss`, the mean
    over the key tokens of all documents, and `longppl` = exp(key_loss). Both are NaN without key
    tokens. `key_tokens`, `tokens` (with a loss) and `documents` are counts. Losses are in nats,
    after all tokens before.

    evaluator: says which tokens are key; None for the model itself. With another tokenizer, both
    read the text of the document's first tokens, cut to `length` tokens for the model, and the
    evaluator begins as its own tokenizer's files say. rule.short and rule.stride count the
    evaluator's tokens. log: texts that are in it are not measured again; the others are added
    batch_size at a time. It belongs to one model, its documents, its evaluator and its rule. Raises
    ValueError as `check`, before anything is computed, and for a loss that is not finite.
    """
    check(documents.lengths, lengths, rule, budget=budget)
    taken = {n: np.flatnonzero(documents.lengths >= n)[: budget // n] for n in lengths}
    waiting = [(n, d) for n in lengths for d in taken[n].tolist() if _key(n, d) not in log]
    model = Evaluator(generator, tokenizer, '')
    starts = range(0, len(waiting), batch_size)
    for batch in progress([waiting[start : start + batch_size] for start in starts]):
        texts = [
            _text(documents, document, length, tokenizer, evaluator) for length, document in batch
        ]
        found = _measure(model, evaluator or model, texts, rule, bos=bool(documents.prefix))
        rows = {_key(*place): row for place, row in zip(batch, found, strict=True)}
        for key, row in rows.items():
            if not np.isfinite(row['loss']):
                raise ValueError(f'the loss of the text {key} (length/document) is {row["loss"]}')
        log.append(rows)
    described = 'itself' if evaluator is None else evaluator.description
    return _records(taken, log, rule, documents, budget, described)


class _JudgedText(NamedTuple):
    """Ids of the model and of the evaluator, int32, and their spans [ids, 2] int64, empty for a
    prefix. The spans are None if both read the same tokens."""

    tokens: np.ndarray
    judged: np.ndarray
    spans: tuple[np.ndarray, np.ndarray] | None


def _text(
    documents: Documents,
    document: int,
    length: int,
    tokenizer: Tokenizer,
    evaluator: Evaluator | None,
) -> _JudgedText:
    tokens = documents.windows(np.asarray([document]), np.asarray([length]), length)[0]
    if evaluator is None or evaluator.tokenizer.fingerprint == tokenizer.fingerprint:
        return _JudgedText(tokens, tokens, None)
    bos = bool(documents.prefix)
    text = tokenizer.decode(tokens[len(documents.prefix) :])
    ids, spans = [], []
    for each, begins in ((tokenizer, bos), (evaluator.tokenizer, None)):
        before, (own, places) = encode_with_bos(each, '', begins), encode_spans(each, text)
        ids.append(np.concatenate([before, own]))
        spans.append(np.concatenate([np.zeros((len(before), 2), np.int64), places]))
    return _JudgedText(ids[0][:length], ids[1], (spans[0][:length], spans[1]))


def _measure(
    model: Evaluator, judge: Evaluator, texts: Sequence[_JudgedText], rule: Rule, *, bos: bool
) -> list[dict[str, Any]]:
    """Row of every text: tokens, loss, key_tokens, key_loss (0 where there are none)."""
    losses = _full(model.generator, [text.tokens for text in texts])
    same = judge.generator is model.generator
    judged = losses if same else _full(judge.generator, [text.judged for text in texts])
    prefix = prefix_of(judge.tokenizer, bos if texts[0].spans is None else None)
    after_short = _short(judge.generator, [text.judged for text in texts], rule, prefix)
    rows = []
    for text, loss_T, full_T, short_T in zip(texts, losses, judged, after_short, strict=True):
        key_T = key_tokens.select(full_T, short_T, rule)
        if text.spans is not None:
            spans, judged_spans = text.spans
            key_T = key_tokens.carried_over(spans, key_tokens.merged(judged_spans[key_T]))
        key_T[0] = False
        key = loss_T[key_T]
        rows.append(
            {
                'tokens': len(loss_T) - 1,
                'loss': float(np.mean(loss_T[1:])),
                'key_tokens': len(key),
                'key_loss': float(np.mean(key)) if len(key) else 0.0,
            }
        )
    return rows


def _full(generator: Generator, texts: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Losses of every token after all before it, float64 [T] nats; NaN for the first."""
    scores = generator.score([tokens[:1] for tokens in texts], [tokens[1:] for tokens in texts])
    return [np.concatenate([[np.nan], -score.log_probs.astype(np.float64)]) for score in scores]


def _short(
    generator: Generator, texts: Sequence[np.ndarray], rule: Rule, prefix: Sequence[int]
) -> list[np.ndarray]:
    """Losses of every token after a short context, which begins with the prefix too, float64 [T]
    nats; NaN for the first ones."""
    places = [
        (index, *window)
        for index, tokens in enumerate(texts)
        for window in key_tokens.short_windows(len(tokens), rule).tolist()
    ]
    scores = generator.score(
        [begun(texts[index][None, begin:first], prefix)[0] for index, begin, first, _ in places],
        [texts[index][first:end] for index, _, first, end in places],
    )
    losses = [np.full(len(tokens), np.nan) for tokens in texts]
    for (index, _, first, end), score in zip(places, scores, strict=True):
        losses[index][first:end] = -score.log_probs
    return losses


def _key(length: int, document: int) -> str:
    """Name of a text in a `SampleLog`."""
    return f'{length}/{document}'


def _records(
    taken: dict[int, np.ndarray],
    log: SampleLog,
    rule: Rule,
    documents: Documents,
    budget: int,
    evaluator: str,
) -> Records:
    """Records computed from the log's rows alone."""
    rows = [[log[_key(n, d)] for d in found.tolist()] for n, found in taken.items()]
    tokens, loss = _pooled(rows, 'tokens', 'loss')
    keys, key_loss = _pooled(rows, 'key_tokens', 'key_loss')
    for length, count in zip(taken, keys, strict=True):
        _log.info('length %d: %d key tokens in %s', length, count, documents.description)
        if not count:
            _log.warning('length %d: no key token, LongPPL is NaN', length)
    axes = ('length',)
    return Records(
        attributes={
            'evaluation': 'longppl',
            'short': rule.short,
            'stride': rule.stride,
            'gain': rule.gain,
            'ceiling': rule.ceiling,
            'scored': budget,
            'evaluator': evaluator,
            'bos': bool(documents.prefix),
            'corpus': documents.name,
        },
        measures={
            'loss': Measure(loss, axes, 'nats'),
            'perplexity': Measure(np.exp(loss), axes, ''),
            'key_loss': Measure(key_loss, axes, 'nats'),
            'longppl': Measure(np.exp(key_loss), axes, ''),
            'key_tokens': Measure(keys, axes, ''),
            'tokens': Measure(tokens, axes, ''),
            'documents': Measure(np.array([len(found) for found in rows]), axes, ''),
        },
        coordinates={'length': np.array(list(taken))},
    )


def _pooled(
    rows: Sequence[Sequence[dict[str, Any]]], count: str, loss: str
) -> tuple[np.ndarray, np.ndarray]:
    """Tokens of all texts of a length, int64, and their mean loss, NaN where there are none."""
    counts = np.asarray([sum(row[count] for row in found) for found in rows], np.int64)
    sums = np.asarray([sum(row[count] * row[loss] for row in found) for found in rows])
    means = np.full(len(rows), np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return counts, means
