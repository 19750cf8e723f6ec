"""The config files by name: `fig1` is configs/first_paper/fig1.py.

A figure on another text has the name of its config and of the text: `fig1_books` is fig1 with the
argument `books` behind the size.
"""

from __future__ import annotations

import functools
import importlib
import pathlib
from types import ModuleType

ROOT = pathlib.Path(__file__).parents[1]
SHARED = 'shared'  # the folder of what configs have in common; no figure's
TEXTS = ('books',)  # arguments that put another text in the place of the config's own


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


def parted(figure: str) -> tuple[str, str]:
    """Config and text of a figure: ('fig1', 'books') of fig1_books, ('fig1', '') of fig1."""
    for text in TEXTS:
        if figure.endswith(f'_{text}') and not find(figure):
            return figure.removesuffix(f'_{text}'), text
    return figure, ''


def asked(figure: str, size: str) -> tuple[str, str]:
    """Config and its argument for a figure at a size: ('fig1', 'quick,books') of fig1_books."""
    name, text = parted(figure)
    return name, ','.join(filter(None, (size, text)))


def placed(figure: str, size: str) -> str:
    """FILE.py:ARGUMENT of a figure at a size. ValueError where there is no config."""
    name, argument = asked(figure, size)
    return f'{place(name)}:{argument}'


@functools.cache
def text_of(figure: str, size: str) -> str:
    """Text of a figure's models, in a word: 'Python', 'books', 'tasks', or 'given' by the
    user with the models."""
    name, argument = asked(figure, size)
    try:
        config = module(name).get_config(argument)
    except ValueError:
        return 'given'
    if any('task' in run for run in config.runs.values()):
        return 'tasks'
    sources = [source for source, _ in config.data.mixture] or [config.data.source]
    source = sources[config.data.eval_source]
    return 'Python' if source == 'stdlib' else source.rpartition('/')[2]


def place(name: str) -> str:
    """As `find`, of a config that there is. ValueError where there is none."""
    found = find(name)
    if found is None:
        raise ValueError(f'there is no config {name!r}; accepted: {", ".join(names())}')
    return found


def module(name: str) -> ModuleType:
    """The config as a module. ValueError where there is none."""
    return importlib.import_module(place(name).removesuffix('.py').replace('/', '.'))
