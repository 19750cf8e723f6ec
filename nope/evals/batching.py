"""Batching of sequences: padded shapes, few programs, sequences with a common prefix together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

SMALLEST = 16  # tokens of the shortest padded prompt


def padded_length(tokens: int) -> int:
    """Padded length of that many tokens, at most an eighth longer. There are eight lengths between
    a power of two and the next, so that few programs are compiled."""
    step = max(2 ** max(tokens.bit_length() - 4, 0), SMALLEST)
    return -(-tokens // step) * step


def padded_rows(rows: int, most: int, parts: int) -> int:
    """Rows of a batch for that many sequences: a power of two times `parts`, or `most`."""
    wanted = -(-rows // parts)
    return min((1 << (wanted - 1).bit_length()) * parts, most)


def even_rows(rows: int, most: int, parts: int) -> int:
    """Rows per batch for that many sequences, in few batches of one size: 4 for 8 if 7 fit. A
    single batch is padded as by `padded_rows`."""
    if rows <= most:
        return padded_rows(rows, most, parts)
    each = -(-rows // -(-rows // most))
    return -(-each // parts) * parts


def most_rows(batch_tokens: int, length: int, parts: int) -> int:
    """Rows of `length` tokens in a batch of `batch_tokens` on each part of the batch."""
    return max(batch_tokens // length, 1) * parts


def left_padded(prompts: Sequence[np.ndarray], rows: int, length: int) -> np.ndarray:
    """Prompts padded on the left, int32 [rows, length]; surplus rows repeat the first prompt."""
    tokens = np.zeros((rows, length), np.int32)
    for row in range(rows):
        prompt = prompts[row] if row < len(prompts) else prompts[0]
        tokens[row, length - len(prompt) :] = prompt
    return tokens


def right_padded(sequences: Sequence[np.ndarray], rows: int, length: int) -> np.ndarray:
    """Sequences padded on the right with zeros, int32 [rows, length]; surplus rows are zero."""
    tokens = np.zeros((rows, length), np.int32)
    for row, sequence in enumerate(sequences):
        tokens[row, : len(sequence)] = sequence
    return tokens


def shared_prefix(first: np.ndarray, second: np.ndarray) -> int:
    """Length of the common prefix of two sequences, in tokens."""
    n = min(len(first), len(second))
    different = np.flatnonzero(first[:n] != second[:n])
    return int(different[0]) if len(different) else n


def by_prefix(sequences: Sequence[np.ndarray]) -> list[int]:
    """Order of the sequences in which those with a common prefix are adjacent."""
    # Compared byte by byte, with the highest first, they stand as their numbers do.
    keys = [sequence.astype('>u4').tobytes() for sequence in sequences]
    return sorted(range(len(sequences)), key=keys.__getitem__)


def check_ids(ids: np.ndarray, vocab_size: int) -> None:
    """ValueError for ids that the vocabulary has not: an embedding of them would be NaN, or that
    of another token."""
    if ids.size and not 0 <= np.min(ids) <= np.max(ids) < vocab_size:
        raise ValueError(
            f'there are ids from {np.min(ids)} to {np.max(ids)}; '
            f'those of the model are 0 to {vocab_size - 1}'
        )
