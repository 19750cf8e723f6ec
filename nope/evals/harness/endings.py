"""Lengths of the continuations that tasks ask to score, before a model reads them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from nope.data import Tokenizer

ADDED_BYTES = 64  # what a task's template may add to the texts of a document


class Ending(NamedTuple):
    """The longest continuation of a task (an answer, as a rule) and how many tokens it has."""

    task: str
    text: str
    tokens: int


def longest_endings(
    tasks: Mapping[str, Any], tokenizer: Tokenizer, *, over: int, limit: int | None = None
) -> list[Ending]:
    """The longest continuation of each task, if it has more than `over` tokens, in the order of the
    tasks.

    tasks: name -> lm_eval.api.task.Task, as `load` returns them. limit: first documents of each.
    No token is thought to be less than a byte, and no continuation longer than its document and
    `ADDED_BYTES`: what is shorter is not looked at, since building requests takes milliseconds a
    document.
    """
    found = []
    for name, task in tasks.items():
        documents = itertools.islice(task.eval_docs, limit)
        large = [i for i, row in enumerate(documents) if _size(row) + ADDED_BYTES > over]
        if not large:
            continue
        task.build_all_requests(samples=large)
        endings = []
        for request in task.instances:
            if request.request_type != 'loglikelihood':
                continue
            context, continuation = request.args
            # As the harness counts: the last spaces of a context belong to the continuation.
            kept = context.rstrip()
            if len(context) - len(kept) + len(continuation.encode()) > over:
                whole = len(tokenizer.encode(context + continuation))
                count = whole - len(tokenizer.encode(kept))
                endings.append(Ending(name, continuation, count))
        longest = max(endings, key=lambda ending: ending.tokens, default=None)
        if longest is not None and longest.tokens > over:
            found.append(longest)
    return found


def _size(value: Any) -> int:
    """Bytes of all texts in a document."""
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, Mapping):
        return sum(map(_size, value.values()))
    return sum(map(_size, value)) if isinstance(value, Sequence) else 0
