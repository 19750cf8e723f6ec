"""LongBench in English, from local files."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterator
from typing import Any, Self

from experiments.bench import Bench
from experiments.config import USERS, Section
from experiments.evaluations.base import (
    TEXT_FIELDS,
    Asked,
    Rows,
    TextSpec,
    after_bos,
    ends_of,
    of_text,
    open_log,
)
from experiments.programs import Continuing, Program
from nope.data import digest, load_tokenizer
from nope.data.sources import folders
from nope.evals import batching, longbench
from nope.evals.generation import Options
from nope.evals.longbench.prompts import check_settings
from nope.records import Records


@dataclasses.dataclass(frozen=True, kw_only=True)
class LongbenchSpec(TextSpec):
    """LongBench (`nope.evals.longbench`).

    folder: of its files. fingerprint: of their content. limit: samples of each data set at most, 0
    for all. max_length: tokens of a prompt. window: of a prompt and its answer,
    unless they may go beyond it.
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
    fields = ('window', 'longbench', *TEXT_FIELDS)

    @classmethod
    def from_entry(cls, asked: Asked) -> Self:
        section = asked.section('longbench')
        common = of_text(asked, section)
        names = section.names('datasets', longbench.DATASETS) or tuple(longbench.DATASETS)
        folder = pathlib.Path(_folder(section, names))
        with section.reading('folder', asked_by='datasets'):
            longbench.check(folder, names)
        window = asked.window()
        asked.check_reach(common['position'], window)
        max_length, beyond = _max_length(asked, section, names, window), section['beyond']
        if beyond:
            asked.check_reach(common['position'], max_length + _longest_answer(names))
        content = folders.identity('longbench', folder, [f'{name}.jsonl' for name in names])
        ends = ends_of(asked.run)
        return cls(
            folder=str(folder),
            fingerprint=digest.of_json([content, *ends] if ends else content),
            datasets=names,
            limit=0 if section.optional('limit') is None else section.at_least('limit', 1),
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
        check_settings(load_tokenizer(self.run.data.tokenizer), self.max_length, self.bos)

    def measure(self, bench: Bench, folder: pathlib.Path) -> tuple[Records, dict[str, Any]]:
        variables, more = self.measured(bench)
        samples = longbench.read(pathlib.Path(self.folder), self.datasets, self.limit or None)
        found = longbench.run(
            self.generator(bench, variables),
            load_tokenizer(self.run.data.tokenizer),
            samples,
            max_length=self.max_length,
            beams=self.beams,
            log=open_log(folder),
            bos=self.bos,
            window=None if self.beyond else self.window,
            progress=bench.bar('LongBench'),
        )
        return found, more

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


def _folder(section: Section, names: tuple[str, ...]) -> str:
    """Folder of the files of data sets. ValueError where none is given."""
    folder = section.execution('folder')
    if not folder:
        raise ValueError(
            f'{section.path("folder")} is empty: --config.longbench.folder=FOLDER with the files '
            f'of LongBench, which {USERS}: NAME.jsonl for each of {section.path("datasets")} ('
            + ', '.join(names)
            + '), as in the published archive'
        )
    return folder


def _longest_answer(names: tuple[str, ...]) -> int:
    """Tokens that a data set's answers may have, at most."""
    return max(longbench.DATASETS[name].new_tokens for name in names)


def _max_length(asked: Asked, section: Section, names: tuple[str, ...], window: int) -> int:
    """Tokens of a prompt: as asked, or by the rule of the window."""
    field = section.path('max_length')
    if section.optional('max_length') is None:
        try:
            max_length = longbench.prompt_budget(window, names)
        except ValueError as error:
            raise ValueError(
                f'{asked.entry.path("window")} is too short for answers of '
                f'{section.path("datasets")}: {error}. Accepted too: {field} with '
                f'{section.path("beyond")}=True'
            ) from error
    else:
        max_length = section.at_least('max_length', 1)
    answers = {name: longbench.DATASETS[name].new_tokens for name in names}
    longest = max(answers, key=answers.__getitem__)
    whole = max_length + answers[longest]
    if whole > window and not section['beyond']:
        raise ValueError(
            f'{field} is {max_length}: with an answer of {longest} {whole} tokens, more than the '
            f'window, {window}; accepted with {section.path("beyond")}=True'
        )
    return max_length
