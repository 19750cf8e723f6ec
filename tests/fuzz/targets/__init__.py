"""Readers of what a user brings, each with mutations of sound files."""

from __future__ import annotations

from tests.fuzz.case import Target
from tests.fuzz.targets import lines, tables, tokenizers, weights

EVERY: tuple[Target, ...] = (*weights.TARGETS, *lines.TARGETS, *tables.TARGETS, *tokenizers.TARGETS)
