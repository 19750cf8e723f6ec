"""Order of names that end in a number: by the number's value, 'seed2' before 'seed10'."""

from __future__ import annotations


def order(name: str) -> tuple[str, int]:
    """Key by which names are put in order, as `sorted` takes it."""
    prefix = name.rstrip('0123456789')
    number = name[len(prefix) :]
    return prefix, int(number) if number else -1
