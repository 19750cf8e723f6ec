"""Verdicts of figures on each claim, by size."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Collection, Mapping

from experiments import config_files
from experiments.board.summaries import Summary
from experiments.figures import by_kind
from experiments.figures.claims import keys
from experiments.figures.claims.catalogue import CLAIMS
from experiments.figures.claims.claim import Claim
from experiments.figures.claims.headline import Numbers
from experiments.figures.claims.verdict import FAILS, HOLDS, NOT_MEASURED, verdict
from experiments.figures.look import natural

DISAGREE = 'figures disagree'
# In the order in which sizes are shown.
SIZES = ('quick', 'small', 'medium', 'large', 'paper')
RELEASED = 'released'  # shown behind these: published models, which the user gives
# Of configs that put the same claims of split heads to other models or prompts: which.
ASKED: Mapping[str, str] = {
    'frontier': 'with lambda',
    'reach': 'as trained',
    'split_passkey': 'with lambda',
    'split_seeds': 'as trained',
    'split_text': 'as trained, in real text',
    'split_window': 'as trained',
}


@dataclasses.dataclass(frozen=True)
class Decision:
    """Verdict of one figure on a claim at one size.

    The size is 'quick' or the like. Seeds are those of the config, () where not known. The verdict
    is no 'not measured'. It rests on `numbers`, each with its mean and 95 % interval over seeds or
    resamples. The statement says what was decided, with its thresholds.
    """

    size: str
    figure: str
    seeds: tuple[int, ...]
    verdict: str
    numbers: Numbers
    statement: str
    summary: Summary


@dataclasses.dataclass(frozen=True)
class Standing:
    """A claim on one text, the configs whose figure decides it, and the decisions, by size and
    figure. Several of one size need not agree. text: '' for that of the configs, whose standing is
    `first` for every other text. asked: which split heads, as ' (with lambda)', else ''."""

    claim: Claim
    configs: tuple[str, ...]
    decisions: tuple[Decision, ...]
    text: str = ''
    asked: str = ''
    first: Standing | None = None

    def at(self, size: str) -> tuple[Decision, ...]:
        return tuple(decision for decision in self.decisions if decision.size == size)

    def deciding(self, size: str) -> tuple[Decision, ...]:
        """Decisions of the figures with the most seeds."""
        found = self.at(size)
        most = max((len(decision.seeds) for decision in found), default=0)
        return tuple(decision for decision in found if len(decision.seeds) == most)

    def verdict(self, size: str) -> str:
        """That of the figures with the most seeds: an undecided one leaves the claim undecided.
        DISAGREE where two are opposite, and where one with fewer seeds is, which may have measured
        what they have not; NOT_MEASURED without one."""
        cases = [decision.verdict for decision in self.deciding(size)]
        if not cases:
            return NOT_MEASURED
        found = verdict(cases, opposed=DISAGREE)
        everything = verdict([found, *(d.verdict for d in self.at(size))], opposed=DISAGREE)
        return everything if found in (HOLDS, FAILS) and everything == DISAGREE else found


@functools.cache
def configs() -> Mapping[str, tuple[str, ...]]:
    """Claim -> names of the configs whose figure decides it: those that give the roles that its
    rule needs."""
    found: dict[str, list[str]] = {claim: [] for claim in CLAIMS}
    for name in sorted(config_files.names(), key=natural.order):
        options = config_files.module(name).get_config().figure.to_dict()
        for rule in by_kind.asked(options):
            found[rule.id].append(name)
    return {claim: tuple(names) for claim, names in found.items()}


def standings(summaries: Collection[Summary]) -> tuple[Standing, ...]:
    """One for every claim and what is `asked`, the first paper's eleven first, and behind it one
    for each other text on which it is decided. ValueError for two summaries of one figure at one
    size."""
    places = [(s.size, s.figure) for s in summaries]
    twice = sorted({place for place in places if places.count(place) > 1})
    if twice:
        raise ValueError(f'the summary of {twice[0][1]!r} at {twice[0][0]!r} is given twice')
    ordered = sorted(summaries, key=lambda s: (rank(s.size), s.figure))
    numbered = sorted(CLAIMS.values(), key=lambda c: (c.number is None, c.number or 0))
    found: dict[tuple[str, str, str], list[Decision]] = {}
    for s in ordered:
        for c in (c for c in s.claims if c.verdict != NOT_MEASURED):
            decision = Decision(s.size, s.figure, s.seeds, c.verdict, c.numbers, c.statement, s)
            named, read = config_files.parted(s.figure)[1], config_files.text_of(s.figure, s.size)
            text = read if read in config_files.TEXTS else named
            found.setdefault((c.id, asked(c.id, s.figure), text), []).append(decision)
    made = []
    for claim in numbered:
        kinds = sorted({kind for name, kind, _ in found if name == claim.id})
        for kind in kinds or ['']:
            own = tuple(found.get((claim.id, kind, ''), ()))
            first = Standing(claim, configs()[claim.id], own, asked=kind)
            made.append(first)
            for text in config_files.TEXTS:
                if decisions := found.get((claim.id, kind, text)):
                    own = tuple(decisions)
                    made.append(dataclasses.replace(first, decisions=own, text=text, first=first))
    return tuple(made)


def sizes_of(summaries: Collection[Summary]) -> tuple[str, ...]:
    """Sizes of the summaries, in the order in which they are shown."""
    return tuple(sorted({s.size for s in summaries}, key=rank))


def rank(size: str) -> tuple[int, str]:
    """Sorts sizes as they are shown."""
    return (SIZES.index(size) if size in SIZES else len(SIZES), size)


def asked(claim: str, figure: str) -> str:
    """' (with lambda)': which split heads a figure asks, of a claim about these, where several
    configs ask different ones; '' elsewhere."""
    name, _ = config_files.parted(figure)
    needs = [() if callable(rule.needs) else rule.needs for rule in by_kind.of_claim(claim)]
    ours = {keys.SPLIT, keys.SPLIT_FOUR} & {need for each in needs for need in each}
    return f' ({ASKED[name]})' if name in ASKED and ours else ''
