"""Passkey retrieval: a 5-digit key hidden in filler, by prompt length and depth (2404.12224)."""

from nope.evals.passkey.keys import TESTS
from nope.evals.passkey.retrieval import PasskeyPlan, answer_ids, piece_counts, plan, run, shortest

__all__ = ['TESTS', 'PasskeyPlan', 'answer_ids', 'piece_counts', 'plan', 'run', 'shortest']
