"""Tools as modules, so that tests call their `main` without another process."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import pathlib
import sys
from types import ModuleType

TOOLS = pathlib.Path(__file__).parents[2] / 'tools'


@functools.cache
def load(name: str) -> ModuleType:
    """tools/NAME.py, with what it imports from its own folder, also later. Those that a user calls
    are found by their files: an installed package may have the same name."""
    if str(TOOLS) not in sys.path:
        sys.path.append(str(TOOLS))
    if name.startswith('_'):
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(f'tools_{name}', TOOLS / f'{name}.py')
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
