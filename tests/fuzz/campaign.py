"""All cases of all targets, each target in processes under limits; a table of what they came to.

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


@dataclasses.dataclass
class Tally:
    """What the cases of a target came to. wrong: number of the case and why, of each."""

    target: str
    cases: int = 0
    accepted: int = 0
    refused: int = 0
    seconds: float = 0.0
    wrong: list[tuple[int, str]] = dataclasses.field(default_factory=list)


def run(target: Target, share: float, seed: int) -> Tally:
    """A share of a target's cases, at least one."""
    count = max(round(target.cases * share), 1)
    tally, first, began = Tally(target.name, cases=count), 0, time.monotonic()
    while first < count:
        first = _attempt(tally, first, count, seed)
    tally.seconds = time.monotonic() - began
    tally.refused = count - tally.accepted - len(tally.wrong)
    return tally


def _attempt(tally: Tally, first: int, last: int, seed: int) -> int:
    """Runs the cases [first, last) in one process; returns the first that it did not come to."""
    with tempfile.TemporaryDirectory(prefix='fuzz-') as folder:
        now = pathlib.Path(folder) / worker.NOW
        arguments = [tally.target, str(first), str(last), str(seed), folder]
        with tempfile.TemporaryFile('w+') as output:
            process = subprocess.Popen(
                [sys.executable, '-m', 'tests.fuzz.worker', *arguments],
                cwd=ROOT,
                stdout=output,
                stderr=subprocess.DEVNULL,  # what libraries say of what they are given
                env={**os.environ, 'JAX_PLATFORMS': 'cpu', 'PYTHONPATH': str(ROOT)},
            )
            hung = _watch(process, now)
            output.seek(0)
            lines = [json.loads(line) for line in output if line.startswith('{')]
        reached, accepted = worker.progress(now)
    tally.wrong += [(line['case'], line['why']) for line in lines]
    tally.accepted += accepted
    if reached == last:
        return last
    reached = max(reached, first)
    tally.wrong.append(
        (reached, 'it hangs' if hung else f'the process ends with {process.returncode}')
    )
    return reached + 1


def _watch(process: subprocess.Popen, now: pathlib.Path) -> bool:
    """Waits for the process; True where it had to be killed, as a case did not end."""
    seen, since = (-1, 0), time.monotonic()
    while process.poll() is None:
        time.sleep(0.2)
        found = worker.progress(now)
        if found != seen:
            seen, since = found, time.monotonic()
        if time.monotonic() - since > (HANGS_SECONDS if found[0] >= 0 else STARTS_SECONDS):
            process.kill()
            process.wait()
            return True
    return False


def table(tallies: Sequence[Tally]) -> str:
    """Markdown: cases, refused, accepted, wrong and seconds of each target, and of all."""
    lines = [
        '| target | cases | refused | accepted | wrong | seconds |',
        '|---|---|---|---|---|---|',
    ]
    every = Tally('all')
    for tally in tallies:
        lines.append(_row(tally))
        every.cases, every.refused = every.cases + tally.cases, every.refused + tally.refused
        every.accepted, every.seconds = (
            every.accepted + tally.accepted,
            every.seconds + tally.seconds,
        )
        every.wrong += tally.wrong
    return '\n'.join([*lines, _row(every)])


def _row(tally: Tally) -> str:
    return (
        f'| {tally.target} | {tally.cases:,} | {tally.refused:,} | {tally.accepted:,} | '
        f'{len(tally.wrong)} | {tally.seconds:.0f} |'
    )


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('targets', nargs='*')
    parser.add_argument('--share', type=float, default=1.0)
    parser.add_argument('--seed', type=int, default=0)
    given = parser.parse_args(argv)
    tallies = []
    for target in targets.every():
        if given.targets and target.name not in given.targets:
            continue
        tally = run(target, given.share, given.seed)
        tallies.append(tally)
        print(_row(tally), flush=True)
        for case, why in tally.wrong:
            print(f'    case {case}: {why}', flush=True)
    print(table(tallies))
    return 1 if any(tally.wrong for tally in tallies) else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
