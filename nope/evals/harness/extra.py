"""Check that the optional package lm_eval is installed."""

from __future__ import annotations

import importlib.util


def check_installed() -> None:
    """ModuleNotFoundError, saying what to install, where lm_eval is missing."""
    if importlib.util.find_spec('lm_eval') is None:
        raise ModuleNotFoundError(
            'the evaluation harness, lm_eval, is not installed; it comes with an extra of this '
            "project: pip install -e '.[harness]' in the project's folder",
            name='lm_eval',
        )
