"""Numbers, panels and claims of the figure of silenced heads."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import figures
from experiments.figures import FigureInput
from tests.experiments.figures import synthetic
from tests.experiments.figures.synthetic import HEAD_GROUPS, HEADS


def drawn(runs=None, **options):
    runs = synthetic.effect_runs(1) if runs is None else runs
    given = FigureInput('f', runs, {**synthetic.effect_options(), **options})
    return figures.draw('head_effects', given)


def claims(**changed):
    return {claim.id: claim for claim in drawn(synthetic.effect_runs(1, **changed)).claims}


def test_rows_say_what_each_head_takes_with_it():
    rows = [row for row in drawn().rows if row['length_over_L'] == 8]
    assert len(rows) == len(HEADS) + len(HEAD_GROUPS)
    for row, (head, (rise, _, far)) in zip(rows, HEADS.items(), strict=False):
        assert row['silenced'] == f'{head[0]}.{head[1]}'
        np.testing.assert_allclose(row['loss_rise_nats'], rise)
        np.testing.assert_allclose(row['keys_lost'], 1 - far)
    assert rows[-1]['silenced'] == '0.2 0.3 1.2 1.3 2.2 2.3 3.2 3.3'


def test_panels_are_grids_of_layers_by_heads_with_the_local_ones_framed():
    panels = [axes for axes in drawn().figure.axes if axes.images and axes.get_title()]
    assert len(panels) == 4
    keys = panels[3].images[0].get_array()
    assert keys.shape == (4, 4) and keys[2, 3] == pytest.approx(75)
    for axes in panels:
        assert len(axes.patches) == len(HEAD_GROUPS['local'][0])
        assert len(axes.texts) == 16


def test_a_head_that_was_not_silenced_stays_blank():
    options = synthetic.effect_options()
    panels = drawn(heads=options['heads'][1:]).figure.axes
    assert len(panels[0].texts) == 15
    assert np.isnan(panels[0].images[0].get_array().filled(np.nan)[0, 0])


def test_rows_of_the_grid_are_the_layers_of_the_heads():
    """In a hybrid attention may be in layers 1 and 3 alone."""
    some = [x for x in synthetic.effect_options()['heads'] if x['label'][-3] in '13']
    panel = drawn(heads=some).figure.axes[3]
    assert panel.images[0].get_array().shape == (2, 4) and len(panel.texts) == 8
    assert [text.get_text() for text in panel.get_yticklabels()] == ['1', '3']
    assert len(panel.patches) == 4  # of the eight local heads


def test_claims_name_the_head_that_retrieves():
    found = claims()
    assert [found[k].holds for k in ('local_carry_loss', 'global_carry_keys')] == [True, True]
    needed = found['global_carry_keys'].measured['keys_lost_without_head']
    assert needed == {'nope': {'2.3': 0.75}, 'local': {}}
    local = HEADS | {(2, 3): (0.02, 1.0, 1.0), (1, 0): (0.1, 0.9, 0.2)}
    assert claims(heads=local)['global_carry_keys'].holds is False
    tenth = HEADS | {(2, 3): (0.02, 1.0, 0.9)}  # 1 - 0.9 is below a tenth in binary
    assert claims(heads=tenth)['global_carry_keys'].holds is True
    none = dict.fromkeys(HEADS, (0.0, 1.0, 1.0))
    assert claims(heads=none)['global_carry_keys'].holds is False
    assert claims(whole=(0.0, 0.0, 0.0))['global_carry_keys'].verdict == 'not measured'
    swapped = {'local': (HEAD_GROUPS['local'][0], (0.1, 0, 0)), 'nope': HEAD_GROUPS['nope']}
    assert claims(groups=swapped)['local_carry_loss'].holds is False


def test_each_seed_is_drawn_and_decided_alone():
    """No mean: another seed has its retrieving head elsewhere."""
    moved = {(2, 2): HEADS[2, 3], (2, 3): (0.0, 1.0, 1.0)}
    second = synthetic.effect_runs(2, heads={**HEADS, **moved})
    runs = synthetic.effect_runs(1) | {k: v for k, v in second.items() if k.endswith('/seed1')}
    output = drawn(runs)
    keys = [axes for axes in output.figure.axes if axes.images and axes.get_title()][3]
    assert keys.images[0].get_array()[2, 3] == pytest.approx(75)
    assert 'Shown: seed0 of 2 seeds.' in output.caption
    lost = {
        row['seed']: row['keys_lost']
        for row in output.rows
        if (row['silenced'], row['length_over_L']) == ('2.2', 8)
    }
    assert lost == {'seed0': 0, 'seed1': pytest.approx(0.75)}
    claim = next(claim for claim in output.claims if claim.id == 'global_carry_keys')
    assert (claim.verdict, list(claim.numbers[0].by_seed)) == ('holds', [75, 75])
    del runs['2.2_keys/seed1'], runs['2.2_loss/seed1']
    with pytest.raises(ValueError, match='the records differ in their seeds'):
        drawn(runs)


def test_numbers_are_of_all_seeds():
    """Also where their lowest rise is at different lengths, and an interval decides."""
    weak = {**HEADS, (2, 3): (0.02, 1.0, 0.875)}
    runs = synthetic.effect_runs(3)
    first = synthetic.effect_runs(1, heads=weak)
    output = drawn(runs | first)
    assert all(len(n.by_seed) == 3 for claim in output.claims for n in claim.numbers)
    found = {claim.id: claim for claim in output.claims}
    assert [found[k].verdict for k in ('local_carry_loss', 'global_carry_keys')] == [
        'holds', 'undecided'
    ]  # fmt: skip


def test_without_the_seeds_apart_several_are_refused():
    given = FigureInput('f', synthetic.effect_runs(2), synthetic.effect_options())
    with pytest.raises(ValueError, match=r"'f': heads are those of one seed, got \['seed0', 's"):
        figures.KINDS['head_effects'].draw(given)


def test_records_must_say_which_heads_are_silenced():
    runs = synthetic.effect_runs(1)
    name = '0.0_loss/seed0'
    runs[name] = synthetic.stating(runs[name], silenced=None)
    with pytest.raises(ValueError, match=r"records of 'without 0\.0' must be of a model with the"):
        drawn(runs)
    options = synthetic.effect_options()
    with pytest.raises(ValueError, match="'without local' is among the heads, and 8 are silenced"):
        drawn(heads=options['groups'])
