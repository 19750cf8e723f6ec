"""Commands in environments of users: what is set there neither ends them nor changes results."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]


def run(*arguments: str, cwd: pathlib.Path = ROOT, **environment: str) -> tuple[str, str]:
    """What a command that ends well says: on stdout, and on stderr."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, 'PYTHONPATH': str(ROOT), **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


ENTER = 'from nope.runtime import door; door.enter(); '


def test_what_a_terminal_has_no_character_for_is_escaped() -> None:
    said, _ = run('-c', f'{ENTER}print("caf\\xe9 \\ud800")', PYTHONIOENCODING='ascii')
    assert said == 'caf\\xe9 \\ud800\n'


@pytest.mark.parametrize(
    ('code', 'status'),
    [
        ('from nope.runtime.progress import bar; sys.exit(3 + sum(bar([1], mininterval=0)))', 4),
        (
            'from nope.runtime import ending\n'
            'def fail(): raise ending.Failure(5, "why")\n'
            'sys.exit(ending.run(fail))',
            5,
        ),
        (
            'from experiments.command import StopRequest\n'
            'import os, signal\n'
            'asked = StopRequest()\n'
            'asked.listen()\n'
            'os.kill(os.getpid(), signal.SIGTERM)\n'
            'sys.exit(6 if asked.requested() else 0)',
            6,
        ),
    ],
)
def test_a_command_goes_on_where_nobody_reads_its_errors(code: str, status: int) -> None:
    """As a lost connection leaves it: neither its status nor a stop is lost."""
    reader, writer = os.pipe()
    os.close(reader)
    said = f'import sys; {ENTER}print("news", file=sys.stderr)\n{code}'
    done = subprocess.run([sys.executable, '-c', said], cwd=ROOT, stderr=writer)
    os.close(writer)
    assert done.returncode == status


@pytest.mark.parametrize('name', ['SIGTERM', 'SIGINT'])
def test_a_signal_ends_a_command_that_reads_its_input(name: str) -> None:
    code = (
        'from experiments.command import StopRequest\n'
        f'import os, signal; StopRequest(); os.kill(os.getpid(), signal.{name})'
    )
    done = subprocess.run([sys.executable, '-c', code], cwd=ROOT)
    assert done.returncode == -signal.Signals[name]


def test_a_command_may_become_another_one() -> None:
    _, said = run('-c', f'{ENTER}door.enter(); import gc, sys; gc.collect(); sys.stderr.write("a")')
    assert said == 'a'


def test_settings_that_change_results_are_left_out_and_named() -> None:
    code = (
        f'{ENTER}import jax; print(jax.numpy.arange(2.0).dtype, jax.random.bits(jax.random.key(0)))'
    )
    others = {'JAX_ENABLE_X64': '1', 'JAX_DEFAULT_PRNG_IMPL': 'rbg'}
    said, named = run('-c', code, **others, JAX_THREEFRY_PARTITIONABLE='0')
    assert said.startswith('float32 ') and named.count(' is left out') == 3
    assert run('-c', code, JAX_ENABLE_X64='0') == (said, '')


def test_matplotlib_is_loaded_whatever_a_notebook_draws_with() -> None:
    code = f'{ENTER}from experiments.figures.look import mpl; mpl.Figure()'
    run('-c', code, MPLBACKEND='notebook_without_a_module')


@pytest.mark.parametrize('command', ['claims', 'draw', 'report', 'run', 'status'])
def test_packages_of_the_same_names_in_the_current_folder_are_not_taken(
    command: str, tmp_path: pathlib.Path
) -> None:
    for name in ('nope', 'configs'):
        (tmp_path / name).mkdir()
        (tmp_path / name / '__init__.py').write_text('raise RuntimeError')
    said, _ = run('-m', f'experiments.{command}', '--help', cwd=tmp_path)
    assert command in said
