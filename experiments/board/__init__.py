"""Board of claims: what every figure decided, one row a claim, every size on one page.

`rows(summaries)` is the board, from summaries of figures in work folders or committed ones
(`summaries`); `page` and `picture` show it, `results` commits it. Nothing here knows a config, a
run or a model.
"""

from experiments.board.decisions import Decision, Missing, Row, rows, sizes_of
from experiments.board.summaries import Finding, Summary, of_results, of_work

__all__ = [
    'Decision',
    'Finding',
    'Missing',
    'Row',
    'Summary',
    'of_results',
    'of_work',
    'rows',
    'sizes_of',
]
