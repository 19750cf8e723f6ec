"""Fixtures of the comparisons with stock models."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture(scope='module')
def imported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    """The `Imported` of the case of that name in `tests.interop.stock_cases`."""
    from tests.interop.imported import make  # which needs PyTorch

    @functools.cache
    def case(name: str) -> Any:
        return make(name, tmp_path_factory.mktemp('case'))

    return case
