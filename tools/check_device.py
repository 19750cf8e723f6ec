"""First contact with an accelerator: whether the kernels are right there, and how fast.

    JAX_PLATFORMS=cuda,cpu python tools/check_device.py right --out=FOLDER     # or tpu,cpu
    JAX_PLATFORMS=cuda,cpu python tools/check_device.py fast --out=FOLDER
    JAX_PLATFORMS=cuda,cpu python tools/check_device.py model --out=FOLDER [--only=step]
    python tools/check_device.py right fast model --out=FOLDER --dry    # small, on a CPU: a minute

Needs JAX and what `nope` imports besides (flax, optax, orbax); `right` also needs pytest and
hypothesis, and runs several tests at once where there is pytest-xdist. A stage takes at most nine
minutes:

right   versions and ceilings (a matrix product, a copy); every backend run 50 times in memory full
        of NaN, bit by bit; every backend against the definition in float64 on all cases
fast    six shapes of a 1.1B model's layer, forward and backward, with and without entropy: cuDNN or
        splash attention and our kernels; then block sizes, whose table goes into FOLDER
model   the 1.1B model by backend: training, search and evaluation, the entropy to 131,072 tokens;
        training and evaluation in PyTorch where it is installed

Every command has a time limit of its own, after which it and its children are killed (a barrier
that waits forever is a hang); what does not fit into the nine minutes is named and not run. FOLDER
gets STAGE.log, STAGE.jsonl with the lines that are JSON, and STAGE.md with a row a command: ended,
failed, killed or not run, and its last line. Exits with 1 where one did not end well.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[1]
STAGE_SECONDS = 540
LEAST_SECONDS = 5  # for which a command is begun
SHAPES = ('h64_2k', 'h128_8k', 'h64_16k', 'h64_8k', 'h128_2k', 'h128_16k')
BACKENDS = {
    'gpu': ('library', 'mosaic_gpu', 'pallas_gpu'),
    'tpu': ('library', 'pallas_tpu'),
    'cpu': ('chunked',),
}
PEER = 'pytorch'
# Work, length, batch and by whom, the most wanted first.
MODEL_WORK = (
    ('step', 2048, 16, ('library', 'mosaic_gpu', 'pallas_gpu', 'pallas_tpu', PEER)),
    ('entropy', 16384, 4, ('mosaic_gpu', 'pallas_gpu', 'pallas_tpu', 'chunked')),
    ('entropy', 4096, 1, (PEER,)),
    ('entropy', 131072, 1, ('mosaic_gpu', 'pallas_gpu', 'pallas_tpu')),
    ('search', 32768, 1, ('library', 'mosaic_gpu', 'pallas_tpu')),
    ('loss', 16384, 4, ('library',)),
)
DEVICE_TEST = 'tests/attention/device_test.py'


@dataclasses.dataclass(frozen=True)
class Command:
    """Subprocess of a stage. arguments: of the interpreter. seconds: its time limit."""

    name: str
    arguments: tuple[str, ...]
    seconds: float


class Row(NamedTuple):
    """A command: how it ended, after how many seconds, and its last line."""

    name: str
    how: str
    seconds: float
    last: str


def stages(platform: str, dry: bool) -> dict[str, tuple[Command, ...]]:
    """The commands of each stage on that platform. dry: few and small ones."""
    backends = BACKENDS[platform]
    tests = ('-m', 'pytest', '-m', 'device', '-q', '--tb=short', '-rf', DEVICE_TEST)
    together: tuple[str, ...] = ()
    if not dry and importlib.util.find_spec('xdist') is not None:
        together = ('-n', str(min(os.cpu_count() or 1, 10)))
    some = ' and (tiny or blocks_of_128 or plain_64)' if dry else ''
    right = [Command('ceilings', ('tools/_ceilings.py',), 90)]
    for backend in backends:
        chosen = f'repeats and {backend}{some}'
        right.append(Command(f'repeats_{backend}', (*tests, '-k', chosen), 100))
    for backend in dict.fromkeys((*backends, 'chunked')):
        chosen = f'agrees and {backend}{some}'
        right.append(Command(f'agrees_{backend}', (*tests, *together, '-k', chosen), 150))
    bench = ['tools/bench_attention.py', *_each('--implementation', backends)]
    if dry:
        bench += ['--set', 'model', '--case', 'tiny_train', '--seconds', '0.1', '--budget', '20']
    else:
        bench += ['--set', 'accelerator', *_each('--case', SHAPES), '--seconds', '0.5']
        bench += ['--budget', '300']
    fast = [Command('times', tuple(bench), 330)]
    if not dry:
        tune = ('tools/tune_attention.py', '--seconds', '180', '--folder', '{out}')
        fast.append(Command('blocks', tune, 220))
    others = ['chunked']
    if all(importlib.util.find_spec(name) for name in ('torch', 'transformers')):
        others.append(PEER)
    model = {}
    for work, length, batch, wanted in MODEL_WORK:
        for backend in wanted if not dry else ('chunked',):
            if backend in (*backends, *others):
                name = f'{work}_{backend}' if dry else f'{work}_{length}_{backend}'
                model[name] = Command(name, _model(work, length, batch, backend, dry), 110)
    return {'right': tuple(right), 'fast': tuple(fast), 'model': tuple(model.values())}


def _model(work: str, length: int, batch: int, backend: str, dry: bool) -> tuple[str, ...]:
    size: tuple[str, ...] = ('--length', str(length), '--batch', str(batch), '--seconds', '10')
    if dry:
        size = ('--length', '64', '--batch', '2', '--seconds', '0.1', '--small')
    other = ('--peer',) if backend == PEER else ('--attention', backend)
    return ('tools/bench_model.py', '--work', work, *size, *other)


def _each(option: str, values: Sequence[str]) -> list[str]:
    return [word for value in values for word in (option, value)]


def run(command: Command, out: pathlib.Path, limit: float) -> tuple[str, str]:
    """(what it printed, 'ended', 'failed' with its status or 'killed' after `limit` seconds)."""
    words = [word.replace('{out}', str(out)) for word in command.arguments]
    environment = os.environ | {
        'PYTHONUNBUFFERED': '1',
        'PYTHONPATH': os.pathsep.join([str(ROOT), os.environ.get('PYTHONPATH', '')]),
        'XLA_PYTHON_CLIENT_PREALLOCATE': 'false',
    }
    with tempfile.TemporaryFile('w+', errors='replace') as file:
        process = subprocess.Popen(
            [sys.executable, *words], cwd=ROOT, env=environment, stdout=file,
            stderr=subprocess.STDOUT, start_new_session=True,
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
) -> list[Row]:
    """Runs what fits into the time; appends to the stage's files after each command."""
    ends, rows = time.monotonic() + seconds, []
    for command in commands:
        left, begun = ends - time.monotonic(), time.monotonic()
        if left < LEAST_SECONDS:
            rows.append(Row(command.name, 'not run: the time is over', 0.0, ''))
            continue
        print(f'{command.name} ...', flush=True)
        printed, how = run(command, out, min(command.seconds, left))
        with (out / f'{stage}.log').open('a') as log:
            log.write(f'==== {command.name}: {how}\n{printed}\n')
        with (out / f'{stage}.jsonl').open('a') as lines:
            lines.writelines(f'{line}\n' for line in records(command, printed))
        last = next((line.strip() for line in printed.splitlines()[::-1] if line.strip()), '')
        rows.append(Row(command.name, how, time.monotonic() - begun, last[:150]))
        print(f'{command.name}: {how}, {rows[-1].seconds:.0f} s: {rows[-1].last}', flush=True)
    return rows


def table(rows: Sequence[Row]) -> str:
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
    named = os.environ.get('JAX_PLATFORMS', '').split(',')[0]
    platform = {'cuda': 'gpu', 'gpu': 'gpu', 'tpu': 'tpu'}.get(named)
    if options.dry:
        platform = 'cpu'
        os.environ |= {'JAX_PLATFORMS': 'cpu', 'NOPE_DEVICE_TESTS': 'cpu'}
    if platform is None:
        parser.error(f'JAX_PLATFORMS is {named!r}; accepted: cuda,cpu and tpu,cpu, or --dry')
    out = options.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    well = True
    for stage in options.stage:
        commands = [
            command
            for command in stages(platform, options.dry)[stage]
            if not options.only or any(part in command.name for part in options.only)
        ]
        rows = run_stage(stage, commands, out, STAGE_SECONDS)
        (out / f'{stage}.md').write_text(table(rows))
        print(out / f'{stage}.md', flush=True)
        well &= all(row.how == 'ended' for row in rows)
    sys.exit(not well)


if __name__ == '__main__':
    main()
