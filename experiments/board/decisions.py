"""Rows of the board: each claim of the catalogue with what figures decided of it, by size."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from experiments.board.entries import ENTRIES
from experiments.board.summaries import Summary
from experiments.figures.claims.catalogue import CLAIMS
from experiments.figures.claims.headline import Numbers, line

NOT_MEASURED = 'not measured'
DISAGREE = 'figures disagree'
UNDECIDED = 'undecided'
OPPOSITE = {'holds', 'does not hold'}
# In the order in which sizes are shown.
SIZES = ('quick', 'small', 'medium', 'paper')
RELEASED = 'released'  # shown behind these: published models, which the user gives


@dataclasses.dataclass(frozen=True)
class Decision:
    """Verdict of one figure on a claim at one size.

    size: 'quick' or the like. figure: its name. seeds: of its config, () where not known. verdict:
    'holds', 'does not hold', 'undecided' or 'reading'. numbers: what the verdict rests on, each
    with its mean and 95 % interval over seeds, of one by resamples. statement: what was decided,
    with its thresholds. changed: settings of the figure that are not its config's, 'PATH=VALUE'.
    """

    size: str
    figure: str
    seeds: tuple[int, ...]
    verdict: str
    numbers: Numbers
    statement: str
    changed: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """`numbers` as one line."""
        return line(self.numbers)


@dataclasses.dataclass(frozen=True)
class Row:
    """One claim. number: of the paper's eleven, None for others. id: in the catalogue. short: the
    claim in a few words. paper: the words of its source, '' of readings. printed: their numbers in
    short, '' where there are none. configs: those whose figure decides it. decisions: by size, then
    by name of the figure; several of one size need not agree."""

    number: int | None
    id: str
    short: str
    paper: str
    printed: str
    configs: tuple[str, ...]
    decisions: tuple[Decision, ...]

    def at(self, size: str) -> tuple[Decision, ...]:
        return tuple(decision for decision in self.decisions if decision.size == size)

    def verdict(self, size: str) -> str:
        """That of the figures of the size with the most seeds: one of them that is undecided leaves
        the claim undecided. DISAGREE where two of them are opposite, and where one with fewer seeds
        is, which may have measured what they have not; NOT_MEASURED without one."""
        decisions = self.at(size)
        if not decisions:
            return NOT_MEASURED
        most = max(len(decision.seeds) for decision in decisions)
        found = {decision.verdict for decision in decisions if len(decision.seeds) == most}
        if found >= OPPOSITE:
            return DISAGREE
        if len(found) > 1:
            return UNDECIDED
        (verdict,) = found
        opposed = {decision.verdict for decision in decisions} >= OPPOSITE
        return DISAGREE if opposed and verdict in OPPOSITE else verdict

    def by_one_seed(self, size: str) -> bool:
        """Whether figures of a single seed alone say it holds, or does not."""
        alone = {len(decision.seeds) for decision in self.at(size)} == {1}
        return alone and self.verdict(size) in OPPOSITE

    def mixed(self, size: str) -> bool:
        """Whether its figures have several verdicts, each of which is then shown."""
        return len({decision.verdict for decision in self.at(size)}) > 1


@dataclasses.dataclass(frozen=True)
class Missing:
    """A figure that was not drawn. reason: why. remedy: what to do. failed: whether that is a
    failure; else it waits for files that only the user has."""

    figure: str
    size: str
    reason: str
    remedy: str
    failed: bool


def rows(summaries: Collection[Summary]) -> tuple[Row, ...]:
    """A row for every claim of the catalogue, the paper's eleven first. ValueError for two
    summaries of one figure at one size."""
    places = [(s.size, s.figure) for s in summaries]
    twice = sorted({place for place in places if places.count(place) > 1})
    if twice:
        raise ValueError(f'the summary of {twice[0][1]!r} at {twice[0][0]!r} is given twice')
    ordered = sorted(summaries, key=lambda s: (rank(s.size), s.figure))
    missing = [name for name in CLAIMS if name not in ENTRIES]
    if missing:
        raise ValueError(f'the claim {missing[0]!r} has no line in experiments/board/entries.py')
    numbered = sorted(CLAIMS.values(), key=lambda c: (c.number is None, c.number or 0))
    return tuple(
        Row(
            listed.number,
            listed.id,
            ENTRIES[listed.id].short,
            listed.paper,
            ENTRIES[listed.id].printed,
            ENTRIES[listed.id].configs,
            _decisions(listed.id, ordered),
        )
        for listed in numbered
    )


def sizes_of(summaries: Collection[Summary]) -> tuple[str, ...]:
    """Those that there are, in the order in which they are shown."""
    return tuple(sorted({s.size for s in summaries}, key=rank))


def rank(size: str) -> tuple[int, str]:
    """Sorts sizes as they are shown."""
    return (SIZES.index(size) if size in SIZES else len(SIZES), size)


def _decisions(claim: str, ordered: Collection[Summary]) -> tuple[Decision, ...]:
    return tuple(
        Decision(
            s.size, s.figure, s.seeds, found.verdict, found.numbers, found.statement, s.changed
        )
        for s in ordered
        for found in s.claims
        if found.id == claim and found.verdict != NOT_MEASURED
    )
