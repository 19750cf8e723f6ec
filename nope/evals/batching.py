"""Which sequences share a batch, and the few shapes that batches come in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

SMALLEST = 16  # tokens of the shortest padded prompt


def padded_length(tokens: int) -> int:
    """The length that so many tokens are padded to: an eighth more at most, and eight lengths
    between one power of two and the next, so that few programs are compiled."""
    step = max(2 ** max(tokens.bit_length() - 4, 0), SMALLEST)
    return -(-tokens // step) * step


def padded_rows(rows: int, most: int, parts: int) -> int:
    """Rows of a batch for that many sequences: a power of two times `parts`, or `most`."""
    wanted = -(-rows // parts)
    return min((1 << (wanted - 1).bit_length()) * parts, most)


def even_rows(rows: int, most: int, parts: int) -> int:
    """Rows of the batches for that many sequences, as few batches as can be, of one size: 4 for 8
    where 7 fit. One batch is filled up as `padded_rows` does."""
    if rows <= most:
        return padded_rows(rows, most, parts)
    each = -(-rows // -(-rows // most))
    return -(-each // parts) * parts


def most_rows(batch_tokens: int, length: int, parts: int) -> int:
    """Rows of `length` tokens in a batch of `batch_tokens` on each part of the batch."""
    return max(batch_tokens // length, 1) * parts


def left_padded(prompts: Sequence[np.ndarray], rows: int, length: int) -> np.ndarray:
    """int32 [rows, length], prompts at the right, rows without one full of the first."""
    tokens = np.zeros((rows, length), np.int32)
    for row in range(rows):
        prompt = prompts[row] if row < len(prompts) else prompts[0]
        tokens[row, length - len(prompt) :] = prompt
    return tokens


def right_padded(sequences: Sequence[np.ndarray], rows: int, length: int) -> np.ndarray:
    """int32 [rows, length], sequences at the left, rows without one full of zeros."""
    tokens = np.zeros((rows, length), np.int32)
    for row, sequence in enumerate(sequences):
        tokens[row, : len(sequence)] = sequence
    return tokens


def shared_prefix(first: np.ndarray, second: np.ndarray) -> int:
    """How many tokens the two begin with alike."""
    n = min(len(first), len(second))
    different = np.flatnonzero(first[:n] != second[:n])
    return int(different[0]) if len(different) else n


def by_prefix(sequences: Sequence[np.ndarray]) -> list[int]:
    """The order in which sequences that begin alike stand next to each other."""
    # Compared byte by byte, with the highest first, they stand as their numbers do.
    keys = [sequence.astype('>u4').tobytes() for sequence in sequences]
    return sorted(range(len(sequences)), key=keys.__getitem__)
