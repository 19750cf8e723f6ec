"""The runs, evaluations and exports of one seed, by their names in the config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.config import Ledger, Section
from experiments.evaluations import KINDS, Asked, EvalSpec
from experiments.exports import ExportSpec
from experiments.exports import from_entry as export_from_entry
from experiments.runs import (
    HeadScores,
    MultiplierChoice,
    Source,
    finetuning,
    imports,
    laws,
    pretraining,
    search,
    silenced,
    temperatures,
)
from experiments.runs.directories import is_import
from experiments.scope import Scope
from nope.data import TaskData

RUN_FIELDS = tuple(
    dict.fromkeys(
        field
        for kind in (pretraining, search, finetuning, imports, laws, temperatures, silenced)
        for field in kind.FIELDS
    )
)
LATER = ('search', 'finetune')  # what a run may do with the one it starts from


class Entries:
    """Makes specs from entries, which refer to each other by name."""

    def __init__(self, config: Mapping[str, Any], seed: int, ledger: Ledger) -> None:
        self._scope = Scope(config, seed, ledger)
        self._config = config
        self._following: list[str] = []  # the runs that led here, to find a circle of them

    def evaluations(self) -> dict[str, EvalSpec]:
        return {name: self.evaluation(name) for name in self._scope.names('evals')}

    def exports(self) -> list[ExportSpec]:
        return [self._export(name) for name in self._scope.names('exports')]

    # Runs

    def run(self, name: str, asked_by: str) -> Source:
        """The run of that name. asked_by: the field that names it."""
        if name in self._following:
            raise ValueError(
                f'{asked_by} is {name!r}: the runs start from each other in a circle, '
                f'{" -> ".join([*self._following, name])}'
            )
        entry = self._scope.entry('runs', name, asked_by, RUN_FIELDS)
        self._following.append(name)
        try:
            return self._run(entry)
        finally:
            self._following.pop()

    def _run(self, entry: Section) -> Source:
        scope, init = self._scope, entry.named('init', 'a run, hf:DIR')
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
            _check_fields(entry, pretraining.FIELDS, 'pre-training')
            return pretraining.from_entry(scope, entry)
        if later == ['search']:
            _check_fields(entry, search.FIELDS, 'a search')
            return search.from_entry(scope, entry, self._init(entry, init), self.grid)
        if later == ['finetune']:
            _check_fields(entry, finetuning.FIELDS, 'fine-tuning')
            return finetuning.from_entry(scope, entry, self._init(entry, init), self.head_scores)
        if 'lam' in entry:
            _check_fields(entry, laws.FIELDS, 'a law of lambda')
            return laws.from_entry(scope, entry, self._init(entry, init))
        if 'without' in entry:
            _check_fields(entry, silenced.FIELDS, 'a model with heads silenced')
            return silenced.from_entry(entry, self._init(entry, init))
        if 'model' in entry and init in scope.names('runs'):
            _check_fields(entry, temperatures.FIELDS, 'another temperature')
            return temperatures.from_entry(scope, entry, self._init(entry, init))
        if init in scope.names('runs'):
            rule = 'a run that starts from it takes one of search, finetune, lam, model, without'
            raise entry.error('init', rule)
        _check_fields(entry, imports.FIELDS, 'an imported model')
        return imports.from_entry(scope, entry)

    def _init(self, entry: Section, init: str) -> Source:
        """Starting point of a run: another run, or a model of another library."""
        fields = ('init', 'nope', 'own_tokenizer')
        if not is_import(init):
            for name in fields[1:]:
                if entry.get(name):
                    raise entry.error(name, f'{entry.path("init")} is no imported model (hf:DIR)')
            return self.run(init, entry.path('init'))
        own = {name: entry[name] for name in fields if name in entry}
        return imports.from_entry(self._scope, Section(entry.name, own, self._scope.ledger))

    def _run_of_seed(self, name: str, asked_by: str, further: int) -> Source:
        """The run of that name, of the seed so many places further in the config's, around."""
        if not further:
            return self.run(name, asked_by)
        scope, seeds = self._scope, tuple(self._config['seeds'])
        seed = seeds[(seeds.index(scope.seed) + further) % len(seeds)]
        return Entries(self._config, seed, scope.ledger).run(name, asked_by)

    # Evaluations

    def evaluation(self, name: str) -> EvalSpec:
        scope, where = self._scope, f'evals.{name}'
        group = scope.group('evals')
        kind = group[name].get('kind', 'positions')
        if kind not in KINDS:
            raise ValueError(f'{where}.kind is {kind!r}; accepted: {", ".join(KINDS)}')
        accepted = ('kind', 'run', *KINDS[kind].fields)
        entry = scope.entry('evals', name, 'the config', accepted)
        scope.ledger.note(f'{where}.kind', kind)
        run = self.run(entry.get('run', ''), f'{where}.run')
        of_tasks = KINDS[kind].of_tasks
        if of_tasks is not None and isinstance(run.data, TaskData) != of_tasks:
            what = 'a task' if of_tasks else 'text'
            raise entry.error('run', f'{kind} measures models that were trained on {what}')
        return KINDS[kind].from_entry(Asked(entry, run, scope, self.grid, self._run_of_seed))

    def grid(self, name: str, field: str) -> MultiplierChoice:
        """The evaluation that chooses a uniform multiplier, which `field` names."""
        spec = self._named(name, field)
        if not isinstance(spec, MultiplierChoice):
            raise ValueError(
                f'{field} is {name!r}, not the name of an eval of kind multiplier_grid'
            )
        return spec

    def head_scores(self, name: str, field: str) -> HeadScores:
        """The evaluation that scores heads, which `field` names."""
        spec = self._named(name, field)
        if not isinstance(spec, HeadScores):
            raise ValueError(
                f'{field} is {name!r}, not the name of an eval of kind attention_shape'
            )
        return spec

    def _named(self, name: str, field: str) -> EvalSpec:
        if name not in self._scope.names('evals'):
            raise ValueError(
                f'{field} is {name!r}; the config has the evals '
                f'{sorted(self._scope.names("evals"))}'
            )
        return self.evaluation(name)

    def _export(self, name: str) -> ExportSpec:
        entry = self._scope.entry('exports', name, 'the config', ExportSpec.fields)
        run = self.run(entry.get('run', ''), f'{entry.name}.run')
        if isinstance(run.data, TaskData):
            raise entry.error('run', f'{run.data.describe()} has no tokenizer files to export')
        return export_from_entry(self._scope, entry, name, run)


def _check_fields(entry: Section, accepted: tuple[str, ...], what: str) -> None:
    for field in entry:
        if field not in accepted:
            raise ValueError(
                f'{entry.path(field)}: {what} takes no {field}; accepted: {", ".join(accepted)}'
            )
