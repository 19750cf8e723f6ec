"""A kind of evaluation is one file and a line in `KINDS`: from an entry to its records."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
import pytest

from configs.shared import text
from experiments import evaluations, execute
from experiments.bench import Bench
from experiments.build import build
from experiments.evaluations.base import EvalSpec, Rows, most_rows
from experiments.evaluations.entry import EvalEntry
from experiments.plan import make_plan
from experiments.programs import Program
from experiments.specs import identifier
from experiments.workspace import Workspace
from nope import records
from nope.model import ModelConfig
from nope.records import Measure, Records
from tests.experiments import build_test, execute_test, run_test


@dataclasses.dataclass(frozen=True, kw_only=True)
class NormSpec(EvalSpec):
    """Norms of a model's parameters, `power` of them."""

    power: float
    kind = 'norms'
    fields = ('power',)

    @classmethod
    def from_entry(cls, asked: EvalEntry) -> Self:
        return cls(run=asked.run, power=asked.entry.finite('power', positive=True))

    @property
    def model(self) -> ModelConfig:
        return self.run.model

    @property
    def extent(self) -> int:
        return self.run.train_length

    def check(self, bench: Bench) -> None:
        if self.power > 8:
            raise ValueError('too powerful')

    def measure(self, bench: Bench, folder: pathlib.Path) -> tuple[Records, dict[str, Any]]:
        head = np.asarray(bench.variables(self.run)['params']['head'])
        norm = np.sum(np.abs(head) ** self.power, keepdims=True)[0]
        return Records(
            attributes={'evaluation': self.kind},
            measures={'norm': Measure(norm, ('one',), '')},
            coordinates={'one': np.zeros(1)},
        ), {'power': self.power}

    def programs(self, rows: Rows) -> Iterator[Program]:
        yield from ()

    def measured_on(self, found: Records) -> tuple[str, str]:
        return 'the parameters', f'power {found.attributes["power"]:g}'


@pytest.fixture
def kinds(monkeypatch: pytest.MonkeyPatch) -> Mapping[str, type[EvalSpec]]:
    found = {**evaluations.KINDS, 'norms': NormSpec}
    monkeypatch.setattr('experiments.entries.KINDS', found)
    return found


def config_of(tmp_path: pathlib.Path, **entry: Any) -> Any:
    config = run_test.shrink(build_test.config_of('fig4'), tmp_path, steps=2)
    config.evals['norms'] = {'kind': 'norms', 'run': 'nope', **entry}
    return config


def test_a_kind_is_made_from_its_entry_to_its_records(kinds, tmp_path: pathlib.Path) -> None:
    experiment = build(config_of(tmp_path, power=2.0))
    spec = experiment.evals['norms']
    assert spec.slug() == f'norms-16-{identifier(spec)}'
    other = build(config_of(tmp_path, power=3.0)).evals['norms']
    assert identifier(other) != identifier(spec)
    bench = execute_test.bench_of(experiment, tmp_path / 'work')
    pieces = make_plan(Workspace(tmp_path / 'work'), [spec]).missing
    execute.check(bench, pieces)
    execute.execute(bench, pieces)
    found = records.load(bench.workspace.folder(spec))
    head = np.asarray(bench.variables(spec.run)['params']['head'])
    np.testing.assert_allclose(found['norm'], [np.sum(head**2)], rtol=1e-5)
    assert found.attributes['train_length'] == 16
    assert found.attributes['measured_on'] == {
        'what': 'the parameters', 'how': 'power 2', 'own_text': True
    }  # fmt: skip


@pytest.mark.parametrize(
    ('entry', 'message'),
    [
        ({'power': -1.0}, r'evals\.norms\.power is -1\.0; it must be finite and above 0'),
        ({'power': 1.0, 'times': 2.0}, r'evals\.norms\.times is unknown; accepted: kind, power'),
        ({'power': 1.0, 'run': 'nobody'}, r"evals\.norms\.run names 'nobody'"),
    ],
)
def test_an_entry_of_a_kind_is_checked(
    kinds, tmp_path: pathlib.Path, entry: dict, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        build(config_of(tmp_path, **entry))


def test_what_a_kind_checks_comes_before_any_training(kinds, tmp_path: pathlib.Path) -> None:
    experiment = build(config_of(tmp_path, power=9.0))
    bench = execute_test.bench_of(experiment, tmp_path / 'work')
    with pytest.raises(ValueError, match='too powerful'):
        execute.check(bench, [experiment.evals['norms']])


def test_kinds_that_are_there_say_what_they_are() -> None:
    for kind, spec in evaluations.KINDS.items():
        assert spec.kind == kind
        assert spec.room == 'records' and spec.fields
        assert (spec.__module__.rpartition('.')[2]) == kind


def test_longppl_is_measured_with_key_tokens_of_another_run(tmp_path: pathlib.Path) -> None:
    config = text.add(config_of(tmp_path), 'quick')
    folder = tmp_path / 'text'
    config.corpora = {'files': {'source': f'text:{folder}', 'split': 'test'}}
    config.longppl.budget = 128
    config.runs.judge = {'train': {'steps': 3}}
    for name, more in (('own', {}), ('judged', {'evaluator': 'judge'})):
        entry = {'kind': 'longppl', 'run': 'nope', 'corpus': 'files', 'times': (2.0, 4.0)}
        config.evals[name] = {**entry, **more}
    del config.evals['norms']
    evals = build(config).evals
    pieces = make_plan(Workspace(tmp_path / 'work'), [evals['own'], evals['judged']]).missing
    assert evals['judged'].evaluator in pieces
    bench = execute_test.bench_of(build(config), tmp_path / 'work')
    execute.check(bench, pieces)
    execute.execute(bench, pieces)
    own, judged = (records.load(bench.workspace.folder(evals[n])) for n in ('own', 'judged'))
    programs = list(evals['judged'].programs(most_rows(256, bench.mesh)))
    # Both models', which are alike: both lengths, and a short context with its step.
    assert [(program.length, program.scored) for program in programs] == [
        (32, 31), (64, 63), (20, 4)
    ]  # fmt: skip
    assert all(program.trace(bench.mesh) for program in programs)
    assert own.along('length', 2).tolist() == [32, 64]
    texts = own['documents']
    assert np.all((texts >= 1) & (texts <= [4, 2]))
    assert own['tokens'].tolist() == (texts * [31, 63]).tolist()
    np.testing.assert_array_equal(own['loss'], judged['loss'])
    assert (own.attributes['short'], own.attributes['stride']) == (16, 4)
    assert own.attributes['evaluator'] == 'itself'
    assert judged.attributes['evaluator'].startswith('NoPE, 2 layers, width 16')
    assert 'short contexts of 16 in steps of 4' in own.attributes['measured_on']['how']
