"""LongPPL (arXiv 2410.23771): perplexity over the tokens that a long context makes likely."""

from nope.evals.longppl.evaluation import Evaluator, check, run
from nope.evals.longppl.key_tokens import Rule

__all__ = ['Evaluator', 'Rule', 'check', 'run']
