"""Large counts in few characters."""

from __future__ import annotations


def amount(count: int) -> str:
    """4915200 -> '4.9M', 104857600000 -> '105B'."""
    for size, suffix in ((10**9, 'B'), (10**6, 'M'), (10**3, 'k')):
        if count >= size:
            value = count / size
            return f'{value:.0f}{suffix}' if value >= 100 else f'{value:.2g}{suffix}'
    return str(count)
