"""LongBench's 16 English and code tasks: the paper's Table 3."""

from __future__ import annotations

from experiments.figures.base import kind
from experiments.figures.claims import longbench as claims
from experiments.figures.kinds.tables.scores import ScoreTable
from experiments.figures.read.tables import paper
from experiments.figures.read.tables.table import Column

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
    ROLES = claims.ROLES
    RULES = claims.RULES
