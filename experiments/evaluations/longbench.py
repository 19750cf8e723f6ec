"""LongBench in English, from local files."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterator
from typing import Any, ClassVar, Self

from experiments.bench import Bench
from experiments.config import Section
from experiments.evaluations.base import Rows, TableRow
from experiments.evaluations.entry import EvalEntry, count_of
from experiments.evaluations.text_base import (
    ASKING_FIELDS,
    POINTS,
    TextSpec,
    after_bos,
    ends_of,
    folder_of,
    of_text,
)
from experiments.programs import Continuing, Program
from nope.data import digest, load_tokenizer
from nope.data.sources import folders
from nope.evals import batching, longbench
from nope.evals.generation import Options
from nope.evals.longbench.prompts import check_settings
from nope.records import Records
from nope.variables import Variables

FOUND = 'found'  # of `datasets`


@dataclasses.dataclass(frozen=True, kw_only=True)
class LongbenchSpec(TextSpec):
    """LongBench (`nope.evals.longbench`).

    folder: of its files. fingerprint: of their content. limit: samples of each data set at most, 0
    for all.

    max_length: tokens of a prompt. window: of a prompt and its answer, unless they may go beyond.
    In a section, the datasets 'found' are those whose files are in the folder.
    """

    folder: str = dataclasses.field(metadata={'identity': False})
    fingerprint: str
    datasets: tuple[str, ...]
    limit: int
    max_length: int
    window: int
    beams: int
    beyond: bool
    kind = 'longbench'
    fields = ('window', 'longbench', *ASKING_FIELDS)
    command = 'longbench:FOLDER'
    defaults: ClassVar = {
        'folder': '',
        'datasets': ('found',),
        'limit': None,
        'max_length': None,
        'beams': 5,
        'bos': None,
        'beyond': False,
    }
    title = 'LongBench'

    @classmethod
    def from_entry(cls, asked: EvalEntry) -> Self:
        section = cls.own_section(asked)
        common = of_text(asked, section)
        every, found = tuple(longbench.DATASETS), (*longbench.DATASETS, FOUND)
        given = section.names('datasets', found)
        names = every if FOUND in given else given or every
        each = (
            f'NAME.jsonl for each of {section.path("datasets")} ({", ".join(names)}), as published'
        )
        folder = folder_of(section, 'LongBench', each)
        asked_names = longbench.found_in(folder) if FOUND in given else names
        with section.reading('folder', asked_by='datasets'):
            longbench.check(folder, asked_names)
        window = max(asked.lengths()) if 'tokens' in asked.entry else asked.window()
        asked.check_reach(common['position'], window)
        max_length, beyond = _max_length(asked, section, asked_names, window), section['beyond']
        if beyond:
            asked.check_reach(common['position'], max_length + _longest_answer(asked_names))
        content = folders.identity('longbench', folder, [f'{name}.jsonl' for name in asked_names])
        ends = ends_of(asked.run)
        return cls(
            folder=str(folder),
            fingerprint=digest.of_json([content, *ends] if ends else content),
            datasets=asked_names,
            limit=count_of(section, 'limit', 0),
            max_length=max_length,
            window=window,
            beyond=beyond,
            beams=section.at_least('beams', 1),
            **common,
        )

    @property
    def extent(self) -> int:
        return self.window

    def check(self, bench: Bench) -> None:
        check_settings(self.tokenizer, self.max_length, self.bos)

    def found(self, bench: Bench, variables: Variables, **how: Any) -> Records:
        return longbench.run(
            self.generator(bench, variables),
            self.tokenizer,
            longbench.read(pathlib.Path(self.folder), self.datasets, self.limit or None),
            max_length=self.max_length,
            beams=self.beams,
            bos=self.bos,
            chat=self.chat,
            window=None if self.beyond else self.window,
            **how,
        )

    def rows(self, found: Records) -> list[TableRow]:
        asked = len(found.coordinates['dataset'])
        mean = f'mean of {asked} of {len(longbench.DATASETS)} data sets'
        return self.mean_rows(found, 'dataset', mean, POINTS)

    def programs(self, rows: Rows) -> Iterator[Program]:
        options = Options(new_tokens=_longest_answer(self.datasets), beams=self.beams)
        length = batching.padded_length(self.max_length)
        tokens = (length + options.new_tokens) * options.beams
        yield Continuing(self.model, options, length, rows(tokens, Continuing.rules))

    def measured_on(self, found: Records) -> tuple[str, str]:
        facts, samples = found.attributes, int(found['samples'].sum())
        beams = facts['beams']
        search = f'{beams} beams' if beams > 1 else 'greedy'
        length = f'{facts["max_length"]:,} {facts["token"]}s'
        began = after_bos(found, 'prompt')
        return 'LongBench', f'{samples:,} prompts of up to {length}, {search}{began}'


def _longest_answer(names: tuple[str, ...]) -> int:
    """Tokens that a data set's answers may have, at most."""
    return max(longbench.DATASETS[name].new_tokens for name in names)


def _max_length(asked: EvalEntry, section: Section, names: tuple[str, ...], window: int) -> int:
    """Tokens of a prompt: as asked, or by the rule of the window."""
    field, chat = section.path('max_length'), asked.chat()
    turns = 0 if chat is None else chat.overhead(load_tokenizer(asked.run.data.tokenizer))
    said = 'tokens' if 'tokens' in asked.entry else 'window'
    if section.optional('max_length') is None:
        try:
            max_length = longbench.prompt_budget(window - turns, names)
        except ValueError as error:
            raise ValueError(
                f'{asked.entry.path(said)} is too short for answers of '
                f'{section.path("datasets")}: {error}. Accepted too: {field} with '
                f'{section.path("beyond")}=True'
            ) from error
    else:
        max_length = section.at_least('max_length', 1)
    answers = {name: longbench.DATASETS[name].new_tokens for name in names}
    longest = max(answers, key=answers.__getitem__)
    whole = max_length + turns + answers[longest]
    if whole > window and not section['beyond']:
        raise ValueError(
            f'{field} is {max_length}: with an answer of {longest} {whole} tokens, more than the '
            f'window, {window}; accepted with {section.path("beyond")}=True'
        )
    return max_length
