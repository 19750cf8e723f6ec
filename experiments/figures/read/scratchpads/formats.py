"""Formats of scratchpads in the order and words of figures (arXiv 2305.19466)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

NONE, FULL = 'none', 'full'

# Format as records name it -> words.
WORDS: Mapping[str, str] = {
    NONE: 'no scratchpad',
    FULL: 'full',
    'no_input': 'no input',
    'no_computation': 'no computation',
    'no_output': 'no output',
    'no_variables': 'no variables',
    'no_remaining': 'no remaining input',
    'minimal': 'minimal',
}


def ordered(formats: Mapping[str, object]) -> list[str]:
    """Formats in the order of WORDS, then those of ours as they come."""
    known = [name for name in WORDS if name in formats]
    return known + [name for name in formats if name not in WORDS]


def complete(names: Iterable[str]) -> bool:
    """Whether all formats of the paper are there; tasks without intermediate variables have one
    less."""
    return set(WORDS) - set(names) <= {'no_variables'}


def words(name: str) -> str:
    return WORDS.get(name, name)
