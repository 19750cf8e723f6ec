"""LongBench's 16 English and code tasks: the paper's Table 3."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from experiments.figures.base import kind
from experiments.figures.claims.decide import Every, Rule
from experiments.figures.claims.headline import apart
from experiments.figures.claims.scores import BASE, ROPE, mean
from experiments.figures.claims.verdict import ABOVE, Bound
from experiments.figures.kinds.tables.scores import ScoreTable
from experiments.figures.read.tables import paper
from experiments.figures.read.tables.score_row import ScoreRow
from experiments.figures.read.tables.table import Column
from experiments.figures.roles import Roles, Shape, Undecided

HEADSCALE = 'headscale'
ROLES: Mapping[str, Shape] = {
    BASE: Shape.ONE,
    ROPE: Shape.ONE,
    HEADSCALE: Shape.BY_MULTIPLE,  # of the length of its search
}

# Task -> the paper's name of its column, by category.
TASKS = {
    'single-document QA': {'narrativeqa': 'NQA', 'qasper': 'Qsp', 'multifieldqa_en': 'MulF'},
    'multi-document QA': {'hotpotqa': 'HpQA', '2wikimqa': '2WQA', 'musique': 'Musq.'},
    'summaries': {'gov_report': 'GRpt', 'qmsum': 'QSum', 'multi_news': 'MulN'},
    'few-shot': {'trec': 'TREC', 'triviaqa': 'TrQA', 'samsum': 'SSum'},
    'synthetic': {'passage_count': 'PsgC', 'passage_retrieval_en': 'PsgR'},
    'code': {'lcc': 'Lcc', 'repobench-p': 'Re-P'},
}
COLUMNS = tuple(
    Column(task, label, category)
    for category, tasks in TASKS.items()
    for task, label in tasks.items()
)


def _shortest(roles: Roles[ScoreRow]) -> dict[str, np.ndarray]:
    searches = roles.by_multiple(HEADSCALE)
    if len(searches) < 2:
        raise Undecided(f'the role {HEADSCALE!r} has one search, to compare take two or more')
    shortest, *longer = searches
    return {
        f'HeadScale at {shortest:g} L - best longer, that at {multiple:g} L': apart(
            mean(searches[shortest]), mean(searches[multiple])
        )
        for multiple in longer
    }


RULES: tuple[Rule[Roles[ScoreRow]], ...] = (
    Rule(
        'longbench_nope',
        'Mean of NoPE less that of RoPE',
        Every(
            lambda roles: {'': apart(mean(roles[BASE]), mean(roles[ROPE]))},
            Bound(ABOVE, 0, 'points'),
            'NoPE - RoPE, mean of 16 tasks',
            'points',
        ),
        (BASE, ROPE),
    ),
    Rule(
        'longbench_shortest',
        'Mean with HeadScale searched at the shortest length less that with every longer search',
        Every(_shortest, Bound(ABOVE, 0, 'points'), '', 'points', name='shortest - longer'),
        (HEADSCALE,),
    ),
)


@kind('longbench_table')
class LongBenchTable(ScoreTable):
    EVALUATION = 'longbench'
    AXIS = 'dataset'
    PAPER = 'table3'
    COLUMNS = COLUMNS
    ABOUT = (
        "LongBench, scores from 0 to 100 and their unweighted mean: ours next to the paper's "
        f'Table 3 ({paper.SOURCE}). Columns: '
        f'{", ".join(f"{column.label} {column.key}" for column in COLUMNS)}.'
    )
    ROLES = ROLES
    RULES = RULES
