"""Targets: everything that reads bytes of a user, with how many cases each has."""

from __future__ import annotations

import importlib

from tests.fuzz.case import Target

MODULES = ('weights', 'lines', 'tables', 'tokenizers', 'questions')


def every() -> list[Target]:
    return [target for module in MODULES for target in _of(module)]


def by_name(name: str) -> Target:
    """One target, whose name begins with that of its module here."""
    return {target.name: target for target in _of(name.partition('.')[0])}[name]


def _of(module: str) -> tuple[Target, ...]:
    return importlib.import_module(f'tests.fuzz.targets.{module}').TARGETS
