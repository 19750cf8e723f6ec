"""A whole command killed by what it is doing, and started again: its results are the undisturbed
ones, bit by bit.

    NOPE_KILLS=200 tools/test -m faults tests/faults/kills_test.py

The kills are aimed by name (`tests.faults.aim`) at an experiment with a training, a search, four
measurements, a figure and an export (`tests.faults.experiment`), three to eight in a row in each
work folder, which begins with what an undisturbed command had finished before the first of them. A
kill counts only where the command was at its event and ended by SIGKILL.
"""

from __future__ import annotations

import collections
import os
import pathlib
import random
import shutil
import signal
import time
from collections.abc import Iterator, Sequence

import pytest

from tests.experiments.run_test import write_texts
from tests.faults import plan, results
from tests.faults.commands import OWN, Attempt, Commands, Task
from tests.faults.experiment import EVERY
from tests.faults.plan import Kill
from tests.faults.server import COMMAND

pytestmark = pytest.mark.faults

KILLS = int(os.environ.get('NOPE_KILLS', '200'))
SEED = int(os.environ.get('NOPE_KILLS_SEED', '0'))
OWN_EVERY = 8  # of the last attempts in a folder, one in so many is a program of its own
WAIT_SECONDS = 240.0


def share(part: float) -> int:
    """So much of all kills, one at least."""
    return max(round(part * KILLS), 1)


@pytest.fixture(scope='module')
def texts(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp('texts')
    write_texts(folder)
    return folder


@pytest.fixture(scope='module')
def started(tmp_path_factory) -> Iterator[Commands]:
    made = Commands(tmp_path_factory.mktemp('commands'))
    yield made
    made.close()


def experiment(texts: pathlib.Path, folder: pathlib.Path) -> Task:
    config = f'--config=tests/faults/experiment.py:{texts}'
    return Task((COMMAND, config, f'--workdir={folder}'), folder)


@pytest.fixture(scope='module')
def whole(tmp_path_factory, started, texts) -> tuple[pathlib.Path, list[plan.Event]]:
    """The folder of a command that nothing happened to, compiled there, and the events of another
    one, which has the same results with programs out of the cache."""
    folder = tmp_path_factory.mktemp('whole')
    task = experiment(texts, folder / 'compiled')
    status, said = started.run(task, cache='fill')
    assert status == 0, said[-3000:]
    again, trace = experiment(texts, folder / 'cached'), folder / 'trace.jsonl'
    status, said = started.run(again, trace=str(trace))
    assert status == 0, said[-3000:]
    assert results.differences(results.of(again.root), results.of(task.root)) == []
    return task.root, plan.read(trace)


class Tally:
    """Kills by state, those that a command ran past before they were met, and what was wrong."""

    def __init__(self) -> None:
        self.landed: collections.Counter[str] = collections.Counter()
        self.missed = 0
        self.wrong: list[str] = []
        self._began = time.monotonic()

    def add(
        self, kill: Kill, attempt: Attempt, status: int, root: pathlib.Path, there: bool
    ) -> None:
        """there: whether the folder looked as after, or at, that event."""
        if status == -signal.SIGKILL and attempt.landed and there:
            self.landed[kill.state] += 1
            return
        if status == 0:  # an earlier kill, at random inside its state, came later than planned
            self.missed += 1
            return
        errors = said(attempt)[-1500:]
        self.wrong.append(f'{root}: no kill at {kill.at}: exit status {status}\n{errors}')

    def compare(
        self, root: pathlib.Path, whole: pathlib.Path, kills: Sequence[Kill], litter: bool = True
    ) -> None:
        """Keeps the folder where it differs from a `whole` one."""
        both = (results.of(folder, litter=litter) for folder in (root, whole))
        different = results.differences(*both)
        names = ', '.join(kill.event.name for kill in kills)
        self.wrong += [f'{root}: {difference} after {names}' for difference in different]
        seconds = time.monotonic() - self._began
        total = sum(self.landed.values())
        print(f'{seconds:.0f} s, {total} kills; {names}: {different or "right"}', flush=True)
        if not different:
            shutil.rmtree(root)

    def close(self) -> None:
        for state, count in self.landed.items():
            print(f'{count:4} {state}')
        print(f'{self.missed:4} not met')
        assert self.landed, 'no kill landed'
        assert not self.wrong, '\n'.join(self.wrong)


def finish(started: Commands, task: Task, tally: Tally, cache: str = 'read') -> bool:
    """The command once more, to its end."""
    status, said = started.run(task, cache=cache)
    if status:
        tally.wrong.append(f'{task.root}: exit status {status}\n{said[-3000:]}')
    return status == 0


def begin(whole: pathlib.Path, folder: pathlib.Path, pieces: Sequence[str]) -> None:
    """A work folder with what an undisturbed command finished first."""
    folder.mkdir()
    for name in pieces:
        shutil.copytree(whole / name, folder / name)


def kill(started: Commands, task: Task, aimed: Kill, tally: Tally) -> None:
    cache = 'none' if aimed.event.name.startswith('compile') else 'read'
    attempt = started.start(task, at=aimed.at, cache=cache)
    status = started.wait(attempt)
    tally.add(aimed, attempt, status, task.root, results.there(task.root, aimed.event.name))


@pytest.mark.parametrize('workers', [1, 2])
def test_kills_of_a_data_preparation(workers, started, tmp_path) -> None:
    corpus, root = tmp_path / 'corpus.jsonl', tmp_path / 'shards'
    line = '{"text": "' + 'the cat sat on a mat ' * 400 + '"}\n'
    corpus.write_text(line * 400)
    options = f'--source=jsonl --path={corpus} --part_mib=1 --workers={workers}'
    task = Task(('experiments.cli.prepare', *options.split(), f'--out={root / "out"}'), root)
    kill_tool(started, task, 'nope prepare', share(0.09), tmp_path)


def test_kills_of_a_command_in_every_state(started, whole, texts, tmp_path) -> None:
    folder, events = whole
    tally = Tally()
    dealt = plan.deal(plan.draw(events, share(0.6), SEED), SEED)
    for number, kills in enumerate(dealt):
        task = experiment(texts, tmp_path / f'work{number}')
        begin(folder, task.root, plan.finished_before(events, kills[0]))
        for aimed in kills:
            kill(started, task, aimed, tally)
        if finish(started, task, tally, OWN if number % OWN_EVERY == 0 else 'read'):
            tally.compare(task.root, folder, kills)
    tally.close()


# How commands hold a folder: by locks of the kernel, by leases of one machine or of several.
HELD = {'locks': None, 'leases': ('', ''), "machines' leases": ('one', 'other')}


@pytest.mark.parametrize('held', HELD)
def test_kills_of_the_one_that_holds_what_another_waits_for(
    held, started, whole, texts, tmp_path
) -> None:
    """Each command is killed while the next one waits, or has gone on to other work; the last one
    comes to the end."""
    folder, events = whole
    seed = SEED + 1 + list(HELD).index(held)
    kills = plan.chain(plan.draw(events, KILLS, seed), share(0.04), seed)
    task, tally = experiment(texts, tmp_path / 'shared'), Tally()
    begin(folder, task.root, plan.finished_before(events, kills[0]))
    kills = [k._replace(state=f'two commands, {held}') for k in kills]
    if follow(started, task, kills, tally, HELD[held]):
        tally.compare(task.root, folder, kills, litter=held == 'locks')
    tally.close()


@pytest.mark.parametrize('goes_on', ['beside the other', 'after the other'])
def test_one_that_stands_still_ends_when_it_goes_on(
    goes_on, started, whole, texts, tmp_path
) -> None:
    """SIGSTOP in a training, for longer than a lease is held, and SIGCONT. What it had, another
    machine's command has taken over. A checkpoint that it was writing may come beside those of the
    other."""
    folder, _ = whole
    task = experiment(texts, tmp_path / 'shared')
    begin(folder, task.root, ('data',))
    still = started.start(task, leases='one')
    begun = f'runs/nope-*/checkpoints/{EVERY}'
    assert until(lambda: any(task.root.glob(begun)) or started.ended(still))
    os.kill(still.pid, signal.SIGSTOP)
    other = started.start(task, leases='other')
    # In its plan, and again when it holds the lease: until then the first one may keep it.
    assert until(lambda: said(other).count('train    nope-') == 2), said(other)
    status = started.wait(other) if goes_on == 'after the other' else None
    os.kill(still.pid, signal.SIGCONT)
    assert started.wait(still) == 1, said(still)
    assert (started.wait(other) if status is None else status) == 0, said(other)
    (line,) = [line for line in said(still).splitlines() if line.startswith('error: ')]
    assert 'was taken over by' in line
    different = results.differences(results.of(task.root), results.of(folder))
    assert [what for what in different if not what.endswith(': checkpoints differs')] == []
    assert saves(folder) <= saves(task.root)


def saves(folder: pathlib.Path) -> set[str]:
    """Checkpoints of all runs."""
    return {str(path.relative_to(folder)) for path in folder.glob('runs/*/checkpoints/*')}


def said(attempt: Attempt) -> str:
    return attempt.errors.read_text() if attempt.errors.exists() else ''


def follow(
    started: Commands,
    task: Task,
    kills: Sequence[Kill],
    tally: Tally,
    machines: tuple[str, str] | None,
) -> bool:
    """Whether the last command of a chain ended well."""
    holding: tuple[Kill, Attempt] | None = None
    for number in range(len(kills) + 1):
        machine = None if machines is None else machines[number % 2]
        aimed = kills[number] if number < len(kills) else None
        gate = f'{task.root}.gate{number}' if aimed else ''
        attempt = started.start(task, at=aimed and aimed.at, gate=gate, leases=machine)
        if holding is not None:
            assert until(lambda a=attempt: a.held or says_it_waits(a) or started.ended(a))
            before, held = holding
            there = results.there(task.root, before.event.name)  # before the next one sweeps
            pathlib.Path(held.aimed.gate).touch()
            tally.add(before, held, started.wait(held), task.root, there)
        if aimed is None:
            break
        assert until(lambda a=attempt: a.held or started.ended(a)), f'{aimed.at} is never met'
        holding = aimed, attempt
    status = started.wait(attempt)
    if status:
        tally.wrong.append(f'{task.root}: {status}\n{said(attempt)[-3000:]}')
    return status == 0


def says_it_waits(attempt: Attempt) -> bool:
    return 'waiting for' in said(attempt)


def until(condition) -> bool:
    end = time.monotonic() + WAIT_SECONDS
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def tool_kills(
    started: Commands, task: Task, state: str, count: int, tmp_path: pathlib.Path
) -> tuple[dict[str, bytes], list[list[Kill]]]:
    """What the command leaves undisturbed, and kills of it by folder. Its folder is removed."""
    trace = tmp_path / 'trace.jsonl'
    status, said = started.run(task, trace=str(trace))
    assert status == 0, said[-3000:]
    whole = contents(task.root)
    shutil.rmtree(task.root)
    # With the name of the whole there is nothing left to do.
    events = [e for e in plan.read(trace) if e.name != 'renamed out']
    rng = random.Random(SEED)
    chosen = [events[0], events[-1], *rng.choices(events, k=max(count - 2, 0))]
    kills = [Kill(state, e, rng.uniform(0, 0.1) if i % 2 else 0.0) for i, e in enumerate(chosen)]
    return whole, plan.deal(kills, SEED)


def contents(folder: pathlib.Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob('*'))
        if path.is_file()
    }


def kill_tool(started: Commands, task: Task, state: str, count: int, tmp_path) -> None:
    whole, dealt = tool_kills(started, task, state, count, tmp_path)
    tally = Tally()
    for kills in dealt:
        for aimed in kills:
            kill(started, task, aimed, tally)
        if finish(started, task, tally):
            different = results.differences(contents(task.root), whole)
            names = [k.event.name for k in kills]
            tally.wrong += [f'{state}: {what} after {names}' for what in different]
        shutil.rmtree(task.root)
    tally.close()


def test_kills_of_an_export_tool(started, whole, tmp_path) -> None:
    (run,) = (whole[0] / 'runs').glob('search-*')
    root = tmp_path / 'exports'
    task = Task(('experiments.cli.export', str(run), str(root / 'out')), root)
    kill_tool(started, task, 'nope export', share(0.1), tmp_path)
