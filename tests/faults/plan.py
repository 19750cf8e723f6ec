"""Kills of a command by what it is doing, dealt to work folders in an order that can be met.

A command that was killed does again what it had not finished, so of two kills in one folder the
second has to be at a later event, or at the same one where that comes again.
"""

from __future__ import annotations

import json
import pathlib
import random
import re
from collections.abc import Sequence
from typing import NamedTuple

from experiments import history, pieces

FEWEST, MOST = 3, 8  # kills in one folder
POINT_SECONDS = 0.1
AGAIN = ('compile', 'step', 'save', 'opened', 'half', 'unrenamed', 'restore', 'draw')
FILE = r'(opened|half|unrenamed|renamed)'

# State -> its events, and its share of all kills.
STATES = {
    'a compilation, to the end of the first step': (r'compile runs/nope', 14),
    'a step of the training': (r'step runs/nope', 14),
    'a checkpoint begun': (r'save runs/nope', 26),
    'a checkpoint sealed': (r'sealed runs/nope', 20),
    'an old checkpoint half removed': (r'removing runs/nope', 6),
    'a search: compilation, steps, saves': (r'(compile|step|save|sealed|removing) runs/search', 28),
    'a small file of a run': (rf'{FILE} runs/', 16),
    'a grid of multipliers': (rf'(item|{FILE}) records/multiplier_grid', 14),
    'another measurement': (r'item records/(?!multiplier)|\S+ records/.*samples', 16),
    'records half written': (rf'{FILE} records/(?!multiplier).*\.(npz|csv|json)$', 16),
    'drawing': (r'draw |\S+ figures/', 16),
    'an export': (r'\S+ exports/', 16),
    'tokenisation': (r'tokenise |\S+ data/', 16),
}
# Later ones of a name come in a fresh folder alone, where they are first: kills for it to go on to
# have to be left.
EARLY = re.compile(r' (data|runs/nope)')
RESTORING = 'a checkpoint being read again'
RESTORES = 12  # of 230; each follows a kill in training


class Event(NamedTuple):
    """place: when it came in a run that nothing happened to, in seconds. seconds: how long it
    took."""

    name: str
    number: int
    place: float
    seconds: float


class Kill(NamedTuple):
    """seconds: from the event to the kill."""

    state: str
    event: Event
    seconds: float

    @property
    def at(self) -> tuple[str, int, float]:
        return self.event.name, self.event.number, self.seconds


def read(trace: pathlib.Path) -> list[Event]:
    """The events of a run that nothing happened to. Those of the threads that save have the place
    of the step after which they saved."""
    rows = [json.loads(line) for line in trace.read_text().splitlines()]
    steps = {row['event']: row['began'] for row in rows if row['event'].startswith('step ')}
    events, saving = [], 0.0
    for row in sorted(rows, key=lambda row: row['began']):
        kind, _, rest = row['event'].partition(' ')
        place = row['began']
        if kind in ('save', 'sealed'):
            place = steps[f'step {rest}'] + {'save': 1e-6, 'sealed': 3e-6}[kind]
            saving = place if kind == 'save' else saving
        elif kind == 'removing':
            place = saving + 4e-6
        events.append(Event(row['event'], row['number'], place, row['seconds']))
    return events


def draw(events: Sequence[Event], kills: int, seed: int) -> list[Kill]:
    """Of every state the first and the last event, others at random, half of them after a delay."""
    rng = random.Random(seed)
    shares = sum(share for _, share in STATES.values()) + RESTORES
    drawn: list[Kill] = []
    for state, (pattern, share) in STATES.items():
        mine = [e for e in events if re.match(pattern, e.name)]
        mine = sorted(
            (e for e in mine if e.number == 1 or EARLY.search(e.name)), key=lambda e: e.place
        )
        assert mine, f'{state}: the command came by none of its events'
        count = max(round(kills * share / shares), 1)
        chosen = [mine[0], mine[-1], *rng.choices(mine, k=max(count - 2, 0))][:count]
        for number, event in enumerate(chosen):
            most = max(event.seconds, POINT_SECONDS)
            drawn.append(Kill(state, event, rng.uniform(0, most) if number % 2 else 0.0))
    wanted = max(kills - len(drawn), 1)
    return drawn + _restores(drawn, events, wanted, rng)


def chain(kills: Sequence[Kill], count: int, seed: int) -> list[Kill]:
    """Kills for commands that follow each other in one folder."""
    rng = random.Random(seed)
    once = [kill for kill in kills if kill.event.number == 1 and kill.state != RESTORING]
    found: list[Kill] = []
    for kill in sorted(rng.sample(once, min(3 * count, len(once))), key=_place):
        if _may_follow(found, kill):
            found.append(kill)
    start = rng.randint(0, max(len(found) - count, 0))
    return found[start : start + count]


def deal(kills: Sequence[Kill], seed: int) -> list[list[Kill]]:
    """Kills by folder, each list in an order that can be met: neighbours of the whole order, in
    every third folder ones from all over it."""
    rng = random.Random(seed)
    left = sorted((kill for kill in kills if kill.state != RESTORING), key=_place)
    folders: list[list[Kill]] = []
    while left:
        size, spread = rng.randint(FEWEST, MOST), len(folders) % 3 == 2
        tried = sorted(rng.sample(left, min(size, len(left))), key=_place) if spread else left
        folder: list[Kill] = []
        for kill in tried:
            if len(folder) < size and _may_follow(folder, kill):
                folder.append(kill)
        folders.append(folder)
        left = [kill for kill in left if not any(kill is taken for taken in folder)]
    for kill in kills:
        if kill.state == RESTORING:
            folder, place = rng.choice(_before_restores(folders, kill))
            folder.insert(place, kill)
    return folders


def _before_restores(folders: Sequence[list[Kill]], kill: Kill) -> list[tuple[list[Kill], int]]:
    """Folders and places in them where the next attempt restores the run of `kill`."""
    return [
        (folder, i + 1)
        for folder in folders
        for i, before in enumerate(folder)
        if _is_in_training(before, kill.event.name)
    ]


def piece(event: str) -> str:
    """The folder of a work folder that an event belongs to."""
    return '/'.join(event.split(' ')[1].split('/')[:2])


def finished_before(events: Sequence[Event], kill: Kill) -> list[str]:
    """The pieces that a command has finished before it begins that of `kill`, none for the first;
    those that are made with every command do not count."""
    begun = list(dict.fromkeys(piece(event.name) for event in events))
    before = begun[: begun.index(piece(kill.event.name))]
    remade = (history.FILE, f'{pieces.ROOM}/', 'figures')
    return [name for name in before if not any(part in name for part in remade)]


def _place(kill: Kill) -> float:
    return kill.event.place


def _restores(
    drawn: Sequence[Kill], events: Sequence[Event], count: int, rng: random.Random
) -> list[Kill]:
    wanted = [e for e in events if e.name.startswith('restore ')]
    wanted = [e for e in wanted if any(_is_in_training(kill, e.name) for kill in drawn)]
    chosen = [wanted[i % len(wanted)] for i in range(count)]
    return [Kill(RESTORING, e, rng.uniform(0, 0.2) if i % 2 else 0.0) for i, e in enumerate(chosen)]


def _is_in_training(kill: Kill, restore: str) -> bool:
    """Whether the next attempt restores this run after that kill."""
    run = restore.removeprefix('restore ')
    return re.match(rf'(compile|step|save|sealed) {re.escape(run)}\b', kill.event.name) is not None


def _may_follow(folder: Sequence[Kill], kill: Kill) -> bool:
    if not folder:
        return True
    if kill.event.number > 1:
        return False
    last = folder[-1].event
    if last.name == kill.event.name:
        return last.name.startswith(AGAIN)
    if kill.event.name.startswith('removing'):  # by the save that seals, not after it
        return last.place < kill.event.place - 3e-6
    return last.place < kill.event.place
