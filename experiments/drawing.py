"""Figures that decide claims, drawn one after another, each by a command of its own."""

from __future__ import annotations

import contextlib
import functools
import os
import pathlib
import runpy
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

from ml_collections import ConfigDict

from experiments import defaults
from experiments.board.decisions import RELEASED, SIZES, Missing
from experiments.board.entries import ENTRIES
from experiments.config import BAD_INPUT, USERS
from nope.runtime.files import read_object

ROOT = pathlib.Path(__file__).parents[1]
TAIL = 20_000  # bytes of a command's messages that are kept for the reason of a failure
STOPPED = 128 + signal.SIGTERM
# What may differ in a figure that is one of its config, and at paper size besides, where the user
# gives the files.
FREE = ('name', 'seeds')
FILES = ('corpora.', 'data.', 'harness.files', 'longbench.folder', 'task.path', 'task.tokenizer')
OF_CHECKPOINTS = ('extend', 'ruler')  # their model is the user's, and they have no sizes


def configs() -> list[str]:
    """Names of the configs whose figure decides a claim, each once."""
    return list(dict.fromkeys(name for entry in ENTRIES.values() for name in entry.configs))


def config_of(figure: str) -> tuple[str, str] | None:
    """Config and size of a figure that has its name from them ('fig1_small'); None for others."""
    known = {path.stem for path in (ROOT / 'configs').glob('*.py')}
    for size in (*SIZES, RELEASED):
        name = figure.removesuffix(f'_{size}')
        if name in known:
            return name, size if name != figure else SIZES[0]
    return None


def trained_tokens(name: str, size: str, figures: pathlib.Path | None = None) -> int | None:
    """Tokens of the whole pre-training of a figure's models, None where the user gives them and
    where runs have lengths or steps of their own: as the figure in the folder `figures` was drawn,
    by default as its config says."""
    if size == RELEASED or name in OF_CHECKPOINTS:
        return None
    fields = ('steps', 'batch_size', 'length')
    config = _config(name, size)
    if any(field in run.get('train', {}) for run in config.runs.values() for field in fields):
        return None
    drawn = {} if figures is None else _settings(figures / figure_name(name, size))
    train = config.train
    tokens = 1
    for field in fields:
        tokens *= drawn.get(f'train.{field}', train[field])
    return tokens


def figure_name(config: str, size: str) -> str:
    """Name of a config's figure at a size: the inverse of `config_of`."""
    return config if size == SIZES[0] else f'{config}_{size}'


def check_unchanged(folder: pathlib.Path, name: str, size: str) -> None:
    """ValueError where the figure in `folder` has `changes`, naming a field, or is about a
    checkpoint of the user's."""
    if name in OF_CHECKPOINTS:
        raise ValueError(
            f"{folder} is about a checkpoint of the user's: --results takes figures of the configs "
            'as they are'
        )
    for path, (own, here) in changes(folder, name, size).items():
        raise ValueError(
            f'{folder} was drawn with {path}={here}, configs/{name}.py:{size} has {own}: '
            '--results takes figures of the configs as they are'
        )


def changes(folder: pathlib.Path, name: str, size: str) -> dict[str, tuple[Any, Any]]:
    """{path: (the config's value, the figure's)} of what the figure in `folder` was drawn with that
    its config has not at that size, but for `FREE`, at paper size `FILES`, and all where the models
    are the user's."""
    if size == RELEASED or name in OF_CHECKPOINTS:
        return {}
    free = (*FREE, *FILES) if size == SIZES[-1] else FREE
    found = defaults.changed(name, size, _settings(folder))
    return {path: values for path, values in found.items() if not path.startswith(free)}


def _settings(folder: pathlib.Path) -> Mapping[str, Any]:
    """Fields of the config that the figure in `folder` was drawn from."""
    settings = (read_object(folder / 'spec.json') or {}).get('settings')
    return settings if isinstance(settings, dict) else {}


@functools.cache
def _config(name: str, size: str) -> ConfigDict:
    return runpy.run_path(str(ROOT / f'configs/{name}.py'))['get_config'](size)


def draw_all(size: str, work: pathlib.Path, options: Sequence[str]) -> tuple[list[Missing], bool]:
    """Draws every figure of a size that decides a claim, trained where it is not. The figures that
    could not be drawn, and whether the command was asked to stop."""
    missing = []
    for name in configs():
        command = [sys.executable, '-m', 'experiments.run']
        command += [f'--config={ROOT}/configs/{name}.py:{size}', f'--workdir={work}', *options]
        if name in OF_CHECKPOINTS:
            reason = f'it is about a checkpoint, which {USERS}'
            missing.append(Missing(name, size, reason, f'see configs/{name}.py', failed=False))
            continue
        status, said = run_command(command)
        if status == STOPPED:
            return missing, True
        if status:
            missing.append(_missing(name, size, status, said))
    return missing, False


def _missing(name: str, size: str, status: int, said: str) -> Missing:
    reason = _reason(said) or f'exit status {status}'
    if status == BAD_INPUT and USERS in reason:
        remedy = f'run configs/{name}.py:{size} with them, then this command without --run'
        return Missing(name, size, reason, remedy, failed=False)
    remedy = f'the same command goes on from here; alone: configs/{name}.py:{size}'
    return Missing(name, size, reason, remedy, failed=True)


def _reason(said: str) -> str:
    """The last line that tells an error, else the last line."""
    lines = [line.strip() for line in said.replace('\r', '\n').splitlines() if line.strip()]
    errors = [line.removeprefix('error: ') for line in lines if line.startswith('error: ')]
    return (errors or lines or [''])[-1]


def run_command(command: Sequence[str]) -> tuple[int, str]:
    """Exit status of a command, which finds this project from any folder, and the last of its
    messages, which are passed on as they come. SIGTERM and Ctrl-C are passed to it, which saves and
    ends."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get('PYTHONPATH'))))
    # A session of its own: Ctrl-C reaches it once, from here.
    with (
        subprocess.Popen(
            command,
            env=os.environ | {'PYTHONPATH': path},
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as child,
        _passing_on(child) as asked,
    ):
        assert child.stderr is not None
        said = b''
        while chunk := os.read(child.stderr.fileno(), 4096):
            sys.stderr.write(chunk.decode(errors='replace'))
            sys.stderr.flush()
            said = (said + chunk)[-TAIL:]
        status = child.wait()
    return (STOPPED if asked else status), said.decode(errors='replace')


@contextlib.contextmanager
def _passing_on(child: subprocess.Popen[bytes]) -> Iterator[list[int]]:
    """Signals to stop go to `child`; those that came are listed."""
    asked: list[int] = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        del frame
        asked.append(number)
        child.send_signal(signal.SIGTERM)

    before = {n: signal.signal(n, pass_on) for n in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
