"""Points, labels and claims of the frontier of in-domain loss against loss far beyond L."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib import colormaps
from matplotlib.colors import to_rgba
from matplotlib.text import Annotation

from experiments.figures import KINDS, FigureInput
from experiments.figures.kinds import frontier
from tests.experiments.figures import synthetic
from tests.experiments.figures.synthetic import FOUR, FRONTIER, INPUTS, key_records, length_records

OPTIONS = INPUTS['frontier'].options
FAR = (1.0,) * 7


def drawn(runs=None, **options):
    runs = synthetic.frontier_runs(2) if runs is None else runs
    return KINDS['frontier'].draw(FigureInput('f', runs, {**OPTIONS, **options}))


def figure_of(losses, keys=FAR, four=(1.0,) * 5, own_keys=None, **options):
    """Of split heads and RoPE. losses: by name, at L and from 8 L to 32 L of each seed; those of
    the last L / 2 positions rise twice as much. own_keys: by name, where they are not `keys`."""
    own_keys = own_keys or {}
    runs, points = {}, []
    for name, by_seed in losses.items():
        for seed, (first, last) in enumerate(by_seed):
            facts = {'train_length': 128, 'run_id': f'{name}-{seed}', 'seed': seed}
            loss = np.append(np.linspace(first, last, 7), (last, last))
            records = length_records(loss, multiples=synthetic.FAR, **facts)
            tail = 2 * loss - first
            runs[f'{name}/{seed}'] = synthetic.measuring(records, loss_window=loss, loss_tail=tail)
            runs[f'{name}_keys/{seed}'] = key_records(own_keys.get(name, keys), **facts)
            runs[f'{name}_four/{seed}'] = key_records(four, **facts, **FOUR)
        points.append({'label': name, 'loss': name, 'keys': f'{name}_keys', 'four': f'{name}_four'})
    roles = {'split': 'split', 'rope': 'rope'}
    options = {'points': points, 'roles': roles} | options
    return KINDS['frontier'].draw(FigureInput('f', runs, options))


def claims(split, rope=((1.3, 3.0), (1.3, 3.0)), **more):
    return {c.id: c for c in figure_of({'split': split, 'rope': rope}, **more).claims}


def test_a_row_is_a_seed_and_a_length_of_a_point_with_what_the_records_hold():
    given = INPUTS['frontier']
    rows = KINDS['frontier'].draw(given).rows
    assert len({(row['label'], row['seed']) for row in rows}) == 3 * len(FRONTIER)
    for row in rows:
        for measure, column, record in (
            ('loss_window', 'loss_window_nats', row['loss_record']),
            ('loss_tail', 'loss_tail_nats', row['loss_record']),
            ('accuracy', 'share_of_keys', row['keys_record']),
            ('accuracy', 'share_of_four_keys', row['four_record']),
        ):
            if record is None:
                assert row[column] is None
                continue
            found = given.records[record]
            lengths = found.along('length', len(found[measure])) / found.attributes['train_length']
            there = np.flatnonzero(np.isclose(lengths, row['length_over_L']))
            if len(there):
                assert row[column] == pytest.approx(found[measure][there[0]].mean())
            else:
                assert row[column] is None
        assert (row['prompts'], row['asked']) == (100, 'one key in filler')
    assert {64.0, 1.0} <= {row['length_over_L'] for row in rows if row['share_of_keys'] is not None}


def numbers_of(axes):
    return [int(t.get_text()) for t in axes.texts if isinstance(t, Annotation)]


def test_points_lie_at_their_losses_in_the_colour_of_their_keys_and_the_legend_names_them():
    output = drawn()
    dots = [line for line in output.figure.axes[0].lines if line.get_marker() == 'o']
    names = [text.get_text() for text in output.figure.legends[0].get_texts()]
    for number, (dot, (label, (_, _, share))) in enumerate(
        zip(dots, FRONTIER.items(), strict=True), 1
    ):
        mine = [row for row in output.rows if row['label'] == label]
        losses = [
            np.mean([row['loss_window_nats'] for row in mine if row['length_over_L'] == multiple])
            for multiple in (1, 8)
        ]
        np.testing.assert_allclose(dot.get_xydata()[0], losses)
        color = colormaps[frontier.COLORS](share)
        assert to_rgba(dot.get_color()) == pytest.approx(to_rgba(color))
        assert names[number - 1] == f'{number}  {label}'


def test_methods_near_the_lowest_loss_have_a_panel_where_others_hide_them():
    figure = drawn().figure
    assert len(figure.axes) == 3  # and the bar
    losses = enumerate(FRONTIER.values(), 1)
    near = {number for number, (_, last, _) in losses if last < 1.319 + frontier.NEAR}
    far = set(range(1, len(FRONTIER) + 1)) - near
    assert [sorted(numbers_of(axes)) for axes in figure.axes[:2]] == [sorted(far), sorted(near)]
    alike = figure_of({'split': [(1.3, 1.3)], 'rope': [(1.31, 1.32)]}).figure
    assert len(alike.axes) == 2 and sorted(numbers_of(alike.axes[0])) == [1, 2]
    apart = figure_of({'split': [(1.3, 1.3)], 'rope': [(1.3, 3.0)]}).figure
    assert len(apart.axes) == 2


def test_whiskers_reach_from_the_smallest_to_the_largest_seed():
    output = figure_of({'split': [(1.3, 1.4), (1.2, 1.5)], 'rope': [(1.3, 3.0), (1.3, 3.0)]})
    across, up, *_ = output.figure.axes[0].lines
    np.testing.assert_allclose(across.get_xdata(), [1.2, 1.3])
    np.testing.assert_allclose(up.get_ydata(), [1.4, 1.5])
    one = figure_of({'split': [(1.3, 1.4)], 'rope': [(1.3, 3.0)]})
    assert len(one.figure.axes[0].lines) == 3  # two points, and where nothing is lost
    assert 'whiskers' in output.caption and 'One seed each.' in one.caption


@pytest.mark.parametrize(
    ('split', 'keeps', 'in_domain'),
    [
        ([(1.31, 1.335)] * 2, True, True),
        ([(1.31, 1.336)] * 2, False, True),
        ([(1.311, 1.3)] * 2, True, False),
        ([(1.30, 1.35), (1.31, 1.20)], None, None),  # intervals of two seeds are wide
    ],
)
def test_every_seed_must_keep_its_loss_and_match_rope(split, keeps, in_domain):
    split = [(a - 1e-12, b - 2e-12) for a, b in split]  # sums of decimals are not exact
    found = claims(split)
    assert (found['keeps_loss'].holds, found['in_domain'].holds) == (keeps, in_domain)
    rises = [2 * (b - a) for a, b in split]
    assert list(found['keeps_loss'].numbers[0].by_seed) == pytest.approx(rises)


def test_a_loss_that_was_not_measured_at_32_l_decides_nothing():
    runs = synthetic.frontier_runs(1)
    for name, records in runs.items():
        if 'loss' in name:
            facts = {k: records.attributes[k] for k in ('train_length', 'run_id', 'seed')}
            runs[name] = length_records(records['loss_window'][:7], **facts)
    found = {claim.id: claim for claim in drawn(runs).claims}
    assert 'was not measured at 32 L' in found['keeps_loss'].measured['missing']
    assert found['in_domain'].holds is not None


def test_keys_decide_as_in_curves_of_keys():
    losses = [(1.3, 1.3), (1.3, 1.3)]
    found = claims(losses, keys=(1.0,) * 6 + (0.9,), four=(1.0,) * 4 + (0.9,))
    assert (found['keys_far'].holds, found['keys_four'].holds) == (False, True)
    short = claims(losses, keys=FAR[:4], four=FAR[:4])
    assert [short[k].holds for k in ('keys_far', 'keys_four')] == [None, None]
    assert 'not at 64 L' in short['keys_far'].measured['missing']


@pytest.mark.parametrize(
    ('first', 'second', 'below'), [(1.30, 1.31, True), (1.30, 1.303, None), (1.30, 1.29, False)]
)
def test_one_number_a_head_is_held_against_one_of_the_same_search(first, second, below):
    rivals = {'other': 1.3, 'many': first - 0.1, 'one a': 1.4, 'one b': second - 0.1, 'NAPE': 1.1}
    losses = {name: [(1.0, loss), (1.0, loss)] for name, loss in rivals.items()}
    roles = {'per_head': ['other', 'many'], 'one_number': ['one a', 'one b'], 'nape': 'NAPE'}
    roles |= {'state_space': 'many', 'window': 'one b'}
    low = {'one b': (1.0,) * 6 + (0.9,)}
    found = {c.id: c for c in figure_of(losses, own_keys=low, roles=roles).claims}
    claim = found['per_head_below_one']
    assert claim.holds is below and claim.numbers[0].what.endswith('one b')
    assert list(claim.numbers[0].by_seed) == pytest.approx([first - second] * 2)
    assert found['state_space_below_window'].holds is below
    assert found['below_nape'].holds is False
    assert found['state_space_further_than_window'].holds is True
    # As many keys decide nothing, also where another rival has fewer.
    assert found['per_head_further_than_one'].holds is None
    assert found['per_head_further_than_one'].numbers[0].what.endswith('one a')
    assert found['further_than_nape'].holds is None
    low |= {'one a': low['one b'], 'NAPE': low['one b']}
    found = {c.id: c for c in figure_of(losses, own_keys=low, roles=roles).claims}
    for claim in ('per_head_further_than_one', 'further_than_nape'):
        assert found[claim].holds is True
        assert list(found[claim].numbers[0].by_seed) == pytest.approx([10.0, 10.0])
    points = [
        {'label': n, 'loss': n, 'keys': f'{n}_{"four" if n == "NAPE" else "keys"}'} for n in losses
    ]
    asked = figure_of(losses, four=FAR, own_keys=low, roles=roles, points=points)
    found = {c.id: c for c in asked.claims}
    assert found['per_head_further_than_one'].holds is True
    missing = found['further_than_nape'].measured['missing']
    assert missing == "'NAPE' was asked for 4 named keys in filler, not for a single key"


def test_roles_and_groups_that_are_missing_leave_claims_undecided():
    assert all(c.holds is None for c in drawn(roles={}).claims)
    points = [{**p, 'four': None} for p in OPTIONS['points']]
    found = {c.id: c for c in drawn(points=points).claims}
    assert found['keys_four'].measured == {'missing': "the point of the role 'split' has no four"}
    assert found['keys_far'].holds is not None and found['in_domain'].holds is True


def test_what_makes_no_point_is_refused():
    runs = synthetic.frontier_runs(1)
    changed = synthetic.stating(runs['p1_keys/seed0'], run_id='another')
    with pytest.raises(ValueError, match="'p1_loss' and 'p1_keys' are of different runs"):
        drawn(runs | {'p1_keys/seed0': changed})
    facts = {'train_length': 128, 'run_id': 'p1_loss-0'}
    with pytest.raises(ValueError, match=r"'p1_loss' was measured at 1, 2, 4 L, not at 8 L"):
        drawn(runs | {'p1_loss/seed0': length_records((1.3,) * 3, multiples=(1, 2, 4), **facts)})
    with pytest.raises(ValueError, match=r"'p1_keys' was measured at 1, 2, 4 L, not at 8 L"):
        drawn(runs | {'p1_keys/seed0': key_records((1.0,) * 3, **facts)})
    with pytest.raises(ValueError, match="'p1_loss' has the seeds"):
        more = length_records((1.3,) * 9, 1, synthetic.FAR, **facts)
        drawn(runs | {'p1_loss/seed1': more, 'p1_keys/seed1': key_records(FAR, 1, **facts)})
