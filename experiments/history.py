"""Log of the commands that worked on a work folder: commit, versions, device.

Imports no JAX where it says nothing about devices, so that figures are drawn without it.
"""

from __future__ import annotations

import datetime
import json
import os
import pathlib
import platform
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from nope.runtime.libraries import versions

FILE = 'commands.jsonl'
PACKAGES = ('jax', 'jaxlib', 'flax', 'optax', 'orbax-checkpoint', 'grain', 'numpy')
_ROOT = pathlib.Path(__file__).resolve().parent.parent


def note(folder: pathlib.Path, figure: str, arguments: Sequence[str]) -> None:
    """Adds a line to `commands.jsonl` of a work folder: when, which figure, with which arguments,
    and what `made_with` says. OSError where it cannot be written."""
    _add(folder, figure, {'arguments': list(arguments), **made_with()})


def note_drawing(folder: pathlib.Path, figure: str) -> None:
    """As `note`, of a figure that was drawn from its records alone: without a device."""
    _add(folder, figure, {'drawn_alone': True, **code()})


def _add(folder: pathlib.Path, figure: str, said: Mapping[str, Any]) -> None:
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec='seconds')
    line = {'started': started, 'figure': figure, **said}
    path = folder / FILE
    torn = path.exists() and not path.read_bytes().endswith(b'\n')  # by a full disk
    # One write of a file opened to append: commands that share a folder do not mix their lines.
    with open(path, 'ab', buffering=0) as file:
        file.write(b'\n' * torn + json.dumps(line).encode() + b'\n')


def made_with() -> dict[str, Any]:
    """`commit`, `versions` by package, `device` and the numbers of `devices` and `processes`."""
    import jax

    devices = jax.devices()
    return {
        **code(),
        'device': devices[0].device_kind,
        'devices': len(devices),
        'processes': jax.process_count(),
    }


def code() -> dict[str, Any]:
    """`commit` and `versions` by package."""
    return {
        'commit': commit(),
        'versions': {'python': platform.python_version(), **versions(PACKAGES)},
    }


def commit(root: pathlib.Path = _ROOT) -> str | None:
    """The commit of a checkout, with '-dirty' where files were changed since; None where `root` is
    none, or git is not there or does not answer."""
    if not (root / '.git').exists():
        return None
    command = ['git', '-C', str(root), 'describe', '--always', '--dirty', '--abbrev=40']
    command += ['--exclude=*']
    environment = {**os.environ, 'GIT_OPTIONAL_LOCKS': '0'}
    try:
        found = subprocess.run(
            command, capture_output=True, text=True, timeout=10, env=environment, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip() or None
