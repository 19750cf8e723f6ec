"""Every claim of the catalogue has a headline from its rule, on made-up numbers."""

from __future__ import annotations

import functools
import re

import pytest

from experiments import figures
from experiments.figures import KINDS, Claim, FigureInput
from experiments.figures.claims import laws
from experiments.figures.claims.catalogue import CLAIMS
from tests.experiments.figures import synthetic
from tests.experiments.figures.claims import (
    code_models_test,
    laws_test,
    longbench_test,
    passkey_test,
)
from tests.experiments.figures.synthetic import INPUTS


def drawn(kind: str, records=None, **options) -> list[Claim]:
    given = INPUTS[kind]
    runs = given.records if records is None else records
    return list(figures.draw(kind, FigureInput('f', runs, {**given.options, **options})).claims)


def with_rotary() -> list[Claim]:
    """Curves of every role."""
    made = synthetic.positions_records
    records = {
        'nope': made(),
        'uniform': made(lam='1.3', multiplier=1.3, loss_bend=120, entropy_bend=130, floor=1.55),
        'heads': made(lam='HeadScale at 256', multiplier=None, loss_bend=150, floor=1.53),
        'rope': made(loss_bend=70, position='rotary'),
        'rope_uniform': made(lam='1.3', multiplier=1.3, loss_bend=70, position='rotary'),
        'ntk': made(loss_bend=250, entropy_bend=250, position='rotary, NTK'),
    }
    roles = {'base': 'nope', 'uniform': ['uniform'], 'headscale': {4: 'heads'}}
    roles |= {'rotary': 'rope', 'rotary_uniform': ['rope_uniform'], 'ntk': 'ntk'}
    panels = [{'curves': [{'record': name} for name in records]}]
    return drawn('entropy_loss', records, panels=panels, roles=roles)


def with_all_passkeys() -> list[Claim]:
    made = functools.partial(synthetic.passkey_records, 8192, window=2048)
    records = {
        'full': made(share=0.9, reach=4096),
        'no_bound': made(share=0.6),
        'no_init': synthetic.passkey_records(8192, window=4096, share=0.3),
        'rope': made(reach=1100),
        'alibi': made(reach=2500),
    }
    panels = [{'record': name, 'label': name} for name in records]
    roles = {'full': 'full', 'nope': ['full'], 'rotary': 'rope', 'alibi': ['alibi']}
    found = drawn('passkey_maps', records, panels=panels, roles=roles)
    roles = {'no_init': 'no_init'}
    alike = {'full': records['no_init'], 'no_init': records['no_init']}
    panels = [{'record': name, 'label': name} for name in alike]
    return found + drawn('passkey_maps', alike, panels=panels, roles={**roles, 'full': 'full'})


def with_near_searches() -> list[Claim]:
    records = {
        f'{name}/seed0': synthetic.length_records(synthetic.PILOT['headscale_4x'])
        for name in ('four', 'six')
    }
    curves = [{'group': name, 'label': name} for name in ('four', 'six')]
    roles = {'headscale': {4: 'four', 6: 'six'}}
    return drawn('length_curves', records, curves=curves, roles=roles)


def with_retrofit() -> list[Claim]:
    roles = {'retrofit': synthetic.FRONTIER_ROLES['split'], 'rotary': 'rotary'}
    return drawn('frontier', roles=roles)


def with_all_laws() -> list[Claim]:
    losses = {name: [laws_test.BASE - 0.01] for name in ('uniform', 'heads', *laws.ROLES)}
    losses['base'] = [laws_test.BASE]
    return list(laws_test.claims(losses, headscale={4: 'heads'}).values())


@pytest.fixture(scope='module')
def measured() -> dict[str, list[Claim]]:
    """Claims that were measured, by id."""
    claims = [claim for kind in KINDS for claim in drawn(kind)]
    claims += with_rotary() + with_all_passkeys() + with_near_searches()
    claims += with_retrofit() + with_all_laws()
    claims += passkey_test.claims({'no_init': passkey_test.depths(0.9, 0.1)})
    claims += code_models_test.drawn(code_models_test.PAPER)
    claims += longbench_test.claims((16.5, 18.3, 18.5, 17.2, 17.0)).values()
    found: dict[str, list[Claim]] = {}
    for claim in claims:
        if claim.verdict != 'not measured':
            found.setdefault(claim.id, []).append(claim)
    return found


@pytest.mark.parametrize('name', CLAIMS)
def test_a_measured_claim_has_a_headline_of_one_line_with_a_number(name, measured):
    for claim in measured[name]:
        assert claim.headline and '\n' not in claim.headline
        assert len(claim.headline) <= 250
        assert re.search(r'\d', claim.headline) or 'none measured' in claim.headline
        assert all(number.what and number.by_seed for number in claim.numbers)


def test_numbers_of_several_seeds_have_an_interval():
    for claim in drawn('length_curves'):
        for number in claim.numbers:
            assert len(number.by_seed) == 3 and number.stated()['interval']
            assert re.search(r'\[-?\d+\.\d+, -?\d+\.\d+\]', number.said())
