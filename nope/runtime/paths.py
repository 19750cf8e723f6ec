"""Paths as users type them where no shell expands them."""

from __future__ import annotations

import os
import pathlib
import re

_HOME = re.compile(r'([a-z]+:)?(~[^/]*/.*)', re.DOTALL)


def expanded(text: str) -> str:
    """The text with its home folder in place of `~/`, or of another user's `~NAME/`, also behind a
    prefix as in 'hf:~/model'; any other text as it is."""
    found = _HOME.fullmatch(text)
    return text if found is None else f'{found[1] or ""}{os.path.expanduser(found[2])}'


def path(text: str | pathlib.Path) -> pathlib.Path:
    """A path with its home folder in place of `~`; of an unknown user as it is."""
    return pathlib.Path(os.path.expanduser(text))
