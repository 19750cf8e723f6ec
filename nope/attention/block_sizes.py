"""How many queries and keys a kernel works on at a time."""

from __future__ import annotations

# Not measured on a device: [512, 512] logits in float32 are 1 MiB, and the few arrays of that
# size that a step holds fit the 16 MiB of vector memory that a program is given by default, next
# to two buffers for every block of input.
_TPU_LARGEST = 512


def tpu(
    queries: int, keys: int, head_dim: int, *, lanes: int, largest: int | None
) -> tuple[int, int]:
    """(queries, keys) a block: multiples of `lanes`, powers of two of it at most `largest`."""
    largest = largest or (_TPU_LARGEST if head_dim <= 128 else _TPU_LARGEST // 2)
    return _fit(queries, lanes, largest), _fit(keys, lanes, largest)


def _fit(length: int, unit: int, largest: int) -> int:
    """The smallest power of two times `unit` that holds `length`, at most `largest`."""
    size = unit
    while size < length and size < largest:
        size *= 2
    return size
