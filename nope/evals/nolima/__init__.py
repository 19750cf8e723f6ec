"""NoLiMa (arXiv 2502.05167): needles that share no words with the question about them.

Protocol and placement follow adobe-research/NoLiMa at 7532e4eebf095c5540dc256900a63968da58a9d0.
Its needles and books, and the prompt, which the needle set holds, are under a non-commercial
licence: they are files of the user.
"""

from nope.evals.nolima.evaluation import run
from nope.evals.nolima.plan import BUDGET, SYSTEM, NolimaPlan

__all__ = ['BUDGET', 'SYSTEM', 'NolimaPlan', 'run']
