"""Numbers of a figure of encodings on tasks: rows for its CSV, and tables in Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.figures.look.web import table_of
from experiments.figures.read.encoding_tasks import released
from experiments.figures.read.encoding_tasks.ranks import Ranks
from experiments.figures.read.encoding_tasks.scores import Score


def rows(found: Mapping[str, Sequence[Score]], ranked: Ranks) -> list[dict[str, Any]]:
    """One row a record and length, each with the accuracies over all lengths and its ranks."""
    return [
        {
            'task': task,
            'category': released.category(task),
            'label': score.label,
            'seed': seed,
            'length': int(length),
            'longest': score.longest,
            'accuracy': float(score.accuracy[s, n]),
            'samples': int(score.samples[n]),
            'accuracy_inside': float(score.inside[s]),
            'accuracy_beyond': float(score.beyond[s]),
            'reciprocal_rank': float(ranked.first[s, q, e]),
            'reciprocal_rank_shared': float(ranked.shared[s, q, e]),
            'released': score.released.get(int(length)),
            'released_beyond': score.released_beyond,
            'released_longest': released.longest(task),
            'record': score.names[s],
        }
        for q, (task, some) in enumerate(found.items())
        for e, score in enumerate(some)
        for s, seed in enumerate(score.seeds)
        for n, length in enumerate(score.lengths)
    ]


def markdown(found: Mapping[str, Sequence[Score]], ranked: Ranks) -> str:
    """Mean reciprocal ranks, then accuracies beyond L, each with the released ones behind it."""
    means, accuracies = [], []
    for name in (released.ALL, *released.CATEGORIES):
        some = ranked.of(name)
        if some is not None:
            cells = [
                _cell(f'{x:.2f}', f'{released.MRR[name][p]:.2f}' if ranked.as_released else None)
                for x, p in zip(some.mean, ranked.paper, strict=True)
            ]
            means.append([f'{name} ({", ".join(some.tasks)})', *cells])
    for task, scores in found.items():
        cells = [_cell(' / '.join(f'{x:.3f}' for x in s.beyond), _theirs(s)) for s in scores]
        accuracies.append([f'{task}, L = {scores[0].longest}', *cells])
    bracket = ' (released, of 17 tasks, in brackets)' if ranked.as_released else ''
    head = ['', *ranked.labels]
    return (
        f'Mean reciprocal rank{bracket}:\n\n{table_of(head, means)}\n'
        'Accuracy beyond L, each seed (released mean in brackets):\n\n'
        f'{table_of(head, accuracies)}'
    )


def _theirs(score: Score) -> str | None:
    """The released mean, with its L where that is another one."""
    if score.released_beyond is None:
        return None
    longest = released.longest(score.task)
    where = '' if longest == score.longest else f', L = {longest}'
    return f'{score.released_beyond:.2f}{where}'


def _cell(ours: str, theirs: str | None) -> str:
    return ours if theirs is None else f'{ours} ({theirs})'
