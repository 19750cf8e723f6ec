"""A form of lambda that is one class and one line of the registry works everywhere a form does."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from experiments import execute
from experiments.build import Experiment, build
from experiments.plan import make_plan
from experiments.runs import RunSpec
from experiments.specs import identity
from nope import records
from nope.identity import plain
from nope.interop import Export, check_export
from nope.interop.fold import fold
from nope.interop.run_folder import model_types, read_run
from nope.model import lam
from nope.runtime.sections import rebuild
from nope.variables import lam_of
from tests import tiny
from tests.experiments import build_test, run_test
from tests.experiments.execute_test import bench_of, type_of
from tests.model.lam.by_keys import ByKeys

SECTION = {'kind': 'by_keys', 'rate': 0.5}
SEARCH = {'start_from': None, 'start': 0.0, 'bound': -np.inf}


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(lam.FORMS, 'by_keys', ByKeys)


def experiment(folder: pathlib.Path, **search: object) -> Experiment:
    """A search of a few steps at four times the training length, and its evaluation."""
    text = folder / 'text'
    text.mkdir(exist_ok=True)
    run_test.write_texts(text)
    config = build_test.config_of('fig4')
    for option in run_test.TINY:
        name, value = option.removeprefix('--config.').format(text=text).split('=', 1)
        config.update_from_flattened_dict({name: type_of(value)})
    config.train.steps, config.train.warmup_steps = 4, 1
    config.runs.headscale_4x.search = config.runs.headscale_4x.search.to_dict() | search
    return build(config)


def test_a_search_trains_it_and_its_records_and_folders_say_so(tmp_path: pathlib.Path) -> None:
    found = experiment(tmp_path, form=SECTION, **SEARCH)
    measured = found.evals['headscale']
    run = measured.run
    assert isinstance(run, RunSpec) and run.searches
    assert run.model.lam == ByKeys(0.5)
    assert run.slug().startswith('search-bykeys-64-2x16-seed0-')
    assert identity(run)['model']['lam'] == {'type': 'ByKeys', 'rate': 0.5}

    bench = bench_of(found, tmp_path / 'work')
    execute.execute(bench, make_plan(bench.workspace, [measured]).missing)
    again = read_run(bench.workspace.folder(run), bench.mesh)
    assert plain(again.described.model) == plain(run.model)
    tiny.assert_same(lam_of(again.variables), lam_of(bench.variables(run)))
    assert np.abs(lam_of(again.variables)).max() > 1e-3  # the search moved it

    kept = records.load(bench.workspace.folder(measured))
    assert kept.attributes['lam'] == 'by keys at 64'
    last_LN = 1 + 0.5 * np.asarray(lam_of(again.variables)) * np.log(64)
    np.testing.assert_allclose(kept['multiplier'], last_LN, rtol=1e-6)

    with pytest.raises(ValueError, match=r'ByKeys follows the position.*W_q'):
        fold(run.model, again.variables, 64)
    with pytest.raises(ValueError, match=r'ByKeys follows the position.*W_q'):
        check_export(run.model, Export('fold', 64))


@pytest.mark.parametrize(
    ('search', 'message'),
    [
        ({'form': 'by_key'}, r"form is 'by_key'; accepted: constant, .*by_keys"),
        ({'form': SECTION | {'rat': 1}}, r'form\.rat is unknown for ByKeys; accepted: kind, rate'),
        ({'form': SECTION | {'rate': 0.0}}, r'form\.rate is 0\.0; it must be above 0'),
        ({'form': 'by_keys', **SEARCH, 'start': np.nan}, r'start is nan; it must be finite'),
        (
            {'form': 'by_keys', 'bound': -np.inf},
            r"start_from is 'grid_4x/'; lambda of the form ByKeys cannot start from",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else '',
)
def test_its_settings_are_checked_before_anything_is_trained(
    tmp_path: pathlib.Path, search: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=rf'^runs\.headscale_4x\.search\.{message}'):
        experiment(tmp_path, **search)


@pytest.mark.parametrize('name', ['constant', 'log_length', 'by_keys'])
def test_its_identity_is_rebuilt(name: str) -> None:
    form = lam.from_section(name, 'search.form', train_length=16, head_dim=8)
    model = tiny.model(lam=form, attention=None)
    assert rebuild(plain(model), model_types()) == model
