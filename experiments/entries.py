"""The runs, evaluations and exports of one seed, by their names in the config."""

from __future__ import annotations

import logging
import textwrap
from collections.abc import Mapping
from typing import Any, TypeVar

from experiments.config import Ledger, Section
from experiments.evaluations import KINDS, EvalEntry, EvalSpec
from experiments.exports import ExportSpec, Unwritable
from experiments.exports import from_entry as export_from_entry
from experiments.runs import (
    HeadScores,
    MultiplierChoice,
    Source,
    changes,
    finetuning,
    imports,
    pretraining,
    search,
)
from experiments.runs.directories import is_import
from experiments.scope import Scope
from nope.data import TaskData

log = logging.getLogger(__name__)
T = TypeVar('T')
RUN_FIELDS = {
    *(*pretraining.FIELDS, *search.FIELDS, *finetuning.FIELDS, *imports.FIELDS),
    *(*changes.LAW_FIELDS, *changes.TEMPERATURE_FIELDS, *changes.SILENCED_FIELDS),
}
LATER = ('search', 'finetune')  # what a run may do with the one it starts from


class Entries(Scope):
    """A scope that makes specs from its entries, which refer to each other by name."""

    def __init__(self, config: Mapping[str, Any], seed: int, ledger: Ledger) -> None:
        super().__init__(config, seed, ledger)
        self._following: list[str] = []  # the runs that led here, to find a circle of them

    def evaluations(self) -> dict[str, EvalSpec]:
        return {name: self.evaluation(name) for name in self.names('evals')}

    def exports(self) -> list[ExportSpec]:
        """All that can be written; an export that is `optional` and cannot be is left out."""
        found = []
        for name in self.names('exports'):
            try:
                found.append(self._export(name))
            except Unwritable as error:
                if not self.group('exports')[name].get('optional'):
                    raise
                log.warning('%s is left out', textwrap.shorten(str(error), 300))
        return found

    # Runs

    def run(self, name: str, asked_by: str, further: int = 0) -> Source:
        if further:
            seeds = tuple(self._config['seeds'])
            seed = seeds[(seeds.index(self.seed) + further) % len(seeds)]
            return Entries(self._config, seed, self.ledger).run(name, asked_by)
        if name in self._following:
            raise ValueError(
                f'{asked_by} is {name!r}: the runs start from each other in a circle, '
                f'{" -> ".join([*self._following, name])}'
            )
        entry = self.entry('runs', name, asked_by, RUN_FIELDS)
        self._following.append(name)
        try:
            return self._run(entry)
        finally:
            self._following.pop()

    def _run(self, entry: Section) -> Source:
        init = entry.named('init', 'a run, hf:DIR')
        later = [kind for kind in LATER if kind in entry]
        if len(later) > 1:
            raise ValueError(f'{entry.name} has both search and finetune; accepted is one of them')
        if init is None:
            if later:
                raise ValueError(
                    f'{entry.path(later[0])} needs {entry.path("init")}, the run or model it '
                    'starts from'
                )
            entry.get('nope')  # read: `Imported` refuses True
            entry.only(pretraining.FIELDS, 'pre-training')
            return pretraining.from_entry(self, entry)
        if later == ['search']:
            entry.only(search.FIELDS, 'a search')
            return search.from_entry(self, entry, self._init(entry, init))
        if later == ['finetune']:
            entry.only(finetuning.FIELDS, 'fine-tuning')
            return finetuning.from_entry(self, entry, self._init(entry, init))
        if 'lam' in entry:
            entry.only(changes.LAW_FIELDS, 'a law of lambda')
            return changes.law(entry, self._init(entry, init))
        if 'without' in entry:
            entry.only(changes.SILENCED_FIELDS, 'a model with heads silenced')
            return changes.silenced(entry, self._init(entry, init))
        if 'model' in entry and init in self.names('runs'):
            entry.only(changes.TEMPERATURE_FIELDS, 'another temperature')
            return changes.temperature(entry, self._init(entry, init))
        if init in self.names('runs'):
            rule = 'a run that starts from it takes one of search, finetune, lam, model, without'
            raise entry.error('init', rule)
        entry.only(imports.FIELDS, 'an imported model')
        return imports.from_entry(self, entry)

    def _init(self, entry: Section, init: str) -> Source:
        """Starting point of a run: another run, or a model of another library."""
        fields = ('init', 'nope', 'own_tokenizer')
        if not is_import(init):
            for name in fields[1:]:
                if entry.get(name):
                    raise entry.error(name, f'{entry.path("init")} is no imported model (hf:DIR)')
            run = self.run(init, entry.path('init'))
            if not run.model.causal:
                raise entry.error('init', 'it is an encoder, which no other run starts from')
            return run
        own = {name: entry[name] for name in fields if name in entry}
        return imports.from_entry(self, Section(entry.name, own, self.ledger))

    # Evaluations

    def evaluation(self, name: str) -> EvalSpec:
        where = f'evals.{name}'
        group = self.group('evals')
        kind = group[name].get('kind', 'positions')
        if kind not in KINDS:
            raise ValueError(f'{where}.kind is {kind!r}; accepted: {", ".join(KINDS)}')
        accepted = ('kind', 'run', *KINDS[kind].fields)
        entry = self.entry('evals', name, 'the config', accepted)
        self.ledger.note(f'{where}.kind', kind)
        run = self.run(entry.get('run', ''), f'{where}.run')
        of_tasks = KINDS[kind].of_tasks
        if of_tasks is not None and isinstance(run.data, TaskData) != of_tasks:
            what = 'a task' if of_tasks else 'text'
            raise entry.error('run', f'{kind} measures models that were trained on {what}')
        if not (run.model.causal or KINDS[kind].of_encoders):
            raise entry.error('run', f'{kind} measures decoders, and the model has causal=False')
        return KINDS[kind].from_entry(EvalEntry(entry, run, self))

    def grid(self, name: str, field: str) -> MultiplierChoice:
        return self._named(MultiplierChoice, 'multiplier_grid', name, field)  # type: ignore[type-abstract]

    def head_scores(self, name: str, field: str) -> HeadScores:
        return self._named(HeadScores, 'attention_shape', name, field)  # type: ignore[type-abstract]

    def _named(self, wanted: type[T], kind: str, name: str, field: str) -> T:
        if name not in self.names('evals'):
            raise ValueError(
                f'{field} is {name!r}; the config has the evals {sorted(self.names("evals"))}'
            )
        spec = self.evaluation(name)
        if not isinstance(spec, wanted):
            raise ValueError(f'{field} is {name!r}, not the name of an eval of kind {kind}')
        return spec

    def _export(self, name: str) -> ExportSpec:
        entry = self.entry('exports', name, 'the config', ExportSpec.fields)
        run = self.run(entry.get('run', ''), f'{entry.name}.run')
        if isinstance(run.data, TaskData):
            raise entry.error('run', f'{run.data.describe()} has no tokenizer files to export')
        return export_from_entry(self, entry, name, run)
