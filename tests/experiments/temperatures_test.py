"""Softmax temperatures of trained models: nothing is trained, and what configs say of them."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.build import Experiment, build
from experiments.runs import RunSpec, TemperatureSpec
from experiments.specs import identifier
from nope.model.lam.log_length import LogLength
from nope.positions import NoPE
from tests.experiments import build_test
from tests.experiments.laws_test import LENGTHS, experiment

ENTROPY = {'init': 'nope', 'model': {'temperature': 'entropy'}}


def test_it_stands_on_a_law_and_on_a_search_and_both_on_it() -> None:
    """With both, and as runs of their own."""
    law, search = (
        {'lam': {'law': 'log_length'}},
        {'search': {'law': 'log_length', 'times': (2.0,)}},
    )
    found = experiment(
        None,
        law={'init': 'nope', **law},
        on_law={**ENTROPY, 'init': 'law'},
        searched={'init': 'nope', **search},
        on_search={**ENTROPY, 'init': 'searched'},
        sharp=ENTROPY,
        again={'init': 'sharp', **law},
        next={'init': 'sharp', **search},
    )
    runs = {name.removesuffix('/seed0'): spec.run for name, spec in found.evals.items()}
    for name in ('on_law', 'on_search', 'again', 'next'):
        assert runs[name].model.temperature == 'entropy', name
        assert isinstance(runs[name].model.lam, LogLength) and runs[name].searched, name
    assert not runs['sharp'].searched
    assert len(set(map(identifier, runs.values()))) == 8


@pytest.mark.parametrize(
    ('entry', 'message'),
    [
        ({'model': {'temperature': 'low'}}, r"model\.temperature is 'low'; accepted: none, ent"),
        (
            {'model': {'temperature': 'adaptive'}},
            r"model\.temperature is 'adaptive'; accepted: none, entropy; another one has weights",
        ),
        ({'model': {}}, r'model\.temperature is None; it is missing; accepted: none, entropy'),
        ({'model': {'layers': 2}}, r'model\.layers is unknown; accepted: temperature'),
        (
            {'model': {'temperature': 'entropy'}, 'init': 'sparse'},
            r"model\.temperature is 'entropy'; it follows the entropy of softmax",
        ),
        (
            {'model': {'temperature': 'entropy'}, 'init': 'learned'},
            r"init is 'learned'; it was trained with the temperature 'adaptive', which no other",
        ),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_by_its_name(entry: dict[str, Any], message: str) -> None:
    learned = {'init': None, 'model': {'temperature': 'adaptive'}}
    sparse = {'init': None, 'model': {'weights': 'entmax'}}
    with pytest.raises(ValueError, match=rf'^runs\.sharp\.{message}'):
        experiment(None, learned=learned, sparse=sparse, sharp={'init': 'nope', **entry})


def test_a_search_moves_no_temperature_to_other_heads() -> None:
    """`lam_layers` says where the temperature acts too, and the searched model is frozen."""
    half = {'position': {'kind': 'split', 'local': {'kind': 'rope'}}}
    search = {'law': 'log_length', 'times': (2.0,)}
    every = {'search': search, 'model': {'lam_layers': 'all'}}

    def run_of(temperature: str, lam_layers: str) -> Any:
        model = {**half, 'lam_layers': lam_layers, 'temperature': temperature}
        found = experiment(
            None, base={'init': None, 'model': model}, searched={**every, 'init': 'base'}
        )
        return found.evals['searched/seed0'].run

    rule = r"model\.lam_layers is 'all'; the model's temperature, '{}', acts in 'nope'"
    with pytest.raises(ValueError, match=rf'^runs\.searched\.{rule.format("adaptive")}'):
        run_of('adaptive', 'nope')
    with pytest.raises(ValueError, match=rf'^runs\.searched\.{rule.format("entropy")}'):
        experiment(
            None,
            base={'init': None, 'model': {**half, 'lam_layers': 'nope'}},
            sharp={**ENTROPY, 'init': 'base'},
            searched={**every, 'init': 'sharp'},
        )
    for temperature, lam_layers in (('none', 'nope'), ('adaptive', 'all')):
        assert run_of(temperature, lam_layers).model.lam_layers == 'all'


def test_another_encoding_does_not_move_it_to_other_heads() -> None:
    """Without the split every head is one without position, where `lam_layers` says 'nope'."""
    changed = {'position': {'kind': 'none'}}
    tuned = {'init': 'base', 'model': changed, 'finetune': {'times': (1.0,)}}

    def build_with(lam_layers: str, *, evaluate: bool) -> Experiment:
        position = {'kind': 'split', 'local': {'kind': 'alibi'}}
        model = {'position': position, 'lam_layers': lam_layers, 'temperature': 'adaptive'}
        base = {'init': None, 'model': model}
        if evaluate:
            return experiment(
                None, base=base, evals={'none/': {**LENGTHS, 'run': 'base', **changed}}
            )
        return experiment(None, base=base, tuned=tuned)

    rule = r"'adaptive', would act in other heads than before, since lam_layers is 'nope'"
    with pytest.raises(ValueError, match=rf'^runs\.tuned\.model\.position .*{rule}'):
        build_with('nope', evaluate=False)
    with pytest.raises(ValueError, match=rf'^evals\.none/\.position .*{rule}'):
        build_with('nope', evaluate=True)
    assert (
        build_with('all', evaluate=False).evals['tuned/seed0'].run.model.kinds[0].position == NoPE()
    )
    assert build_with('all', evaluate=True).evals['none/seed0'].position == NoPE()


def test_the_figure_of_laws_has_one_of_either_kind() -> None:
    evals = build(build_test.config_of('laws')).evals
    entropy, adaptive = (
        evals[f'{name}/seed0'].run for name in ('temperature_entropy', 'trained_adaptive')
    )
    assert isinstance(entropy, TemperatureSpec) and entropy.init == evals['base/seed0'].run
    assert isinstance(adaptive, RunSpec) and adaptive.init is None
    assert adaptive.model.temperature == 'adaptive' and entropy.model.temperature == 'entropy'
