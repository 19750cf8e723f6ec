"""Board of claims: what every figure decided, every size on one page.

`standings(summaries)` is the board, from summaries of figures in work folders or committed ones
(`summaries`); `page` and `trend` show it, `results` commits it.
"""

from experiments.board.decisions import Decision, Standing, sizes_of, standings
from experiments.board.summaries import Finding, Summary, of_results, of_work

__all__ = [
    'Decision',
    'Finding',
    'Standing',
    'Summary',
    'of_results',
    'of_work',
    'sizes_of',
    'standings',
]
