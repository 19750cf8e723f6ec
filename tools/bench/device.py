"""First contact with an accelerator: whether the kernels are right there, and how fast.

    JAX_PLATFORMS=cuda,cpu python -m tools.bench device right --out=FOLDER     # or tpu,cpu
    JAX_PLATFORMS=cuda,cpu python -m tools.bench device fast --out=FOLDER
    JAX_PLATFORMS=cuda,cpu python -m tools.bench device model --out=FOLDER [--only=step]
    JAX_PLATFORMS=cuda,cpu python -m tools.bench device why --out=FOLDER
    python -m tools.bench device right fast model why --out=FOLDER --dry    # small, on a CPU

Needs JAX and the other dependencies of `nope`. The stage `right` also needs pytest and hypothesis;
with pytest-xdist it runs several tests at once. A stage takes at most nine minutes:

right   versions and ceilings (a matrix product, a copy); every backend run 50 times in memory full
        of NaN, bit by bit; every backend against the definition in float64 on all cases; a
        training that is stopped and killed, bit by bit
fast    six shapes of a 1.1B model's layer, forward and backward, with and without entropy: cuDNN or
        splash attention and our kernels
model   the 1.1B model by backend: training, greedy decoding, evaluation, search, the entropy to
        131,072 tokens; steps, decoding and losses in PyTorch where it is installed; import and
        export of a checkpoint of that size; training with all layers recomputed, and bit by bit
why     on a GPU: the time of each kernel, NVIDIA's sanitizer on a small call, Nsight Compute's
        account of the Hopper kernels; the last two where they are installed

Every command has a time limit, after which it and its children are killed. Commands that do not
fit into the nine minutes are named and not run. FOLDER gets STAGE.log, STAGE.jsonl with the JSON
lines, and STAGE.md with a row a command: ended, failed, killed or not run, and its last line. The
status is 1 where one did not end well.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nope.runtime import processors
from tools.bench.harness import ROOT

STAGE_SECONDS = 540
LEAST_SECONDS = 5  # for which a command is begun
HANG_SECONDS = 60  # of one test
SHAPES = ('h64_2k', 'h128_8k', 'h64_16k', 'h64_8k', 'h128_2k', 'h128_16k')
# By platform, those of `nope.attention.api.PREFERRED` beside `chunked`.
BACKENDS = {
    'gpu': ('library', 'mosaic_gpu', 'pallas_gpu'),
    'tpu': ('library', 'pallas_tpu'),
    'cpu': ('chunked',),
}
PEER, CHOSEN = 'pytorch', 'chosen'
ABSENT = 'not run, not installed:'
# Work, length, batch and by whom, the most wanted first.
MODEL_WORK = (
    ('step', 2048, 16, ('library', 'mosaic_gpu', 'pallas_tpu', PEER)),
    ('greedy', 2048, 1, (CHOSEN, PEER)),
    ('greedy', 2048, 8, (CHOSEN, PEER)),
    ('greedy', 32768, 1, (CHOSEN,)),
    ('greedy', 2048, 64, (CHOSEN,)),
    ('loss', 16384, 4, ('library', PEER)),
    ('entropy', 16384, 4, ('mosaic_gpu', 'pallas_gpu', 'pallas_tpu', 'chunked')),
    ('search', 32768, 1, ('library', 'mosaic_gpu', 'pallas_tpu')),
    ('entropy', 131072, 1, ('mosaic_gpu', 'pallas_tpu')),
    ('greedy', 16384, 8, (CHOSEN,)),
    ('greedy', 32768, 8, (CHOSEN,)),
    ('loss', 4096, 8, ('library', PEER)),
)
BENCH = ('-m', 'tools.bench')
IMPORT = (*BENCH, 'interop')
REPEATABLE = '--xla_gpu_exclude_nondeterministic_ops=true'
DEVICE_TEST = 'tests/attention/device_test.py'
RESUME_TEST = 'tests/faults/device_test.py'
SANITIZED = ('--error-exitcode', '1', '--kernel-name', 'kernel_substring=attention')
NSIGHT = (
    'ncu', '--clock-control', 'none', '-k', 'regex:attention', '--launch-count', '3', '--page',
    'details', '--section', 'SpeedOfLight', '--section', 'ComputeWorkloadAnalysis', '--section',
    'WarpStateStats', '--section', 'LaunchStats',
)  # fmt: skip


class Command(NamedTuple):
    """Subprocess of a stage. arguments: of the interpreter. seconds: its time limit. under: a
    program with its arguments, which starts and watches the interpreter. flags: of XLA."""

    name: str
    arguments: tuple[str, ...]
    seconds: float
    under: tuple[str, ...] = ()
    flags: str = ''


class Outcome(NamedTuple):
    """A command: how it ended, after how many seconds, and its last line."""

    name: str
    how: str
    seconds: float
    last: str


def stages(platform: str, dry: bool) -> dict[str, tuple[Command, ...]]:
    """The commands of each stage on that platform. dry: few and small ones."""
    backends = BACKENDS[platform]
    found = {
        'right': tuple(_right(backends, dry)),
        'fast': tuple(_fast(backends, dry)),
        'model': tuple(_models(backends, dry)),
    }
    return found | ({'why': tuple(_why(dry))} if platform == 'gpu' or dry else {})


def _right(backends: Sequence[str], dry: bool) -> Iterator[Command]:
    # Each test is named when it ends, and one that hangs ends its process with a stack: what was
    # found before it stays.
    limit = ('-o', f'faulthandler_timeout={HANG_SECONDS}')
    hangs = (*limit, '-o', 'faulthandler_exit_on_timeout=true')
    tests = ('-m', 'pytest', '-m', 'device', '-v', '--tb=short', '-rf', *hangs, DEVICE_TEST)
    together: tuple[str, ...] = ()
    shared = 'pallas_tpu' not in backends  # a TPU lets one process in
    if shared and not dry and importlib.util.find_spec('xdist') is not None:
        together = ('-n', str(min(processors.usable(), 10)))
    some = ' and (tiny or blocks_of_128 or plain_64)' if dry else ''
    yield Command('ceilings', (*BENCH, 'device_calls', 'ceilings'), 90)
    for backend in backends:
        chosen = f'repeats and {backend}{some}'
        yield Command(f'repeats_{backend}', (*tests, '-k', chosen), 100)
    for backend in dict.fromkeys((*backends, 'chunked')):
        chosen = f'agrees and {backend}{some}'
        seconds = 250 if backend == 'chunked' else 150
        yield Command(f'agrees_{backend}', (*tests, *together, '-k', chosen), seconds)
    stopped = ('-m', 'pytest', '-m', 'device', '-v', '--tb=short', RESUME_TEST)
    yield Command('resumes', stopped, 150)


def _fast(backends: Sequence[str], dry: bool) -> Iterator[Command]:
    # Each is timed next to the library in a process: after an illegal address nothing else runs.
    together = {backends[0]: tuple(backends)}
    if 'library' in backends:
        together = {name: ('library', name) for name in backends if name != 'library'}
    for other, names in together.items():
        bench = (*BENCH, 'attention', *_each('--implementation', names))
        if dry:
            size = ('--set', 'model', '--case', 'tiny_train', '--seconds', '0.1', '--budget', '20')
            yield Command(f'times_{other}', (*bench, *size), 160)
        else:
            shapes = ('--set', 'accelerator', *_each('--case', SHAPES))
            limits = ('--seconds', '0.4', '--budget', '145')
            yield Command(f'times_{other}', (*bench, *shapes, *limits), 160)


def _models(backends: Sequence[str], dry: bool) -> Iterator[Command]:
    there = {*backends, 'chunked', CHOSEN}
    torch = all(importlib.util.find_spec(name) for name in ('torch', 'transformers'))
    for_gpus = torch and not importlib.metadata.version('torch').endswith('+cpu')
    if 'mosaic_gpu' in backends and for_gpus:
        there.add(PEER)
    if dry:
        works = dict.fromkeys(work for work, *_ in MODEL_WORK)
        words = _model(tuple(works), 64, 2, 'chunked', dry)
        yield Command('all_chunked', words, 200)
        yield Command('import', (*IMPORT, '--small', '--length', '64'), 110)
        return
    for work, length, batch, wanted in MODEL_WORK:
        for backend in wanted:
            if backend in there:
                words = _model((work,), length, batch, backend, dry)
                # PyTorch compiles for about a minute.
                seconds = 180 if backend == PEER else 110
                yield Command(f'{work}_{length}_{batch}_{backend}', words, seconds)
    yield Command('import', IMPORT, 150)
    if 'mosaic_gpu' in backends:
        words = _model(('step',), 2048, 16, 'library', dry)
        # What it saves to recompute nothing, and costs that a resumed training repeats bit by bit.
        yield Command('step_2048_library_full', (*words, '--remat', 'full'), 110)
        yield Command('step_2048_library_repeatable', words, 110, flags=REPEATABLE)


def _model(
    works: Sequence[str], length: int, batch: int, backend: str, dry: bool
) -> tuple[str, ...]:
    size = ('--length', str(length), '--batch', str(batch))
    measured = ('--seconds', '0.1', '--small') if dry else ('--seconds', '6')
    other = {PEER: ('--peer',), CHOSEN: ()}.get(backend, ('--attention', backend))
    return (*BENCH, 'model', *_each('--work', works), *size, *measured, *other)


def _why(dry: bool) -> Iterator[Command]:
    def one(backend: str, case: str, *others: str) -> tuple[str, ...]:
        call = ('--implementation', backend, '--case', case, '--pass', 'gradient_entropy')
        return (*BENCH, 'device_calls', 'attention', *call, *others)

    if dry:
        yield Command('call_packed', one('chunked', 'packed'), 60)
        return
    for case in ('h64_8k', 'h128_8k'):
        for backend in ('mosaic_gpu', 'pallas_gpu'):
            yield Command(f'kernels_{case}_{backend}', one(backend, case, '--kernels'), 60)
    for tool in ('memcheck', 'racecheck'):
        under = ('compute-sanitizer', '--tool', tool, *SANITIZED)
        yield Command(tool, one('mosaic_gpu', 'packed'), 75, under)
    for case in ('h64_8k', 'h128_8k'):
        yield Command(f'profile_{case}', one('mosaic_gpu', case), 85, NSIGHT)


def _each(option: str, values: Sequence[str]) -> list[str]:
    return [word for value in values for word in (option, value)]


def run(command: Command, limit: float) -> tuple[str, str]:
    """(what it printed, 'ended', 'failed' with its status or 'killed' after `limit` seconds)."""
    environment = os.environ | {
        'PYTHONUNBUFFERED': '1',
        'PYTHONPATH': os.pathsep.join([str(ROOT), os.environ.get('PYTHONPATH', '')]),
        'XLA_PYTHON_CLIENT_PREALLOCATE': 'false',
        'XLA_FLAGS': f'{os.environ.get("XLA_FLAGS", "")} {command.flags}'.strip(),
    }
    with tempfile.TemporaryFile('w+', errors='replace') as file:
        process = subprocess.Popen(
            [*command.under, sys.executable, *command.arguments], cwd=ROOT, env=environment,
            stdout=file, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            status = process.wait(limit)
            how = 'ended' if status == 0 else f'failed with {status}'
        except subprocess.TimeoutExpired:
            how = f'killed after {limit:.0f} s'
        finally:
            with contextlib.suppress(ProcessLookupError):  # what it left behind goes too
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        file.seek(0)
        return file.read(), how


def records(command: Command, printed: str) -> Iterator[str]:
    """The lines that are JSON objects, with the command's name."""
    for line in printed.splitlines():
        with contextlib.suppress(ValueError):
            found = json.loads(line)
            if isinstance(found, dict):
                yield json.dumps({'command': command.name, **found})


def run_stage(
    stage: str, commands: Sequence[Command], out: pathlib.Path, seconds: float
) -> list[Outcome]:
    """Runs what fits into the time; appends to the stage's files after each command."""
    ends, rows = time.monotonic() + seconds, []
    for command in commands:
        left, begun = ends - time.monotonic(), time.monotonic()
        if left < LEAST_SECONDS:
            rows.append(Outcome(command.name, 'not run: the time is over', 0.0, ''))
            continue
        if command.under and shutil.which(command.under[0]) is None:
            rows.append(Outcome(command.name, f'{ABSENT} {command.under[0]}', 0.0, ''))
            continue
        print(f'{command.name} ...', flush=True)
        printed, how = run(command, min(command.seconds, left))
        with (out / f'{stage}.log').open('a') as log:
            log.write(f'==== {command.name}: {how}\n{printed}\n')
        with (out / f'{stage}.jsonl').open('a') as lines:
            lines.writelines(f'{line}\n' for line in records(command, printed))
        last = next((line.strip() for line in printed.splitlines()[::-1] if line.strip()), '')
        rows.append(Outcome(command.name, how, time.monotonic() - begun, last[:150]))
        print(f'{command.name}: {how}, {rows[-1].seconds:.0f} s: {rows[-1].last}', flush=True)
    return rows


def table(rows: Sequence[Outcome]) -> str:
    lines = ['| command | | seconds | last line |', '|---|---|---|---|']
    for row in rows:
        last = row.last.replace('|', '/')
        lines.append(f'| {row.name} | {row.how} | {row.seconds:.0f} | {last} |')
    return '\n'.join(lines) + '\n'


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n')[0])
    known = tuple(stages('cpu', dry=True))
    parser.add_argument('stage', nargs='+', choices=known)
    parser.add_argument('--out', type=pathlib.Path, required=True)
    parser.add_argument('--only', action='append', help='part of the name of a command')
    parser.add_argument('--dry', action='store_true', help='the same commands, small, on a CPU')
    options = parser.parse_args()
    named = os.environ.get('JAX_PLATFORMS', '')
    platform = {'cuda,cpu': 'gpu', 'gpu,cpu': 'gpu', 'tpu,cpu': 'tpu'}.get(named)
    if options.dry:
        platform = 'cpu'
        os.environ |= {'JAX_PLATFORMS': 'cpu', 'NOPE_DEVICE_TESTS': 'cpu'}
    if platform is None:
        parser.error(
            f'JAX_PLATFORMS is {named!r}; accepted: cuda,cpu and tpu,cpu, or --dry; the CPU has '
            'the definition'
        )
    there, well = stages(platform, options.dry), True
    for stage in options.stage:
        if stage not in there:
            parser.error(f'stage {stage} on a {platform}; accepted: {", ".join(there)}')
    out = options.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    for stage in options.stage:
        commands = [
            command
            for command in there[stage]
            if not options.only or any(part in command.name for part in options.only)
        ]
        rows = run_stage(stage, commands, out, STAGE_SECONDS)
        (out / f'{stage}.md').write_text(table(rows))
        print(out / f'{stage}.md', flush=True)
        well &= all(row.how == 'ended' or row.how.startswith(ABSENT) for row in rows)
    sys.exit(not well)
