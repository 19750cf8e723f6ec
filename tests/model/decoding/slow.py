"""Beam search with lists and sorting alone, by the rules in `nope.model.decoding.beams`."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from nope.model.decoding import BeamSearch

Tokens = tuple[int, ...]
LogProbs = Callable[[Tokens], np.ndarray]  # [V] float64, of the token after these new ones


def slowly(
    search: BeamSearch, log_probs: LogProbs, new_tokens: int, stop_ids: Collection[int], least: int
) -> tuple[list[int], float]:
    """One row: the best continuation and its score, from lists and sorting alone."""
    k, penalty = search.width, search.length_penalty
    running: list[tuple[float, Tokens]] = [(0.0, ())]
    finished: list[tuple[float, Tokens]] = []
    for made in range(1, new_tokens + 1):
        following = [
            (score + log_prob, (*tokens, token))
            for score, tokens in running
            for token, log_prob in enumerate(log_probs(tokens))
            if made > least or token not in stop_ids
        ]
        following.sort(reverse=True)
        ended = [made == new_tokens or tokens[-1] in stop_ids for _, tokens in following]
        if search.early_stopping is not True or len(finished) < k:
            finished += [
                (score / made**penalty, tokens)
                for (score, tokens), end in zip(following[:k], ended, strict=False)
                if end
            ]
            finished = sorted(finished, reverse=True)[:k]
        running = [beam for beam, end in zip(following, ended, strict=True) if not end][:k]
        if len(finished) == k:
            at = new_tokens if search.early_stopping == 'never' and penalty > 0 else made
            hopeless = not running or running[0][0] / at**penalty <= finished[-1][0]
            if search.early_stopping is True or hopeless:
                break
    score, tokens = finished[0]
    return [token for token in tokens if token not in stop_ids], score
