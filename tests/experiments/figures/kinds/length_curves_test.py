"""Numbers and claims of the figure over sequence lengths."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.figures import KINDS, FigureInput
from nope.records import Records
from tests.experiments.figures import synthetic
from tests.experiments.figures.synthetic import INPUTS

OPTIONS = INPUTS['length_curves'].options


def claims(runs, **options):
    return KINDS['length_curves'].draw(FigureInput('f', runs, {**OPTIONS, **options})).claims


def shifted(runs, prefix, amount, index):
    """`runs` with the window loss of the records below `prefix` raised at one length."""
    changed = dict(runs)
    for name in [n for n in runs if n.startswith(prefix)]:
        loss = runs[name]['loss_window'].copy()
        loss[index] += amount
        changed[name] = synthetic.measuring(runs[name], loss_window=loss)
    return changed


def test_length_claims_of_the_pilot():
    found = KINDS['length_curves'].draw(INPUTS['length_curves']).claims
    # HeadScale at 8 L is 0.01 and more ahead of log-length beyond 4 L, as built.
    assert [(c.number, c.holds) for c in found] == [
        (7, True),
        (7, True),
        (10, True),
        (None, False),
        (None, None),
        (None, None),
    ]
    (four, _) = found[0].measured['smallest HeadScale - base at L'].values()
    assert four['mean'] == pytest.approx(1.729 - 1.611)
    assert found[4].measured['loss_window']['1 L']['best'] == 'base'
    assert found[4].measured['loss_window']['8 L']['best'] == 'HeadScale searched at 8 L'


def test_seeds_that_disagree_decide_nothing():
    runs = shifted(synthetic.length_runs(2), 'headscale_4x/seed0', -0.4, 0)
    hurts = claims(runs)[0]
    assert (hurts.holds, hurts.verdict) == (None, 'undecided')
    (four, eight) = hurts.measured['smallest HeadScale - base at L'].values()
    assert four['interval'][0] < 0 < four['interval'][1]
    assert eight['interval'][0] > 0


def test_length_claims_fail_where_the_numbers_do():
    runs = shifted(synthetic.length_runs(2), 'headscale_4x/', -0.2, 0)
    runs = shifted(runs, 'headscale_4x/', 0.2, 4)
    found = claims(runs)
    assert [c.holds for c in found if c.number == 7] == [False, False]


def test_log_length_is_level_where_no_other_curve_is_ahead():
    runs = {k: r for k, r in synthetic.length_runs(2).items() if not k.startswith('headscale_8x')}
    curves = [c for c in OPTIONS['curves'] if c['group'] != 'headscale_8x']
    roles = OPTIONS['roles'] | {'headscale': {4: 'headscale_4x'}}
    found = claims(runs, curves=curves, roles=roles)
    assert [c.holds for c in found if c.id == 'log_length_serves_every_length'] == [True]


def test_claims_whose_roles_nobody_plays_are_undecided_and_say_so():
    roles = {k: v for k, v in OPTIONS['roles'].items() if k != 'uniform'}
    found = claims(synthetic.length_runs(1), roles=roles)
    assert [c.holds for c in found] == [True, None, True, False, None, None]
    assert found[1].measured == {'missing': "no curve has the role 'uniform'"}
    *none, lowest, longer = claims(synthetic.length_runs(1), roles={})
    assert all(c.holds is None and 'missing' in c.measured for c in (*none, longer))
    assert set(lowest.measured) == {'loss_window', 'loss_tail'}


def test_curves_of_other_windows_are_not_ranked():
    runs = synthetic.length_runs(1)
    name = next(name for name in runs if name.startswith('headscale_4x/'))
    measured = {**runs[name].attributes['measured_on'], 'how': 'searched on a longer mixture'}
    runs[name] = synthetic.stating(runs[name], measured_on=measured)
    (lowest,) = [claim for claim in claims(runs) if claim.id == 'lowest']
    assert 'missing' not in lowest.measured
    runs[name] = synthetic.stating(runs[name], split='test')
    between = {'lowest', 'log_length_serves_every_length', 'headscale_hurts'}
    missing = {c.id: c.measured['missing'] for c in claims(runs) if c.id in between}
    assert missing == dict.fromkeys(between, 'curves were measured on different windows')


def test_a_search_at_another_length_than_its_role_says_is_refused():
    runs = synthetic.length_runs(1)
    runs['headscale_8x/seed0'] = synthetic.stating(runs['headscale_8x/seed0'], searched_length=256)
    with pytest.raises(ValueError, match=r"say 8 L of 'headscale_8x/seed0', whose searched_length"):
        claims(runs)
    runs['headscale_8x/seed0'].attributes['searched_length'] = 512
    claims(runs)


def test_seeds_and_lengths_of_the_curves_must_agree():
    runs = synthetic.length_runs(2)
    del runs['uniform/seed1']
    with pytest.raises(ValueError, match="'uniform' has the seeds"):
        claims(runs)
    runs = synthetic.length_runs(1)
    other = runs['uniform/seed0']
    runs['uniform/seed0'] = Records(
        other.attributes, other.measures, {'length': other.coordinates['length'] + 1}
    )
    with pytest.raises(ValueError, match='measured at other lengths'):
        claims(runs)


@pytest.mark.parametrize(
    ('difference', 'holds'), [(-0.1, True), (0.1, False), (-0.005, None), (-5.0, True)]
)
def test_a_longer_search_serves_the_end_of_windows_or_does_not(difference, holds):
    """Searches at 4 and 6 L, the longer one with another loss at 4 L."""
    loss = np.array(synthetic.PILOT['headscale_4x'])
    longer = loss + difference * (np.array(synthetic.MULTIPLES) == 4)
    runs = {
        f'{name}/seed{seed}': synthetic.length_records(values, seed)
        for name, values in (('four', loss), ('six', longer))
        for seed in range(3)
    }
    curves = [{'group': name, 'label': name} for name in ('four', 'six')]
    found = {
        c.id: c for c in claims(runs, curves=curves, roles={'headscale': {4: 'four', 6: 'six'}})
    }['longer_search_serves_end']
    assert found.holds is holds
    assert f'searched at, 6 L - 4 L {difference:.3f} nats' in found.headline


def test_searches_that_lie_too_far_apart_are_not_compared():
    found = {c.id: c for c in KINDS['length_curves'].draw(INPUTS['length_curves']).claims}
    missing = found['longer_search_serves_end'].measured['missing']
    assert missing == 'nothing was measured for: at the end, searched at'


def test_searches_of_one_label_are_all_decided():
    given = INPUTS['length_curves']
    apart = KINDS['length_curves'].draw(given).claims[0]
    alike = [{**curve, 'label': 'HeadScale'} for curve in OPTIONS['curves']]
    found = claims(given.records, curves=alike)[0]
    (ours, others) = (c.measured['smallest HeadScale - base at L'] for c in (found, apart))
    assert list(ours.values()) == list(others.values())


def tuned(less_S: list[float], elsewhere: float = 0.0, **roles):
    """HeadScale at 4 L less a model tuned there, by seed, and at the other lengths."""
    loss = np.array(synthetic.PILOT['headscale_4x'])
    runs = {}
    for seed, less in enumerate(less_S):
        other = loss - np.where(np.array(synthetic.MULTIPLES) == 4, less, elsewhere)
        length = {'tuned_length': 256}
        runs[f'searched/seed{seed}'] = synthetic.length_records(loss, seed, searched_length=256)
        runs[f'tuned/seed{seed}'] = synthetic.length_records(other, seed, **length)
    curves = [{'group': name, 'label': name} for name in ('searched', 'tuned')]
    roles = {'headscale': {4: 'searched'}, 'tuned': {4: 'tuned'}, **roles}
    found = {claim.id: claim for claim in claims(runs, curves=curves, roles=roles)}
    return found.get('headscale_as_full_tuning')


@pytest.mark.parametrize(
    ('less_S', 'verdict'),
    [
        ([0.049, 0.0491, 0.0489], 'holds'),
        ([-0.049, -0.0491, -0.0489], 'holds'),
        ([0.051, 0.0511, 0.0509], 'does not hold'),
        ([-0.051, -0.0511, -0.0509], 'does not hold'),
        ([0.0, 0.04, 0.08], 'undecided'),
    ],
)
def test_headscale_is_held_against_fine_tuning_at_the_length_of_both(less_S, verdict):
    found = tuned(less_S, elsewhere=1.0)
    assert found.verdict == verdict
    assert found.headline.startswith(f'HeadScale - fine-tuned, searched {np.mean(less_S):.3f} nats')


def test_headscale_is_held_against_no_fine_tuning_at_another_length():
    with pytest.raises(ValueError, match="say 8 L of 'tuned/seed0', whose tuned_length is 256"):
        tuned([0.0], tuned={8: 'tuned'})
    found = tuned([0.0], headscale={}, tuned={4: 'tuned'})
    assert found.measured == {'missing': "no curve has the role 'headscale'"}
    assert tuned([0.0], tuned={}) is None
