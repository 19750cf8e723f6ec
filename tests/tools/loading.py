"""Tools as modules, so that tests call their `main` without another process."""

from __future__ import annotations

import importlib
import pathlib
import sys
from types import ModuleType

TOOLS = pathlib.Path(__file__).parents[2] / 'tools'


def load(name: str) -> ModuleType:
    """tools/NAME.py, with what it imports from its own folder, also later."""
    if str(TOOLS) not in sys.path:
        sys.path.append(str(TOOLS))
    return importlib.import_module(name)
