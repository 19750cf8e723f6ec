"""Figures that decide claims, drawn one after another, each by a command of its own."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from types import FrameType

from experiments.board import decisions
from experiments.board.decisions import Missing
from experiments.config import USERS
from experiments.config_files import ROOT, place
from experiments.figure_configs import OF_CHECKPOINTS
from experiments.statuses import BAD_INPUT, STOPPED

TAIL = 20_000  # bytes of a command's messages that are kept for the reason of a failure


def configs() -> list[str]:
    """Names of the configs whose figure decides a claim, each once."""
    return list(dict.fromkeys(name for names in decisions.configs().values() for name in names))


def draw_all(size: str, work: pathlib.Path, options: Sequence[str]) -> tuple[list[Missing], bool]:
    """Draws every figure of a size that decides a claim, trained where it is not. The figures that
    could not be drawn, and whether the command was asked to stop."""
    missing = []
    for name in configs():
        command = [sys.executable, '-m', 'experiments.run']
        command += [f'--config={ROOT}/{place(name)}:{size}', f'--workdir={work}', *options]
        if name in OF_CHECKPOINTS:
            reason = f'it is about a checkpoint, which {USERS}'
            missing.append(Missing(name, size, reason, f'see {place(name)}', failed=False))
            continue
        status, said = run_command(command)
        if status == STOPPED:
            return missing, True
        if status:
            missing.append(_missing(name, size, status, said))
    return missing, False


def _missing(name: str, size: str, status: int, said: str) -> Missing:
    # The last line that tells an error, else the last line.
    lines = [line.strip() for line in said.replace('\r', '\n').splitlines() if line.strip()]
    errors = [line.removeprefix('error: ') for line in lines if line.startswith('error: ')]
    reason = (errors or lines or [f'exit status {status}'])[-1]
    if status == BAD_INPUT and USERS in reason:
        remedy = f'run {place(name)}:{size} with them, then this command without --run'
        return Missing(name, size, reason, remedy, failed=False)
    remedy = f'the same command goes on from here; alone: {place(name)}:{size}'
    return Missing(name, size, reason, remedy, failed=True)


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
