"""Configs with encoders: what is read, and what is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from configs.second_paper import b_encoder, b_mrr
from experiments.ahead import of_piece
from experiments.build import build
from experiments.programs import Filling, Step
from experiments.runs import RunSpec
from nope.training.config import Compute
from tests.experiments.task_configs import config, spec_of, with_run

MATCH = {'kind': 'exact_match', 'run': 'one'}
ENCODER = {'model': {'causal': False}}


def test_decoders_are_those_of_b_mrr_and_encoders_other_runs() -> None:
    evals, others = build(b_encoder.get_config()).evals, build(b_mrr.get_config()).evals
    for task in ('rsc', 'rdc'):
        decoder, encoder = (evals[f'{task}_{name}/seed0'] for name in ('nope', 'encoder_nope'))
        assert decoder == others[f'{task}_nope/seed0']
        assert not encoder.run.model.causal and encoder.slug() != decoder.slug()
        assert encoder.run.slug().startswith(f'{task}-encoder-nope-')
        assert encoder.run.data == decoder.run.data


def test_encoders_have_programs_of_their_own() -> None:
    spec = spec_of(build(config(**ENCODER)))
    assert isinstance(spec.run, RunSpec)
    (step,) = (program for program, _ in of_piece(spec.run, Compute(), 4096))
    assert isinstance(step, Step) and step.arrays == ('weights', 'segments')
    (program,) = (program for program, _ in of_piece(spec, Compute(), 4096))
    assert isinstance(program, Filling) and program.length == 128


@pytest.mark.parametrize(
    ('entry', 'message'),
    [
        (
            ENCODER | {'task': {'name': 'addition'}},
            r"runs\.one\.model\.causal is False; accepted: True for the task 'addition'",
        ),
        (
            {'model': {'causal': False, 'position': {'kind': 't5'}}},
            r'runs\.one\.model\.causal is False; T5 bias is not defined for keys after the query',
        ),
        ({'model': {'causal': 0}}, r'runs\.one\.model\.causal is 0'),
        (
            {'model': {'causal': False, 'temperature': 'adaptive'}},
            r"runs\.one\.model\.temperature is 'adaptive'; accepted: 'none'",
        ),
    ],
)
def test_a_run_that_no_encoder_can_be_is_refused(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(config(**entry))


def test_text_is_refused() -> None:
    found = with_run(text={'data': {'source': 'stdlib'}, 'train': {'length': 20}, **ENCODER})
    found.evals['text/'] = {'kind': 'positions', 'run': 'text'}
    with pytest.raises(ValueError, match=r'runs\.text\.model\.causal is False; .* True for text'):
        build(found)


def test_no_other_run_starts_from_an_encoder() -> None:
    found = config(**ENCODER)
    found.runs['later'] = {'init': 'one', 'lam': {'law': 'constant', 'coefficient': 2.0}}
    found.evals['later/'] = MATCH | {'run': 'later'}
    with pytest.raises(ValueError, match=r"runs\.later\.init is 'one'; it is an encoder"):
        build(found)


@pytest.mark.parametrize('kind', ['attention_distance', 'attended_distance'])
def test_exact_match_alone_measures_encoders(kind: str) -> None:
    found = config(**ENCODER)
    found.evals['more/'] = {'kind': kind, 'run': 'one'}
    with pytest.raises(
        ValueError, match=rf"evals\.more/.*\.run is 'one'; {kind} measures decoders"
    ):
        build(found)
