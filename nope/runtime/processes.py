"""Multi-process coordination: start-up, barriers, exchange of values, joint stopping.

A command has one process on a laptop, one for every host of a pod or a cluster. All of them run the
same program in the same order. The first one writes files and decides; the others learn its
decisions over the key-value store of JAX's coordination service. All processes call the functions
below in the same order; with one process they do next to nothing.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import jax

from nope.runtime.libraries import versions

log = logging.getLogger(__name__)

START_SECONDS = 300  # for all processes to be there
MEETING_SECONDS = 600  # for the last process to reach what all of them have to reach
CLOCK_SECONDS = 30  # by which clocks may differ before it is said
DECIDING_SECONDS = 7 * 24 * 3600  # the first process may have to tokenise a corpus

# What a process that is started by hand, or by a launcher that JAX does not know, is told.
BY_HAND = ('JAX_COORDINATOR_ADDRESS', 'JAX_NUM_PROCESSES', 'JAX_PROCESS_ID')
# Launchers that JAX finds by itself, by a variable that holds their number of processes.
LAUNCHERS = {'SLURM_STEP_NUM_TASKS': 'slurm', 'OMPI_COMM_WORLD_SIZE': 'ompi'}
ON, OFF, AUTO = 'on', 'off', 'auto'
# What programs are compiled by and with: where processes differ in one, so may their replicas, or
# their collectives wait for each other without end.
PACKAGES = (
    *('jax', 'jaxlib', 'flax', 'optax', 'numpy'),
    *('libtpu', 'jax-cuda12-plugin', 'jax-cuda13-plugin'),
)
VARIABLES = (
    *('XLA_FLAGS', 'LIBTPU_INIT_ARGS', 'JAX_ENABLE_X64', 'JAX_THREEFRY_PARTITIONABLE'),
    *('JAX_DEFAULT_PRNG_IMPL', 'JAX_DEFAULT_MATMUL_PRECISION'),
)

_serial = itertools.count()  # of meetings: the same in all processes, which hold the same ones


class MissingProcessError(RuntimeError):
    """Absence of a process at a barrier of all processes."""


class OtherProcessError(RuntimeError):
    """Failure of another process in a joint call."""


def start(
    mode: str = AUTO, seconds: int = START_SECONDS, met: Callable[[], None] = lambda: None
) -> None:
    """Joins the other processes, before JAX computes anything. `met` is called once all are
    connected, before any device is used.

    mode: 'off' for a command of its own. 'on' for one that JAX's own detection places (Cloud TPU,
    SLURM, Open MPI, Kubernetes). 'auto' joins if the environment tells of more processes, by
    `BY_HAND` or a launcher's variables.

    Raises ValueError for settings that make no sense, and where the processes differ in their
    number of devices, `PACKAGES` or `VARIABLES`. Ends this one with status 1 and a message where
    the others are not there after so many seconds: JAX alone would end it with a stack.
    """
    asked = settings(mode, os.environ)
    if asked is None:
        return
    if asked.get('process_id') == 0:
        _check_port(asked['coordinator_address'])
    alone = (
        f'no meeting of all processes at {asked.get("coordinator_address", "the coordinator")} '
        f'within {seconds} s. The first process listens at that address, whose port has to be free '
        'there; all are given the same address and number of processes, each another index'
    )
    end = threading.Timer(seconds, _end, (alone,))
    end.daemon = True
    end.start()
    try:
        jax.distributed.initialize(**asked, initialization_timeout=seconds + START_SECONDS)
    except ValueError as error:
        raise ValueError(f'the processes of this command cannot be found: {error}') from error
    except RuntimeError as error:
        raise MissingProcessError(f'{alone}: {error}') from error
    finally:
        end.cancel()
    met()
    mine = {'told': asked.get('num_processes', count()), 'devices': jax.local_device_count()}
    told, devices = ([place[name] for place in exchange(mine)] for name in mine)
    if set(told) != {count()}:
        raise ValueError(
            f'the processes were told that there are {told} of them; all need the same number'
        )
    if len(set(devices)) > 1:
        raise ValueError(f'the processes have {devices} devices; all need the same number')
    _check_alike(exchange(surroundings(os.environ)))
    clocks = exchange(time.time())
    if max(clocks) - min(clocks) > CLOCK_SECONDS:
        late, early = clocks.index(min(clocks)), clocks.index(max(clocks))
        log.warning(
            'the clock of %s is %.0f s behind that of %s: times in logs and files will not agree',
            *(describe(late), max(clocks) - min(clocks), describe(early)),
        )
    log.info('process %d of %d, %d devices in all', index(), count(), jax.device_count())


def _end(message: str) -> NoReturn:
    print(f'error: {message}', file=sys.stderr, flush=True)
    os._exit(1)


def surroundings(environ: Mapping[str, str]) -> dict[str, str]:
    """Versions of `PACKAGES` and values of `VARIABLES`, of those that there are."""
    return {name: environ[name] for name in VARIABLES if environ.get(name)} | versions(PACKAGES)


def _check_alike(found: Sequence[Mapping[str, str]]) -> None:
    """ValueError for the first of the `surroundings` in which a process differs from the first."""
    for process, theirs in enumerate(found):
        for name in (*PACKAGES, *VARIABLES):
            values = [which.get(name, 'not there') for which in (theirs, found[0])]
            if values[0] != values[1]:
                raise ValueError(
                    f'{name} is {values[0]} in {describe(process)} and {values[1]} in the first '
                    'one; all need the same'
                )


def settings(mode: str, environ: Mapping[str, str]) -> dict[str, Any] | None:
    """Arguments of `jax.distributed.initialize`; None for a command of one process."""
    if mode not in (ON, OFF, AUTO):
        raise ValueError(f'--distributed is {mode!r}; accepted: {AUTO}, {ON}, {OFF}')
    if mode == OFF:
        return None
    given = [name for name in BY_HAND if environ.get(name)]
    if not given:
        for name, method in LAUNCHERS.items():
            if int(environ.get(name, 1)) > 1:
                return {'cluster_detection_method': method}
        return {} if mode == ON else None
    missing = [name for name in BY_HAND if name not in given]
    if missing:
        raise ValueError(f'{", ".join(given)} is set, but not {", ".join(missing)}')
    address, *numbers = (environ[name] for name in BY_HAND)
    host, _, port = address.rpartition(':')
    if not host or not port.isdigit() or not 1 <= int(port) <= 65_535:
        raise ValueError(f'{BY_HAND[0]} is {address!r}; accepted: HOST:PORT, 1 to 65535')
    for name, number in zip(BY_HAND[1:], numbers, strict=True):
        if not number.isdigit():
            raise ValueError(f'{name} is {number!r}; accepted: a whole number')
    processes, process = map(int, numbers)
    if process >= processes:
        raise ValueError(
            f'{BY_HAND[2]} is {process}; accepted: 0 to {processes - 1}, with {BY_HAND[1]} '
            f'{processes}'
        )
    found = dict(coordinator_address=address, num_processes=processes, process_id=process)
    # Under srun or mpirun JAX would give a process one GPU of its machine.
    return found | {'cluster_detection_method': 'deactivate'}


def _check_port(address: str) -> None:
    """Raises ValueError where the first process cannot listen: JAX would exit without a message."""
    port = int(address.rpartition(':')[2])
    try:
        with socket.create_server(('', port)):
            pass
    except OSError as error:
        raise ValueError(
            f'{BY_HAND[0]} is {address}, but the first process cannot listen at port {port} of '
            f'{socket.gethostname()}: {error}'
        ) from error


def index() -> int:
    """Index of this process, from 0. Once the processes are connected this uses no device."""
    return _global_state().process_id if joined() else jax.process_index()


def count() -> int:
    """Number of processes, by JAX's devices; `start` checks that all were told the same number."""
    return jax.process_count()


def joined() -> bool:
    """True once this process is connected to others. Uses no device."""
    state = _global_state()
    return state.client is not None and state.num_processes > 1


def is_first() -> bool:
    """True for the process that writes files and decides."""
    return index() == 0


def exchange(value: Any, name: str = '', seconds: float = MEETING_SECONDS) -> list[Any]:
    """All-gather of small JSON values: one of every process, in their order.

    Raises MissingProcessError, naming the processes and hosts that did not arrive in time.
    """
    if count() == 1:
        return [value]
    folder = f'nope/{next(_serial)}/'
    client = _client()
    client.key_value_set(f'{folder}{index()}', json.dumps([socket.gethostname(), value]))
    try:
        client.wait_at_barrier(folder, int(seconds * 1000))
    except Exception as error:  # the client's own kind, which has no public name
        here = {int(key.rsplit('/', 1)[1]) for key, _ in client.key_value_dir_get(folder)}
        missing = sorted(set(range(count())) - here)
        if not missing:
            raise
        raise MissingProcessError(
            f'{name or "a meeting of all processes"}: after {seconds:g} s '
            f'{", ".join(describe(process) for process in missing)} had not come'
        ) from error
    found = {
        int(key.rsplit('/', 1)[1]): json.loads(text)
        for key, text in client.key_value_dir_get(folder)
    }
    _hosts.update({process: host for process, (host, _) in found.items()})
    return [found[process][1] for process in range(count())]


def meet(name: str, seconds: float = MEETING_SECONDS) -> None:
    """Barrier of all processes; MissingProcessError as `exchange`."""
    exchange(None, name, seconds)


def from_first(make: Callable[[], Any]) -> Any:
    """Broadcast of the JSON value that `make` returns on the first process; its error, too."""
    if count() == 1:
        return make()
    key = f'nope/{next(_serial)}'
    if not is_first():
        return _taken(json.loads(_client().blocking_key_value_get(key, DECIDING_SECONDS * 1000)))
    try:
        value = make()
    except Exception as error:
        _client().key_value_set(key, json.dumps(_failure(error)))
        raise
    _client().key_value_set(key, json.dumps({'value': value}))
    return value


def together(make: Callable[[], Any], name: str = '') -> Any:
    """Result of `make` in this process, once it has succeeded in all.

    Where it raised in another process but not here, OtherProcessError names the process and the
    error (a ValueError or OSError stays one).
    """
    if count() == 1:
        return make()
    value, failed = None, None
    try:
        value = make()
    except Exception as error:
        failed = error
    outcomes = exchange({} if failed is None else _failure(failed), name, DECIDING_SECONDS)
    if failed is not None:
        raise failed
    for outcome in outcomes:
        _taken(outcome)
    return value


class StopTogether:
    """Joint stop flag: true in all processes at the same call, two calls after one was `asked`.

    Between two calls all processes take part in at least one computation, and each waits for that
    of the previous call, so none is more than one call ahead of another.
    """

    def __init__(self, asked: Callable[[], bool]) -> None:
        self._asked = asked
        self._calls = 0
        self._last: str | None = None  # the call at which all stop
        self._key = f'nope/stop/{next(_serial)}'

    def __call__(self) -> bool:
        if count() == 1:
            return self._asked()
        self._calls += 1
        # Once seen it stays: a look that fails later would leave this process behind.
        self._last = self._last or noted(self._key)
        if self._last is None and self._asked():
            self._last = note(self._key, str(self._calls + 2))
        return self._last is not None and self._calls >= int(self._last)


def note(key: str, text: str) -> str:
    """Writes a note for all processes, once; returns the existing one where there is one."""
    try:
        _client().key_value_set(key, text)
    except Exception:  # another process was first
        return noted(key) or text
    return text


def noted(key: str) -> str | None:
    """The note that some process has left, if any."""
    try:
        return _client().key_value_try_get(key)
    except Exception:  # there is no such key
        return None


_hosts: dict[int, str] = {}


def describe(process: int) -> str:
    """Number of a process and, where it is known, its host."""
    host = _hosts.get(process)
    return f'process {process}' + (f' ({host})' if host else '')


def _failure(error: Exception) -> dict[str, Any]:
    kind = next((k for k in (ValueError, OSError) if isinstance(error, k)), OtherProcessError)
    number = getattr(error, 'errno', None)
    return {'kind': kind.__name__, 'message': str(error), 'errno': number, 'process': index()}


def _taken(outcome: Mapping[str, Any]) -> Any:
    """The value of an outcome; raises its failure."""
    if 'kind' not in outcome:
        return outcome.get('value')
    kinds: dict[str, type[Exception]] = {'ValueError': ValueError, 'OSError': OSError}
    error = kinds.get(outcome['kind'], OtherProcessError)(
        f'{describe(outcome["process"])}: {outcome["message"]}'
    )
    if isinstance(error, OSError):
        error.errno = outcome['errno']
    raise error


def _client() -> Any:
    """Client of JAX's coordination service, whose key-value store has no public name."""
    found = _global_state().client
    if found is None:  # a pod's TPUs tell of the other hosts' on their own
        raise ValueError(
            f'{count()} processes have devices in common, but have not met; accepted: '
            f'--distributed={ON}'
        )
    return found


def _global_state() -> Any:
    from jax._src import distributed

    return distributed.global_state
