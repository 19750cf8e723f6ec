"""Laws of lambda: fixed on a trained model, and what configs say of them."""

from __future__ import annotations

import pathlib
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from experiments import execute
from experiments.bench import Bench
from experiments.build import Experiment, build
from experiments.plan import make_plan
from experiments.runs import LawSpec, RunSpec, SilencedSpec, TemperatureSpec
from experiments.specs import identifier
from nope import records
from nope.identity import plain
from nope.interop.run_folder import model_types, read_run
from nope.model import lam
from nope.model.lam import Constant, LogLength, Product
from nope.model.lam.log_position import LogPosition
from nope.model.lam.log_square import LogSquare
from nope.runtime.sections import rebuild
from nope.variables import lam_of
from tests import tiny
from tests.experiments import build_test, run_test
from tests.experiments.execute_test import bench_of

LENGTHS = {'kind': 'lengths', 'times': (1.0, 4.0)}


def experiment(
    folder: pathlib.Path | None, *, evals: dict[str, Any] | None = None, **runs: Any
) -> Experiment:
    """A model of a few steps, the runs given, and the loss by length of each; other evaluations."""
    config = build_test.config_of('fig_dynamic')
    if folder is not None:
        run_test.shrink(config, folder)
    config.seeds = (0,)
    names = list(runs)
    with config.unlocked():
        config.runs = {'nope': config.runs.nope.to_dict(), **runs}
        lengths = {f'{name}/': {**LENGTHS, 'run': name} for name in ('nope', *names)}
        config.evals = {**lengths, **(evals or {})}
    curves = tuple({'group': name, 'label': name} for name in ('nope', *names[:6]))
    config.figure = {'kind': 'length_curves', 'curves': curves}
    return build(config)


def work(found: Experiment, folder: pathlib.Path, *names: str) -> tuple[Bench, list[str], Any]:
    """Everything made that evaluations need: the bench, the rooms of what was made, the records."""
    bench, specs = bench_of(found, folder), [found.evals[f'{name}/seed0'] for name in names]
    plan = make_plan(bench.workspace, specs)
    execute.execute(bench, plan.missing)
    kept = [records.load(bench.workspace.folder(spec)) for spec in specs]
    return bench, [spec.room for spec in plan.missing], kept


def test_laws_temperatures_and_silenced_heads_are_measured_and_train_nothing(
    tmp_path: pathlib.Path,
) -> None:
    runs = {
        'law': {'lam': {'law': 'log_position', 'coefficient': 0.5}},
        'square': {'lam': {'law': 'log_square', 'coefficient': (0.5, -0.1)}},
        'sharp': {'model': {'temperature': 'entropy'}},
        'less': {'without': ((0, 1),)},
    }
    found = experiment(tmp_path, **{name: {'init': 'nope', **run} for name, run in runs.items()})
    bench, rooms, kept = work(found, tmp_path / 'work', 'nope', *runs)
    assert sorted(rooms) == ['records'] * 5 + ['runs']
    base, *others = (found.evals[f'{name}/seed0'].run for name in ('nope', *runs))
    assert [type(run) for run in others] == [LawSpec, LawSpec, TemperatureSpec, SilencedSpec]
    assert [path.name for path in (tmp_path / 'work' / 'runs').iterdir()] == [base.slug()]
    assert {run.init for run in others} == {base} and others[0].model.lam == LogPosition(16)
    assert all(record.attributes['step'] == 4 for record in kept)

    law, square = (bench.variables(run)['lam']['head'] for run in others[:2])
    np.testing.assert_array_equal(law, np.full((2, 2), 0.5, np.float32))
    np.testing.assert_array_equal(square, jnp.broadcast_to(jnp.float32([0.5, -0.1]), (2, 2, 2)))
    tiny.assert_same(bench.variables(others[2]), bench.variables(base))
    x = np.log([1.0, 4.0])
    multipliers = [np.ones(2), 1 + 0.5 * x, 1 + 0.5 * x - 0.1 * x**2, np.ones(2)]
    for record, expected in zip(kept, multipliers, strict=False):
        np.testing.assert_allclose(record['multiplier_mean'], expected, rtol=1e-6)
    whole, _, _, sharp, less = kept
    for record in (sharp, less):
        assert np.all(whole['loss_window'] != record['loss_window'])
    assert sharp.attributes['model'] == whole.attributes['model'] + ', temperature by entropy'
    assert less.attributes['silenced'] == [[0, 1]] and 'silenced' not in whole.attributes


def test_without_a_coefficient_it_is_the_published_one() -> None:
    found = experiment(
        None,
        law={'init': 'nope', 'lam': {'law': 'log_position'}},
        same={'init': 'nope', 'lam': {'law': {'kind': 'log_position'}, 'coefficient': 0.1}},
        other={'init': 'nope', 'lam': {'law': {'kind': 'log_position', 'train_length': 1}}},
    )
    law, same, other = (found.evals[f'{name}/seed0'].run for name in ('law', 'same', 'other'))
    assert isinstance(law, LawSpec) and law.coefficient == 0.1
    assert identifier(law) == identifier(same) != identifier(other)


def test_the_size_of_a_head_is_the_model_s() -> None:
    found = experiment(None, law={'init': 'nope', 'lam': {'law': 'info_scale'}})
    run = found.evals['law/seed0'].run
    assert run.model.lam.head_dim == run.model.head_dim  # type: ignore[attr-defined]


@pytest.mark.slow
def test_coefficients_stay_or_are_trained_and_a_search_on_top_leaves_them(
    tmp_path: pathlib.Path,
) -> None:
    """Also through another temperature, and in the model that is read from the search's folder."""
    search = {'law': 'log_length', 'times': (4.0,), 'steps': 2, 'warmup_steps': 0}
    found = experiment(
        tmp_path,
        frozen={'init': None, 'lam': {'law': 'log_length', 'coefficient': 0.4}},
        trained={'init': None, 'lam': {'law': 'scalable_softmax', 'trained': True}},
        sharp={'init': 'trained', 'model': {'temperature': 'entropy'}},
        top={'init': 'sharp', 'search': search},
    )
    names = ('frozen', 'trained', 'top')
    frozen, trained, top = (found.evals[f'{name}/seed0'].run for name in names)
    assert frozen.slug().startswith('nope-loglength-16-')
    assert trained.slug().startswith('nope-scalablesoftmax-16-')
    assert top.slug().startswith('search-scalablesoftmax-loglength-64-2x16-seed0-')
    bench, rooms, kept = work(found, tmp_path / 'work', *names)
    assert (rooms.count('runs'), rooms.count('records')) == (3, 3)

    stayed, moved, both = (np.asarray(lam_of(bench.variables(r))) for r in (frozen, trained, top))
    np.testing.assert_array_equal(stayed, np.full((2, 2), 0.4, np.float32))
    assert np.all(moved != np.float32(0.43)) and np.all(np.abs(moved - 0.43) < 0.1)
    np.testing.assert_array_equal(both[..., 0], moved)
    assert len(np.unique(moved)) == 4 and np.all(both[..., 1] != 0)
    keys = np.array([[16.0], [64.0]])
    sharpened = moved.ravel() * np.log(keys)
    searched = sharpened * (1 + both[..., 1].ravel() * np.log(keys / 16))
    expected = [1 + 0.4 * np.log([1.0, 4.0]), sharpened.mean(axis=1), searched.mean(axis=1)]
    for record, multipliers in zip(kept, expected, strict=True):
        np.testing.assert_allclose(record['multiplier_mean'], multipliers, rtol=1e-5)
    assert kept[0].attributes['law'] == 'log-length, coefficient 0.4'
    assert kept[1].attributes['law'].endswith('0.43 at first, trained with the weights')

    saved = read_run(bench.workspace.folder(top), bench.mesh)
    assert plain(saved.described.model) == plain(top.model)
    tiny.assert_same(saved.variables, bench.variables(top))


def test_a_second_search_on_top_takes_the_place_of_the_first() -> None:
    search = {'law': 'log_length', 'times': (2.0,)}
    found = experiment(
        None,
        law={'init': None, 'lam': {'law': 'log_position'}},
        top={'init': 'law', 'search': search},
        next={'init': 'top', 'search': {**search, 'law': 'log_square'}},
    )
    first, second = (found.evals[f'{name}/seed0'].run for name in ('top', 'next'))
    assert first.model.lam == Product(LogPosition(64), LogLength(64))
    assert second.model.lam == Product(LogPosition(64), LogSquare(64))


def test_a_fine_tuned_model_may_have_one() -> None:
    found = experiment(
        None,
        law={'init': 'nope', 'lam': {'law': 'log_length'}},
        tuned={'init': 'law', 'finetune': {'times': (2.0,)}},
    )
    run = found.evals['tuned/seed0'].run
    assert isinstance(run, RunSpec) and isinstance(run.init, LawSpec)
    assert run.model.lam == run.init.law != Constant()


BY_LAW = {'lam': {'law': 'log_length'}}
BY_SEARCH = {'search': {'law': 'log_length', 'times': (2.0,)}}
TUNED = {'finetune': {'times': (2.0,)}}
# Models whose lambda stays, or that have no heads to train.
KEEPERS = {
    'law': {'init': 'nope', 'lam': {'law': 'log_position'}},
    'sharp': {'init': 'law', 'model': {'temperature': 'entropy'}},
    'less': {'init': 'nope', 'without': ((0, 1),)},
    'trained': {'init': None, 'lam': {'law': 'log_position'}},
    'searched': {'init': 'nope', **BY_SEARCH},
    'tuned': {'init': 'searched', **TUNED},
}


@pytest.mark.parametrize(
    ('init', 'entry', 'message'),
    [
        ('law', BY_LAW, 'it only sets lambda'),
        ('law', BY_SEARCH, 'it only sets lambda'),
        ('sharp', BY_LAW, 'it only sets lambda'),
        ('less', BY_SEARCH, 'it only silences heads'),
        ('less', TUNED, 'its heads are silenced'),
        ('trained', BY_LAW, 'it was trained with lambda of the law LogPosition'),
        ('tuned', BY_LAW, 'its weights were tuned under a searched lambda'),
        ('tuned', BY_SEARCH, 'its weights were tuned under a searched lambda'),
    ],
)
def test_a_lambda_that_weights_were_made_with_is_not_replaced(
    init: str, entry: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=f"^runs\\.next\\.init is '{init}'; {message}"):
        experiment(None, **KEEPERS, next={'init': init, **entry})
    experiment(None, plain={'init': 'nope', **TUNED}, next={'init': 'plain', **entry})


@pytest.mark.parametrize('law', ['log_length', 'log_square'])
def test_a_law_that_is_1_up_to_l_is_searched_beyond_it(law: str) -> None:
    search = {'law': law, 'times': (0.5, 1.0), 'start': (0.1, 0.1) if 'square' in law else 0.1}
    with pytest.raises(
        ValueError, match=r'^runs\.law\.search\.times .* 64 tokens; .* is 1 up to that length'
    ):
        experiment(None, law={'init': 'nope', 'search': search})
    experiment(None, law={'init': 'nope', 'search': search | {'times': (1.0, 2.0)}})
    experiment(None, law={'init': 'nope', 'search': {'law': 'constant', 'times': (1.0,)}})


def test_no_uniform_multiplier_takes_the_place_of_a_law_that_was_trained() -> None:
    law = {'init': None, 'lam': {'law': 'scalable_softmax', 'trained': True}}
    grid = {'kind': 'multiplier_grid', 'run': 'law', 'times': 2.0}
    keys = {'run': 'law', 'times': 2.0, 'multiplier': 1.2}
    for entry, field in ((grid, 'kind'), (keys, 'multiplier')):
        with pytest.raises(ValueError, match=rf'^evals\.more\.{field} .*law ScalableSoftmax, whi'):
            experiment(None, law=law, evals={'more': entry})


def test_a_search_starts_from_the_numbers_that_are_given() -> None:
    search = {'law': 'log_square', 'times': (2.0,), 'start': (0.3, -0.1)}
    run = experiment(None, law={'init': 'nope', 'search': search}).evals['law/seed0'].run
    assert isinstance(run, RunSpec) and run.model.lam == LogSquare(64)
    assert run.lam_start == (0.3, -0.1) and run.train.optimizer.bound is None
    search = {'law': 'scalable_softmax', 'times': (2.0,), 'start': 0.43}
    run = experiment(None, law={'init': 'nope', 'search': search}).evals['law/seed0'].run
    assert run.lam_start == 0.43 and run.train.optimizer.bound is None  # no neutral coefficient


@pytest.mark.parametrize(
    ('entry', 'message'),
    [
        ({'lam': {}}, r'lam\.law is None; it is missing; accepted: constant, log_length'),
        ({'lam': {'law': 'log_pos'}}, r"lam\.law is 'log_pos'; accepted: constant"),
        (
            {'lam': {'law': {'kind': 'log_offset', 'share': 0.0}}},
            r'lam\.law\.share is 0\.0; share \* train_length \(64\) must be',
        ),
        ({'lam': {'law': 'constant'}}, r'lam\.coefficient is None; Constant has no published one'),
        (
            {'lam': {'law': 'log_length', 'coefficient': 'x'}},
            r"lam\.coefficient is 'x'; accepted: a number, or a tuple",
        ),
        (
            {'lam': {'law': 'log_length', 'coefficient': (0.1, 0.2)}},
            r'lam\.coefficient is \(0\.1, 0\.2\); it takes 1 for every head',
        ),
        (
            {'lam': {'law': 'constant', 'coefficient': -1.0}},
            r'lam\.coefficient is -1\.0; it must be finite and above 0',
        ),
        ({'lam': {'law': 'log_length', 'rate': 1}}, r'lam\.rate is unknown; accepted'),
        ({'lam': {'law': 'log_length', 'trained': True}}, r'lam\.trained is unknown; accepted'),
        (
            {'init': None, 'lam': {'law': 'log_length', 'trained': 1}},
            r'lam\.trained is 1; accepted: True or False',
        ),
        (
            {'init': None, 'lam': {'law': 'log_length', 'coefficient': 0.3, 'trained': True}},
            r'lam\.trained is True; accepted: False; lambda of the law LogLength is 1 in ',
        ),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_by_its_name(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=rf'^runs\.law\.{message}'):
        experiment(None, law={'init': 'nope', **entry})


@pytest.mark.parametrize(
    ('init', 'search', 'message'),
    [
        ('nope', {'law': 'scalable_softmax'}, r'start is None; no coefficient of ScalableSoftmax'),
        ('nope', {'law': 'log_length', 'start': np.nan}, r'start is nan; .* finite'),
        (
            'nope',
            {'law': 'log_square', 'start': (0.3, -0.1), 'bound': 0.0},
            r'start is \(0\.3, -0\.1\); it is below runs\.top\.search\.bound',
        ),
        (
            'nope',
            {'law': 'log_position', 'start_from': 'grid'},
            r"start_from is 'grid'; .* LogPosition cannot start from a uniform",
        ),
        ('nope', {'law': {'kind': 'log_offset', 'share': 0.0}}, r'law\.share is 0\.0'),
        ('nope', {'objective': 'kl'}, r"objective is 'kl'; accepted: loss, entropy"),
        (
            'nope',
            {'law': 'log_length', 'objective': 'entropy', 'times': (1.0, 2.0)},
            r'times is \(1\.0, 2\.0\); it makes windows of 64 tokens; the obj',
        ),
        ('law', {'bound': 0.0}, r'bound is 0\.0; it would hold for the .* of LogPosition'),
        (
            'law',
            {'law': 'constant', 'start_from': 'grid'},
            r"start_from is 'grid'; its grid leaves LogPosition out",
        ),
        ('law', {'tied': True}, r'tied is True; it would tie the coefficients of LogPosition too'),
        ('law', {'objective': 'entropy'}, r"objective is 'entropy'; its target leaves LogPosition"),
    ],
)
def test_what_a_search_cannot_do_is_refused_by_its_name(
    init: str, search: dict[str, Any], message: str
) -> None:
    """On a model, and on one that was trained under a law, which would be left out."""
    grid = {'grid': {'kind': 'multiplier_grid', 'run': 'nope', 'times': 2.0}}
    law = {'init': None, 'lam': {'law': 'log_position'}}
    top = {'init': init, 'search': {'times': (2.0,), **search}}
    with pytest.raises(ValueError, match=rf'^(runs\.top\.)?search\.{message}'):
        experiment(None, evals=grid, law=law, top=top)


@pytest.mark.parametrize('name', lam.LAWS)
def test_every_form_is_rebuilt_from_the_identity_of_its_model(name: str) -> None:
    form = lam.from_section(name, 'search.law', train_length=16, head_dim=8)
    model = tiny.model(lam=form, attention=None)
    assert rebuild(plain(model), model_types()) == model


def test_a_search_by_entropy_knows_the_training_length_and_is_another_run() -> None:
    search = {'law': 'log_length', 'times': (2.0,)}
    searches = {'loss': {}, 'same': {'objective': 'loss'}, 'entropy': {'objective': 'entropy'}}
    found = experiment(
        None,
        **{name: {'init': 'nope', 'search': {**search, **more}} for name, more in searches.items()},
    )
    loss, same, entropy = (found.evals[f'{name}/seed0'].run for name in searches)
    assert isinstance(loss, RunSpec) and isinstance(entropy, RunSpec)
    assert identifier(loss) == identifier(same) != identifier(entropy)
    assert loss.train.optimizer.entropy_length is None
    assert entropy.train.optimizer.entropy_length == 64
    assert entropy.slug().startswith('search-entropy-loglength-128-')


def test_the_figure_of_laws_shares_what_other_figures_make() -> None:
    """Its base model with fig1, its constant multipliers and log-length with fig_dynamic."""
    laws, dynamic = (build(build_test.config_of(name)).evals for name in ('laws', 'fig_dynamic'))
    first = build(build_test.config_of('fig1')).evals['nope'].run
    assert laws['base/seed0'].run == first
    for name in ('base', 'uniform', 'headscale_4x', 'log_length'):
        assert identifier(laws[f'{name}/seed0']) == identifier(dynamic[f'{name}/seed0'])
    fixed = [spec.run for name, spec in laws.items() if name.startswith('fixed_')]
    assert len(fixed) == 9 and all(isinstance(run, LawSpec) for run in fixed)
    assert {run.init for run in fixed} == {first}
