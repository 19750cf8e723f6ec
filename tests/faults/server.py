"""Commands in children of a process that has imported them once: an attempt takes no start-up.

Reads jobs from stdin, one JSON object a line, and writes {"pid"} for each and {"pid", "status"}
when it has ended. Before it forks it has no threads and no devices.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pathlib
import runpy
import select
import sys
from typing import Any, NoReturn

from absl import app

from experiments import command, run  # the first imports JAX
from tests.faults import aim, command_hooks

COMMAND = 'experiments.run'
# What a command imports when it comes to need it.
LATER = (
    'array_record.python.array_record_module',
    'grain',
    'matplotlib.backends.backend_agg',
    'matplotlib.backends.backend_pdf',
    'matplotlib.pyplot',
)


def main() -> None:
    for name in LATER:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    gc.disable()  # short lives: collections would only copy what is shared
    running: set[int] = set()
    while True:
        if select.select([sys.stdin], [], [], 0.01)[0]:
            line = sys.stdin.readline()
            if not line:
                return
            child = os.fork()
            if not child:
                _work(**json.loads(line))
            running.add(child)
            _say(pid=child)
        for pid in list(running):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                running.remove(pid)
                _say(pid=pid, status=os.waitstatus_to_exitcode(status))


def _say(**fields: Any) -> None:
    print(json.dumps(fields), flush=True)


def _work(
    arguments: list[str],
    root: str,
    aimed: list | None,
    trace: str,
    errors: str,
    cache: str,
    leases: str | None,
) -> NoReturn:
    """Runs a command as its own program. arguments: COMMAND or a module, then its own."""
    descriptor = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    _use_cache(cache)
    if leases is not None:
        command_hooks.leases(leases)
    _watch(root, aimed, trace)
    sys.argv = list(arguments)
    try:
        if arguments[0] == COMMAND:
            app.run(run.main, flags_parser=run.parse_flags)
        else:
            runpy.run_module(arguments[0], run_name='__main__', alter_sys=True)
    except SystemExit as error:
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    else:
        status = 0
    sys.exit(status)


def _watch(root: str, aimed: list | None, trace: str) -> None:
    at = aim.Range(pathlib.Path(root), aim.Aim(*aimed) if aimed else None, trace)
    aim.watch(at)
    command_hooks.watch(at)


def _use_cache(cache: str) -> None:
    """cache: 'fill' and 'read' the folder that JAX was told of, or 'none' to compile anew."""
    import jax

    seconds = 0.0 if cache == 'fill' else 1e9
    jax.config.update('jax_enable_compilation_cache', cache != 'none')
    jax.config.update('jax_persistent_cache_min_compile_time_secs', seconds)
    jax.config.update('jax_persistent_cache_min_entry_size_bytes', -1)


if __name__ == '__main__':
    assert command.main is not None
    main()
