"""All cases of all targets in processes under limits, and a table of what they came to.

    python -m tests.fuzz.campaign [--share=1.0] [--seed=0] [TARGET ...]

Exit status 1 where a case was wrong. A process that dies costs the case that it ran, which is
wrong; one that is still at a case after `HANGS_SECONDS` is killed, and so is that case.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

from tests.fuzz import targets, worker
from tests.fuzz.case import Target

HANGS_SECONDS = 120.0  # by the clock: machines are shared
STARTS_SECONDS = 600.0
ROOT = pathlib.Path(__file__).parents[2]

Span = tuple[str, int, int]  # a target, its first case and the one behind its last


@dataclasses.dataclass
class Tally:
    """What the cases of a target came to. wrong: number of the case and why, of each."""

    target: str
    cases: int = 0
    accepted: int = 0
    seconds: float = 0.0
    wrong: list[tuple[int, str]] = dataclasses.field(default_factory=list)

    @property
    def refused(self) -> int:
        return self.cases - self.accepted - len(self.wrong)


def run(chosen: Sequence[Target], share: float, seed: int) -> list[Tally]:
    """A share of the cases of each target, at least one, one process after another."""
    counts = [max(round(target.cases * share), 1) for target in chosen]
    tallies = {t.name: Tally(t.name, n) for t, n in zip(chosen, counts, strict=True)}
    spans = [(t.name, 0, n) for t, n in zip(chosen, counts, strict=True)]
    while spans:
        spans = _attempt(tallies, spans, seed)
    return list(tallies.values())


def _attempt(tallies: dict[str, Tally], spans: list[Span], seed: int) -> list[Span]:
    """Runs the cases of the spans in one process; returns those that it did not come to."""
    with tempfile.TemporaryDirectory(prefix='fuzz-') as folder:
        now = pathlib.Path(folder) / worker.NOW
        arguments = [str(seed), folder, *(f'{name}:{a}:{b}' for name, a, b in spans)]
        with tempfile.TemporaryFile('w+') as output:
            began = time.monotonic()
            process = subprocess.Popen(
                [sys.executable, '-m', 'tests.fuzz.worker', *arguments],
                cwd=ROOT,
                stdout=output,
                stderr=subprocess.DEVNULL,  # what libraries say of what they are given
                env={**os.environ, 'JAX_PLATFORMS': 'cpu', 'PYTHONPATH': str(ROOT)},
            )
            hung = _watch(process, now)
            output.seek(0)
            lines = [json.loads(line) for line in output if line.startswith('{"target": ')]
        index, reached, accepted = worker.progress(now)
    finished = 0
    for line in lines:
        tally = tallies[line['target']]
        if 'why' in line:
            tally.wrong.append((line['case'], line['why']))
        else:
            finished += 1
            tally.accepted += line['accepted']
            tally.seconds += line['seconds']
    if finished == len(spans):
        return []
    name, first, last = spans[index]
    tally, reached = tallies[name], max(reached, first)
    tally.accepted += accepted
    tally.seconds += time.monotonic() - began if finished == 0 else 0.0
    tally.wrong.append(
        (reached, 'it hangs' if hung else f'the process ends with {process.returncode}')
    )
    rest = [(name, reached + 1, last)] if reached + 1 < last else []
    return [*rest, *spans[index + 1 :]]


def _watch(process: subprocess.Popen, now: pathlib.Path) -> bool:
    """Waits for the process; True where it had to be killed, as a case did not end."""
    seen, since = worker.progress(now), time.monotonic()
    while process.poll() is None:
        time.sleep(0.2)
        found = worker.progress(now)
        if found != seen:
            seen, since = found, time.monotonic()
        if time.monotonic() - since > (HANGS_SECONDS if found[1] >= 0 else STARTS_SECONDS):
            process.kill()
            process.wait()
            return True
    return False


def table(tallies: Sequence[Tally]) -> str:
    """Markdown: cases, refused, accepted, wrong and seconds of each target, and of all."""
    every = Tally('all', sum(tally.cases for tally in tallies))
    every.accepted = sum(tally.accepted for tally in tallies)
    every.seconds = sum(tally.seconds for tally in tallies)
    every.wrong = [wrong for tally in tallies for wrong in tally.wrong]
    head = [
        '| target | cases | refused | accepted | wrong | seconds |',
        '|---|---|---|---|---|---|',
    ]
    return '\n'.join([*head, *map(_row, [*tallies, every])])


def _row(tally: Tally) -> str:
    numbers = (tally.cases, tally.refused, tally.accepted, len(tally.wrong), round(tally.seconds))
    return f'| {tally.target} | {" | ".join(f"{number:,}" for number in numbers)} |'


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('targets', nargs='*')
    parser.add_argument('--share', type=float, default=1.0)
    parser.add_argument('--seed', type=int, default=0)
    given = parser.parse_args(argv)
    chosen = [targets.by_name(name) for name in given.targets] or targets.every()
    tallies = run(chosen, given.share, given.seed)
    for tally in tallies:
        for case, why in tally.wrong:
            print(f'{tally.target} case {case}: {why}', flush=True)
    print(table(tallies))
    return 1 if any(tally.wrong for tally in tallies) else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
