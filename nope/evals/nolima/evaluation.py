"""NoLiMa as an evaluation: prompts in, greedy answers out, base score and effective length."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nope.data.chat import Chat
from nope.evals import answers
from nope.evals.forward import Progress
from nope.evals.generation import Generator
from nope.evals.nolima.plan import BUDGET, DEPTHS, NolimaPlan
from nope.evals.samples import SampleLog
from nope.records import Measure, Records

BASE_LENGTHS = (250, 500, 1000)
KEPT = 0.85  # of the base score, above which a length is effective


def run(
    generator: Generator,
    plan: NolimaPlan,
    *,
    log: SampleLog,
    bos: bool | None,
    chat: Chat | None = None,
    progress: Progress = iter,
) -> Records:
    """Lets the model answer every sample that `log` has not, and scores all of the plan's.

    Measures, in percent of right answers: `score` [length, pair], the mean over books and depths;
    `depths` [length, depth], that over books and pairs; `average` [length], over all; and `tokens`
    [length], the mean of prompt and budget without BOS.

    Attributes (arXiv 2502.05167, section 4.3): `base_score`, the mean over pairs of the best
    `score` at those `BASE_LENGTHS` that were asked, None without any.

    And `effective_length`, the longest length whose average is above 85 % of it, 0 for none. Errors
    as `nope.evals.answers.run`, of parts that `log` lacks, and `NolimaPlan`.
    """
    # The longest first: what does not fit is said before anything is answered.
    longest_first = sorted(plan.lengths, reverse=True)
    every = [(n, b) for n in longest_first for b in range(len(plan.books))]
    # Each part computes, so that no process is several parts ahead of another.
    missing = [part for part in every if not all(key in log for key in _keys(plan, *part))]
    for length, book in progress(missing):
        part = plan.part(length, book)  # one at a time: a part may have 100 MB
        answers.run(generator, plan.tokenizer, [part], log=log, bos=bos, chat=chat)
    right = 100 * _logged(plan, log, 'score')
    score, average = right.mean(axis=(1, 3)), right.mean(axis=(1, 2, 3))
    base = base_score(plan.lengths, score)
    axes = ('length', 'pair')
    return Records(
        attributes={
            'evaluation': 'nolima',
            'bos': bos,
            'limit': plan.limit,
            'books': [book.name for book in plan.books],
            'base_score': base,
            'effective_length': effective_length(plan.lengths, average, base),
        },
        measures={
            'score': Measure(score, axes, '%'),
            'depths': Measure(right.mean(axis=(1, 2)), ('length', 'depth'), '%'),
            'average': Measure(average, ('length',), '%'),
            'tokens': Measure(
                _logged(plan, log, 'tokens').mean(axis=(1, 2, 3)) + BUDGET, ('length',), ''
            ),
        },
        coordinates={
            'length': np.array(plan.lengths),
            'pair': np.array([pair.name for pair in plan.pairs]),
            'depth': DEPTHS,
        },
    )


def base_score(lengths: Sequence[int], score: np.ndarray) -> float | None:
    """Mean over pairs of the best score [length, pair] at those lengths that the base is of."""
    short = [i for i, length in enumerate(lengths) if length in BASE_LENGTHS]
    return float(score[short].max(axis=0).mean()) if short else None


def effective_length(lengths: Sequence[int], average: np.ndarray, base: float | None) -> int:
    """The longest length whose average is above 85 % of the base score; 0 for none."""
    if base is None:
        return 0
    passed = [n for n, value in zip(lengths, average, strict=True) if value > KEPT * base]
    return max(passed, default=0)


def _logged(plan: NolimaPlan, log: SampleLog, field: str) -> np.ndarray:
    """A field of all samples, [length, book, pair, depth]."""
    books = range(len(plan.books))
    rows = [log[k][field] for n in plan.lengths for book in books for k in _keys(plan, n, book)]
    return np.array(rows).reshape(len(plan.lengths), len(books), len(plan.pairs), len(DEPTHS))


def _keys(plan: NolimaPlan, length: int, book: int) -> list[str]:
    """Of the samples of a part, in the log."""
    count = len(plan.pairs) * len(DEPTHS)
    return [answers.key(plan.task(book), length, index) for index in range(count)]
