"""The launchers say what the program accepts: their variables, arguments and exit statuses."""

from __future__ import annotations

import fcntl
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import time

import pytest
import yaml

from experiments import run, statuses
from nope.runtime import hardware, processes

TRUE = shutil.which('true') or 'true'

FOLDER = pathlib.Path(__file__).parents[2] / 'tools' / 'launch'
JOBSETS = sorted(FOLDER.glob('*.yaml'))
MEMORY = 'XLA_PYTHON_CLIENT_MEM_FRACTION'
SCRIPTS = sorted({*FOLDER.glob('*.sh'), *FOLDER.glob('*.sbatch')})


def pods(path: pathlib.Path):
    jobset = yaml.safe_load(path.read_text())
    (job,) = jobset['spec']['replicatedJobs']
    return jobset, job, job['template']['spec']


@pytest.mark.parametrize('path', JOBSETS, ids=lambda path: path.stem)
def test_a_jobset_starts_the_command_that_there_is(path: pathlib.Path) -> None:
    jobset, _, spec = pods(path)
    assert jobset['kind'] == 'JobSet' and spec['parallelism'] == spec['completions']
    (container,) = spec['template']['spec']['containers']
    assert container['command'] == ['python', '-m', 'experiments.run']
    config, *options = container['args']
    file, _, size = config.removeprefix('--config=').partition(':')
    assert (FOLDER.parents[1] / file).is_file() and size == 'paper'
    for option in options:
        name = option.removeprefix('--').partition('=')[0]
        assert name.startswith('config.compute.') or name in run.flags.FLAGS
    mounts = {mount['name'] for mount in container['volumeMounts']}
    assert mounts == {volume['name'] for volume in spec['template']['spec']['volumes']}
    (rule,) = spec['podFailurePolicy']['rules']
    assert rule['onExitCodes']['values'] == [statuses.BAD_INPUT, statuses.DIVERGED]


def test_a_gpu_pod_is_told_who_takes_part() -> None:
    jobset, job, spec = pods(FOLDER / 'jobset_gpu.yaml')
    (container,) = spec['template']['spec']['containers']
    given = {entry['name']: entry.get('value', '0') for entry in container['env']}
    assert given.keys() == {*processes.BY_HAND, MEMORY, 'XLA_FLAGS'}
    assert float(given[MEMORY]) == hardware.USABLE
    found = processes.settings(processes.AUTO, given)
    assert found is not None and found['num_processes'] == spec['completions']
    host, port = found['coordinator_address'].split(':')
    assert host == f'{jobset["metadata"]["name"]}-{job["name"]}-0-0.{jobset["metadata"]["name"]}'
    assert [port] == [str(entry['containerPort']) for entry in container['ports']]


@pytest.mark.parametrize('path', SCRIPTS, ids=lambda path: path.name)
def test_scripts_are_well_formed_and_say_what_is_missing(path: pathlib.Path) -> None:
    subprocess.run(['bash', '-n', str(path)], check=True)
    if shutil.which('shellcheck'):
        subprocess.run(['shellcheck', str(path)], check=True)
    ended = subprocess.run(
        ['bash', str(path)], capture_output=True, text=True, env={'PATH': '/bin'}
    )
    assert ended.returncode == 2
    assert ended.stderr.startswith(f'{path.name}: ')


def called(path: pathlib.Path) -> list[list[str]]:
    """The commands that stand-ins wrote down."""
    commands = path.read_text().split('\x1e')[:-1]
    return [command.split('\x1f')[:-1] for command in commands]


def stand_in(path: pathlib.Path, calls: pathlib.Path, script: str) -> None:
    """An executable that writes down how it was called, then does as `script` says."""
    # Locked, since calls that run side by side write too, and long ones in several parts.
    write = r"""call=$(printf '%s\x1f' "${0##*/}" "$@")
{ flock 9; printf '%s\x1e' "$call" >&9; } 9>> CALLS"""
    path.write_text(f'#!/bin/bash\n{write.replace("CALLS", str(calls))}\n{script}\n')
    path.chmod(0o755)


CONFIG = '--config=configs/first_paper/fig4.py:paper'
POD = {'PROJECT': 'p', 'ZONE': 'z', 'NAME': 'n', 'TYPE': 't', 'VERSION': 'v'}
JOB = {'PYTHON': TRUE, 'SLURM_JOB_ID': '7'}


def found_in(folder: pathlib.Path) -> dict[str, str]:
    """An environment whose commands are stand-ins first."""
    return {'PATH': f'{folder}:/usr/bin:/bin', 'HOME': str(folder)}


def test_the_figures_of_a_stage_run_side_by_side(tmp_path: pathlib.Path) -> None:
    """With the seeds and flags given; a failure of one is that of the stage. Without the books
    nothing runs."""
    calls, script = tmp_path / 'calls', str(FOLDER / 'large_one_gpu.sh')
    python = tmp_path / 'python'
    stand_in(python, calls, 'case "$*" in *fig7*) exit 3 ;; esac')
    environment = found_in(tmp_path) | {'SEEDS': '(0, 1)', 'WORKDIR': 'a b'}

    def stage(*arguments: str) -> subprocess.CompletedProcess:
        command = ['bash', script, *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, env=environment, cwd=tmp_path
        )

    missing = stage('text')
    assert missing.returncode == 2 and not calls.exists()
    assert 'there is no data/books here' in missing.stderr
    (tmp_path / 'data' / 'books').mkdir(parents=True)
    (tmp_path / 'data' / 'books_tokenizer').mkdir()
    (tmp_path / 'data' / 'books_tokenizer' / 'tokenizer.json').write_text('{}')
    assert stage('text', '--plan').returncode == 3
    run, seeds = ['-m', 'experiments.run'], '--config.seeds=(0, 1)'
    assert sorted(called(calls)) == [
        ['python', *run, f'{figure}:large', '--workdir=a b', seeds, '--plan']
        for figure in ('fig1', 'fig4', 'fig5', 'fig7', 'fig_dynamic')
    ]
    assert all(stage(name).returncode == 0 for name in ('keys', 'reach', 'table'))
    assert called(calls)[-1][3] == 'table2:large,longppl'
    assert 'no data/checkpoint/config.json' in stage('checkpoint').stderr
    (tmp_path / 'data' / 'checkpoint').mkdir()
    (tmp_path / 'data' / 'checkpoint' / 'config.json').write_text('{}')
    assert stage('checkpoint', '--plan').returncode == 0
    assert {'--config.init=hf:data/checkpoint', '--plan'} < set(called(calls)[-1])


def test_a_stage_that_is_stopped_waits_for_its_commands_to_save(tmp_path: pathlib.Path) -> None:
    python, calls = tmp_path / 'python', tmp_path / 'calls'
    stand_in(python, calls, 'trap "sleep 1; touch saved; exit 143" TERM; sleep 60 & wait')
    (tmp_path / 'data' / 'books').mkdir(parents=True)
    (tmp_path / 'data' / 'books_tokenizer').mkdir()
    (tmp_path / 'data' / 'books_tokenizer' / 'tokenizer.json').write_text('{}')
    command = ['bash', str(FOLDER / 'large_one_gpu.sh'), 'table']
    stage = subprocess.Popen(command, env=found_in(tmp_path), cwd=tmp_path)
    while not calls.exists():
        time.sleep(0.1)
    time.sleep(0.5)  # until it has set its trap
    stage.terminate()
    assert stage.wait(timeout=30) and (tmp_path / 'saved').exists()


def test_the_scripts_run_the_command(tmp_path: pathlib.Path) -> None:
    calls = tmp_path / 'calls'
    for name in ('gcloud', 'srun', 'scontrol'):
        stand_in(tmp_path / name, calls, 'echo ACTIVE')
    asked = [CONFIG, "--config.data.mixture=(('text:a b', 1.0),)"]
    tpu = {**found_in(tmp_path), **POD, 'WORKDIR': '/shared/a b', 'NODES': '2'}
    for script, environment in (('tpu_pod.sh', tpu), ('slurm.sbatch', found_in(tmp_path) | JOB)):
        command = ['bash', str(FOLDER / script), *asked]
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    *lines, job = called(calls)
    ssh = [line for line in lines if 'ssh' in line]
    assert sorted(line[line.index('ssh') + 1] for line in ssh) == ['n-0', 'n-1']
    remote = next(a for a in ssh[0] if a.startswith('--command='))
    found = re.search(r'exec (nohup .*)\n', remote)
    assert found
    run = ['-m', 'experiments.run']
    pod = ['nohup', '~/env/bin/python', *run, '--distributed=on', '--workdir=/shared/a b', *asked]
    assert shlex.split(found[1])[: len(pod)] == pod
    assert job == ['srun', '--kill-on-bad-exit=1', TRUE, *run, *asked]


def test_a_host_at_work_takes_no_second_command(tmp_path: pathlib.Path) -> None:
    calls, host = tmp_path / 'calls', tmp_path / 'host'
    (host / 'nope').mkdir(parents=True)
    stand_in(tmp_path / 'gcloud', calls, f"""
case "$*" in
    *describe*) echo ACTIVE ;;
    *ssh*) for a; do case $a in --command=*)
        cd {host}; HOME={host} exec bash -c "${{a#--command=}}" ;; esac; done ;;
esac""")  # fmt: skip
    command = ['bash', str(FOLDER / 'tpu_pod.sh'), CONFIG]
    environment = found_in(tmp_path) | POD | {'WORKDIR': str(tmp_path / 'shared')}
    with (host / 'nope.lock').open('w') as running:
        fcntl.flock(running, fcntl.LOCK_EX)
        ended = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False
        )
    assert ended.returncode == 75 and 'still runs on this host' in ended.stderr
    assert (host / 'nope').exists()  # what it runs is left alone


def test_a_slice_that_was_taken_away_is_asked_for_anew(tmp_path: pathlib.Path) -> None:
    """And a host installs the project once, whole, and runs the files as they are now."""
    calls, state, host = tmp_path / 'calls', tmp_path / 'state', tmp_path / 'host'
    host.mkdir()
    stand_in(tmp_path / 'gcloud', calls, f"""
case "$*" in
    *describe*) cat {state} 2>/dev/null || {{ echo NOT_FOUND >&2; exit 1; }} ;;
    *delete*) rm {state} ;;
    *create*) echo ACTIVE > {state} ;;
    *scp*) for a; do case $a in /*.tar) cp "$a" {host}/nope.tar ;; esac; done ;;
    *ssh*) for a; do case $a in --command=*)
        cd {host}; HOME={host} exec bash -c "${{a#--command=}}" ;; esac; done ;;
esac""")  # fmt: skip
    stand_in(tmp_path / 'python', calls, f"""
case "$*" in
    '-m venv'*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; cp "$0" "$3/bin/pip" ;;
    install*) [ ! -e {tmp_path}/no_network ] ;;
esac""")  # fmt: skip
    environment = found_in(tmp_path) | POD
    environment |= {'PYTHON': 'python', 'WORKDIR': str(tmp_path / 'shared')}

    def launch() -> tuple[int, list[str]]:
        calls.write_text('')
        command = ['bash', str(FOLDER / 'tpu_pod.sh'), CONFIG]
        ended = subprocess.run(command, env=environment, capture_output=True, check=False)
        return ended.returncode, [' '.join(call) for call in called(calls)]

    def times(lines: list[str], begin: str) -> int:
        return sum(line.startswith(begin) for line in lines)

    resources = 'gcloud compute tpus queued-resources'

    state.write_text('SUSPENDED\n')
    (tmp_path / 'no_network').touch()
    status, lines = launch()
    assert status and times(lines, 'pip install') and not times(lines, 'python -m experiments.run')
    assert times(lines, f'{resources} delete n') == times(lines, f'{resources} create n') == 1
    (tmp_path / 'no_network').unlink()
    status, lines = launch()  # the slice is there; what was half installed is made anew
    assert status == 0
    assert not times(lines, f'{resources} delete') and not times(lines, f'{resources} create')
    assert times(lines, 'pip install') == times(lines, 'python -m experiments.run') == 1
    assert (host / 'nope' / 'nope' / 'attention' / 'api.py').is_file()
    assert not (host / 'nope' / '.git').exists()
    status, lines = launch()
    assert status == 0 and not times(lines, 'pip install')


@pytest.mark.parametrize(('told', 'ended'), [('script', 143), ('script', 0), ('all', 143)])
def test_a_job_that_is_stopped_saves_and_is_put_back_unless_cancelled(
    told: str, ended: int, tmp_path: pathlib.Path
) -> None:
    """Before its limit the script gets a signal, and has its steps told by `scancel`, since `srun`
    kills them when it gets a SIGTERM itself. One that was done meanwhile is not put back, nor one
    that was cancelled, whose steps and script get the SIGTERM."""
    calls, running, cancelled = (tmp_path / name for name in ('calls', 'running', 'cancelled'))
    stand_in(tmp_path / 'srun', calls, f"""
trap '[ -e {cancelled} ] || [ {told} = all ] && exit {ended}; exit 137' TERM
echo $$ > {running}.new; mv {running}.new {running}
for ((i = 0; i < 600; i++)); do sleep 0.1; done""")  # fmt: skip
    stand_in(tmp_path / 'scancel', calls, f'touch {cancelled}; kill -TERM "$(cat {running})"')
    stand_in(tmp_path / 'scontrol', calls, '')
    script = ['bash', str(FOLDER / 'slurm.sbatch'), CONFIG]
    environment = found_in(tmp_path) | JOB
    with subprocess.Popen(script, env=environment, start_new_session=True) as job:
        while not running.exists():
            assert job.poll() is None
            time.sleep(0.02)
        if told == 'all':
            os.killpg(job.pid, signal.SIGTERM)
        else:
            job.send_signal(signal.SIGUSR1)
        assert job.wait(timeout=60) == (-signal.SIGTERM if told == 'all' else ended)
    scancel = [['scancel', '--signal=TERM', '7']] if told == 'script' else []
    put_back = [['scontrol', 'requeue', '7']] if told == 'script' and ended else []
    assert called(calls)[1:] == [*scancel, *put_back]
    assert '#SBATCH --signal=B:USR1@' in (FOLDER / 'slurm.sbatch').read_text()


@pytest.mark.parametrize(('more', 'status'), [
    ({'SLURM_JOB_NUM_NODES': '2', 'SLURM_GPUS_ON_NODE': '8'}, 2),
    ({'SLURM_JOB_NUM_NODES': '2', 'SLURM_GPUS_ON_NODE': '8', 'SLURM_NTASKS': '16'}, 0),
    ({'SLURM_JOB_NUM_NODES': '1', 'SLURM_GPUS_ON_NODE': '8'}, 0),
    ({'SLURM_JOB_NUM_NODES': '1', 'SLURM_GPUS_ON_NODE': '8', 'SLURM_NTASKS': '4'}, 2),
])  # fmt: skip
def test_tasks_that_would_leave_gpus_idle_are_refused(
    tmp_path: pathlib.Path, more: dict[str, str], status: int
) -> None:
    stand_in(tmp_path / 'srun', tmp_path / 'calls', '')
    script = ['bash', str(FOLDER / 'slurm.sbatch'), CONFIG]
    ended = subprocess.run(
        script, env=found_in(tmp_path) | JOB | more, capture_output=True, text=True, check=False
    )
    assert ended.returncode == status and (tmp_path / 'calls').exists() == (status == 0)
    assert ('give --ntasks-per-node=8' in ended.stderr) == (status == 2)


@pytest.mark.parametrize(('status', 'more', 'put_back'), [
    (143, {}, True),
    (143, {'SLURM_RESTART_COUNT': '9'}, True),
    (143, {'SLURM_RESTART_COUNT': '10'}, False),
    (143, {'SLURM_RESTART_COUNT': '10', 'SECONDS': '900'}, True),  # it has worked
    (134, {}, True),  # JAX misses a process
    (137, {'SLURM_RESTART_COUNT': '10'}, False),
    (0, {}, False),
    (1, {}, False),
])  # fmt: skip
def test_a_job_whose_steps_alone_were_told_of_a_preemption_is_put_back(
    tmp_path: pathlib.Path, status: int, more: dict[str, str], put_back: bool
) -> None:
    """All processes have saved and ended with 143, or one was lost, and the script got no signal.
    Not for ever: one process that always fails at the start may end the others so."""
    calls = tmp_path / 'calls'
    stand_in(tmp_path / 'srun', calls, f'exit {status}')
    stand_in(tmp_path / 'scontrol', calls, '')
    environment = found_in(tmp_path) | JOB | {'SLURM_CPUS_PER_TASK': '8', **more}
    script = ['bash', str(FOLDER / 'slurm.sbatch'), CONFIG]
    assert subprocess.run(script, env=environment, timeout=60, check=False).returncode == status
    asked, *others = called(calls)
    assert '--cpus-per-task=8' in asked
    assert others == ([['scontrol', 'requeue', '7']] if put_back else [])
