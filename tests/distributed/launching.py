"""Several processes of one command on this machine."""

from __future__ import annotations

import os
import pathlib
import socket
import subprocess
import sys
from collections.abc import Sequence

ROOT = pathlib.Path(__file__).parents[2]


def sizes(mesh: str) -> dict[str, int | None]:
    """'fsdp=2,context=2' -> the sizes of these axes."""
    return {
        axis: None if size == 'None' else int(size)
        for axis, _, size in (p.partition('=') for p in mesh.split(','))
        if axis
    }


def free_address() -> str:
    with socket.socket() as listener:
        listener.bind(('localhost', 0))
        return f'localhost:{listener.getsockname()[1]}'


def start(
    arguments: Sequence[str],
    processes: int,
    devices: int | Sequence[int],
    *,
    only: Sequence[int] | None = None,
    address: str = '',
) -> list[subprocess.Popen]:
    """`python ARGUMENTS` in so many processes of so many CPU devices each; `only`: some of them.
    They meet at `address`, or at one that is free."""
    address = address or free_address()
    each = [devices] * processes if isinstance(devices, int) else devices
    started = []
    for process in range(processes) if only is None else only:
        environment = {
            **os.environ,
            'JAX_PLATFORMS': 'cpu',
            'XLA_FLAGS': f'--xla_force_host_platform_device_count={each[process]}',
        }
        if processes > 1:
            environment |= {
                'JAX_COORDINATOR_ADDRESS': address,
                'JAX_NUM_PROCESSES': str(processes),
                'JAX_PROCESS_ID': str(process),
            }
        started.append(
            subprocess.Popen(
                [sys.executable, *arguments],
                cwd=ROOT,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    return started


def finish(started: Sequence[subprocess.Popen], seconds: float = 300) -> list[tuple[int, str, str]]:
    """(exit status, stdout, stderr) of each; none is left running."""
    try:
        ended = [process.communicate(timeout=seconds) for process in started]
    finally:
        for process in started:
            process.kill()
    return [
        (process.returncode, out, errors)
        for process, (out, errors) in zip(started, ended, strict=True)
    ]
