"""The config files by name: `fig1` is configs/first_paper/fig1.py."""

from __future__ import annotations

import importlib
import pathlib
from types import ModuleType

ROOT = pathlib.Path(__file__).parents[1]
SHARED = 'shared'  # the folder of what configs have in common; no figure's


def names() -> list[str]:
    """Of all figures' configs."""
    return sorted(
        path.stem for path in (ROOT / 'configs').glob('*/[!_]*.py') if path.parent.name != SHARED
    )


def find(name: str) -> str | None:
    """The file of a figure's config below the project's root; None where there is none."""
    found = [path for path in (ROOT / 'configs').glob(f'*/{name}.py') if path.parent.name != SHARED]
    return found[0].relative_to(ROOT).as_posix() if found else None


def resolved(named: str) -> str:
    """FILE.py:ARGUMENT of what a command line calls NAME:ARGUMENT; any other text as it is."""
    name, colon, argument = named.partition(':')
    found = find(name) if name.isidentifier() else None
    return f'{ROOT / found}{colon}{argument}' if found else named


def place(name: str) -> str:
    """As `find`, of a config that there is. ValueError where there is none."""
    found = find(name)
    if found is None:
        raise ValueError(f'there is no config {name!r}; accepted: {", ".join(names())}')
    return found


def module(name: str) -> ModuleType:
    """The config as a module. ValueError where there is none."""
    return importlib.import_module(place(name).removesuffix('.py').replace('/', '.'))
