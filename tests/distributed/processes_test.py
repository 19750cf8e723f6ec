"""Agreement between processes: values, failures, a process that does not come, a stop."""

from __future__ import annotations

import json
import socket
import textwrap
import time

import pytest

from nope.runtime import processes
from tests.distributed import launching

WHOLE = {'JAX_COORDINATOR_ADDRESS': 'host:1234', 'JAX_NUM_PROCESSES': '4', 'JAX_PROCESS_ID': '2'}
BY_HAND = {
    'coordinator_address': 'host:1234', 'num_processes': 4, 'process_id': 2,
    'cluster_detection_method': 'deactivate',
}  # fmt: skip


def run(body: str, count: int = 2) -> list[tuple[int, str, str]]:
    script = (
        'import json, time\nfrom nope.runtime import processes\n'
        'processes.start()\nme = processes.index()\n'
    )
    return launching.finish(launching.start(['-c', script + textwrap.dedent(body)], count, 1), 120)


def test_values_are_exchanged_decided_and_waited_for() -> None:
    ended = run(
        """
        given = processes.exchange({'process': me})
        first = processes.from_first(lambda: ['only here', me])
        everywhere = processes.together(lambda: me + 10)
        processes.meet('the end')
        print(json.dumps([given, first, everywhere, processes.is_first()]))
        """,
        count=3,
    )
    assert [status for status, _, _ in ended] == [0, 0, 0], ended
    for process, (_, out, _) in enumerate(ended):
        given, first, everywhere, is_first = json.loads(out.strip().splitlines()[-1])
        assert given == [{'process': 0}, {'process': 1}, {'process': 2}]
        assert first == ['only here', 0]
        assert everywhere == process + 10
        assert is_first == (process == 0)


def test_a_failure_in_one_process_ends_all_and_says_where() -> None:
    ended = run(
        """
        import pathlib
        kinds = []
        try:
            processes.from_first(lambda: pathlib.Path('/nowhere/at/all').read_text())
        except OSError as error:
            kinds.append(str(error))
        def fail():
            if me == 1:
                raise ValueError('field x is 3')
        try:
            processes.together(fail)
        except ValueError as error:
            kinds.append(str(error))
        print(json.dumps(kinds))
        """
    )
    assert [status for status, _, _ in ended] == [0, 0], ended
    (here, far), (far_file, own) = (json.loads(out.strip().splitlines()[-1]) for _, out, _ in ended)
    assert '/nowhere/at/all' in here and '/nowhere/at/all' in far_file
    assert far_file.startswith('process 0 (') or far_file.startswith('process 0:')
    assert own == 'field x is 3'
    assert far.startswith('process 1 (') and far.endswith('): field x is 3')


def test_a_process_that_does_not_come_is_named() -> None:
    ended = run(
        """
        if me == 1:
            time.sleep(4)
        else:
            try:
                processes.meet('before saving', seconds=1)
            except processes.MissingProcessError as error:
                print(error)
        import os, sys
        sys.stdout.flush()
        os._exit(0)
        """
    )
    message = ended[0][1].strip().splitlines()[-1]
    assert message.startswith('before saving: after 1 s process 1 (')
    assert message.endswith(') had not come')


@pytest.mark.parametrize(('failing', 'how'), [
    pytest.param(0, 'Failure(2, "x is 3")', marks=pytest.mark.slow),
    (1, 'OSError("disk")'),
])  # fmt: skip
def test_one_that_fails_ends_those_that_wait_for_it(failing: int, how: str) -> None:
    began = time.monotonic()
    ended = run(
        f"""
        import sys
        from nope.runtime import ending
        from nope.runtime.ending import Failure
        def command():
            processes.meet('the start')
            ending.watch()
            if me == {failing}:
                raise {how}
            processes.meet('what never comes')
        sys.exit(ending.run(command))
        """
    )
    assert time.monotonic() - began < 90  # of the 600 s that a meeting waits
    status, why = (2, 'x is 3') if failing == 0 else (1, 'OSError: disk')
    assert [found for found, _, _ in ended] == [status, status], ended
    assert why.split()[-1] in ended[failing][2]
    assert f'error: process {failing} (' in ended[1 - failing][2]
    assert f') has failed: {why}' in ended[1 - failing][2]


def test_one_that_sees_that_all_hang_ends_them() -> None:
    ended = run(
        """
        import sys, threading
        from nope.runtime import ending
        def command():
            processes.meet('the start')
            ending.watch()
            if me == 1:
                threading.Timer(0.5, ending.leave, ['no step for 9 s']).start()
                threading.Event().wait()
            processes.meet('what never comes')
        sys.exit(ending.run(command))
        """
    )
    assert [found for found, _, _ in ended] == [134, 134], ended
    assert 'error: no step for 9 s' in ended[1][2]
    assert 'error: process 1 (' in ended[0][2] and ') has failed: no step for 9 s' in ended[0][2]


def test_one_without_devices_ends_all() -> None:
    script = """
        import os, sys
        import jax
        from nope.runtime import ending, processes
        if os.environ['JAX_PROCESS_ID'] == '1':
            jax.config.update('jax_platforms', 'nowhere')
        def command():
            processes.start(met=ending.watch)
            return 0
        sys.exit(ending.run(command))
        """
    began = time.monotonic()
    first, second = launching.finish(launching.start(['-c', textwrap.dedent(script)], 2, 1), 120)
    assert time.monotonic() - began < 90
    assert (first[0], second[0]) == (1, 1), (first, second)
    assert 'error: process 1 has failed: RuntimeError: Unable to initialize backend' in first[2]


def test_all_stop_at_the_same_call() -> None:
    """Process 1 is asked between two steps in which all take part; none stops alone."""
    ended = run(
        """
        import jax, numpy as np
        from jax.experimental import multihost_utils
        calls = 0
        stop = processes.StopTogether(lambda: me == 1 and calls >= 5)
        for calls in range(1, 50):
            multihost_utils.process_allgather(np.ones(1))
            if stop():
                break
        print(calls)
        """
    )
    assert [out.strip().splitlines()[-1] for _, out, _ in ended] == ['7', '7'], ended


def test_alone_everything_is_decided_here() -> None:
    assert processes.exchange(3) == [3]
    assert processes.from_first(lambda: 4) == processes.together(lambda: 4) == 4
    processes.meet('nobody')
    assert processes.StopTogether(lambda: True)()


@pytest.mark.parametrize(
    ('mode', 'environ', 'expected'),
    [
        ('off', WHOLE, None),
        ('auto', {}, None),
        ('on', {}, {}),
        ('auto', {'SLURM_STEP_NUM_TASKS': '1'}, None),
        ('auto', {'SLURM_STEP_NUM_TASKS': '8'}, {'cluster_detection_method': 'slurm'}),
        ('auto', {'OMPI_COMM_WORLD_SIZE': '2'}, {'cluster_detection_method': 'ompi'}),
        ('auto', WHOLE, BY_HAND),
        ('auto', WHOLE | {'SLURM_STEP_NUM_TASKS': '4'}, BY_HAND),  # each has its machine's GPUs
    ],
)
def test_the_environment_says_who_takes_part(mode, environ, expected) -> None:
    assert processes.settings(mode, environ) == expected


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'JAX_PROCESS_ID': ''}, 'JAX_NUM_PROCESSES is set, but not JAX_PROCESS_ID'),
        ({'JAX_PROCESS_ID': '4'}, 'JAX_PROCESS_ID is 4; accepted: 0 to 3'),
        ({'JAX_PROCESS_ID': '-1'}, "JAX_PROCESS_ID is '-1'; accepted: a whole number"),
        ({'JAX_NUM_PROCESSES': 'x'}, "JAX_NUM_PROCESSES is 'x'"),
        ({'JAX_COORDINATOR_ADDRESS': 'host'}, "is 'host'; accepted: HOST:PORT"),
        ({'JAX_COORDINATOR_ADDRESS': 'host:99999'}, "is 'host:99999'; accepted: HOST:PORT, 1 to"),
    ],
)
def test_settings_that_make_no_sense_are_named(changes, message) -> None:
    with pytest.raises(ValueError, match=message):
        processes.settings('auto', WHOLE | changes)
    with pytest.raises(ValueError, match="--distributed is 'maybe'; accepted: auto, on, off"):
        processes.settings('maybe', {})


def test_processes_of_different_numbers_of_devices_are_refused() -> None:
    """And all of them end."""
    script = 'from nope.runtime import processes; processes.start()'
    for status, _, errors in launching.finish(launching.start(['-c', script], 2, [1, 2]), 120):
        assert status != 0
        assert 'the processes have [1, 2] devices' in errors


def test_one_that_the_others_do_not_come_to_says_so() -> None:
    script = 'from nope.runtime import processes; processes.start(seconds=4)'
    alone = [launching.start(['-c', script], 2, 1, only=[process])[0] for process in (0, 1)]
    for status, _, errors in launching.finish(alone, 120):
        assert status == 1
        assert 'no meeting of all processes at localhost:' in errors and 'within 4 s' in errors


def test_processes_of_different_versions_or_flags_are_refused() -> None:
    alike = {'jax': '0.8.1', 'XLA_FLAGS': '--a=1'}
    processes._check_alike([alike, dict(alike)])
    for other, message in (
        ({**alike, 'jax': '0.8.2'}, r'jax is 0\.8\.2 in process 1 and 0\.8\.1 in the first one'),
        ({'jax': '0.8.1'}, r'XLA_FLAGS is not there in process 1 and --a=1 in the first one'),
    ):
        with pytest.raises(ValueError, match=message):
            processes._check_alike([alike, other])
    found = processes.surroundings({'XLA_FLAGS': '--a=1', 'JAX_PROCESS_ID': '1'})
    assert found['XLA_FLAGS'] == '--a=1' and found['jax']
    assert 'JAX_PROCESS_ID' not in found


def test_a_port_that_is_taken_and_counts_that_disagree_are_told_of() -> None:
    script = 'import os\nfrom nope.runtime import processes\nprocesses.start(seconds=5)\n'
    with socket.socket() as listener:
        listener.bind(('localhost', 0))
        listener.listen()
        address = f'localhost:{listener.getsockname()[1]}'
        (first,) = launching.start(['-c', script], 2, 1, only=[0], address=address)
        ((status, _, errors),) = launching.finish([first], 120)
    assert status == 1
    assert f'JAX_COORDINATOR_ADDRESS is {address}, but the first process cannot listen' in errors

    address = launching.free_address()
    started = [
        launching.start(['-c', script], count, 1, only=[process], address=address)[0]
        for process, count in ((0, 2), (1, 3))
    ]
    for status, _, errors in launching.finish(started, 120):
        assert status == 1
        assert 'the processes were told that there are [2, 3] of them' in errors
