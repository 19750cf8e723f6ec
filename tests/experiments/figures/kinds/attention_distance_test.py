"""Attention distances: what is drawn and told, and claims that can fail."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from experiments.figures import KINDS, Decided, FigureInput
from tests.experiments.figures.synthetic import (
    DISTANCES,
    INPUTS,
    claims_of,
    distance_input,
    measuring,
    with_records,
)

LIKE_T5, UNLIKE_ROPE = 'nope_attends_like_t5', 'nope_attends_unlike_rope'
ANOTHER_SEED = 't5_is_as_near_as_another_seed'


KIND = 'attention_distance'
draw = KINDS[KIND].draw


def claims(distances: Mapping[str, float], **more: Any) -> dict[str, Decided]:
    return claims_of(KIND, distance_input(distances, **more))


def test_the_order_of_the_paper_holds_and_another_does_not() -> None:
    assert [c.holds for c in claims_of(KIND, INPUTS[KIND]).values()] == [True, True, True]
    other = {**DISTANCES, 'T5': 0.7, 'APE': 0.1}
    assert [claims(other)[name].verdict for name in (LIKE_T5, UNLIKE_ROPE, ANOTHER_SEED)] == [
        'does not hold'
    ] * 3


def test_a_difference_inside_the_margin_or_the_interval_decides_nothing() -> None:
    near = {**DISTANCES, 'ALiBi': 1.1 * DISTANCES['T5']}
    assert claims(near)[LIKE_T5].verdict == 'undecided'
    assert claims(DISTANCES, seeds=1)[LIKE_T5].verdict == 'undecided'
    given = distance_input()
    one = given.records['ALiBi/2']
    below = with_records(given, **{'ALiBi/2': measuring(one, distance=0.1 * one['distance'])})
    assert claims_of(KIND, below)[LIKE_T5].verdict == 'undecided'


def test_two_seeds_are_one_pair_of_models() -> None:
    found = claims(DISTANCES, seeds=2)
    assert found[LIKE_T5].verdict == 'holds'
    assert 'two have one distance' in found[ANOTHER_SEED].measured['missing']


def test_what_a_claim_needs_and_is_missing_is_said() -> None:
    few = {name: DISTANCES[name] for name in ('RoPE', 'ALiBi', 'T5')}
    found = claims(few, task=None)
    assert found[LIKE_T5].holds
    assert found[UNLIKE_ROPE].measured == {'missing': "no curve is of the encoding 'APE'"}
    assert found[ANOTHER_SEED].measured == {'missing': "no curve is of the encoding 'NoPE'"}
    assert "'T5'" in claims({'ALiBi': 0.4})[LIKE_T5].measured['missing']
    two = claims({name: DISTANCES[name] for name in ('ALiBi', 'T5')})
    assert 'fewer than two' in two[LIKE_T5].measured['missing']


def test_rows_and_text_have_layers_sides_and_the_paper_s_numbers() -> None:
    output = draw(INPUTS['attention_distance'])
    assert len(output.rows) == 5 * 3 * 7 * 4
    last = output.rows[3]
    assert (last['length'], last['layer'], last['longest']) == (2, 4, 4)
    assert last['released'] == pytest.approx(2 * last['distance'])
    lines = output.markdown.splitlines()
    assert lines[0] == '| rsc, nats | the RoPE | the ALiBi | the T5 | the APE | the NoPE |'
    assert lines[2].startswith('| up to 4, all layers | 0.100 | 0.100 ')
    assert lines[3].startswith('| beyond 4, all layers | 0.610 | 0.410 | 0.210 ')
    assert lines[4].startswith('| beyond 4, layer 1 | 0.549 ')
    # Heads are 1, 5, 9, 13 and 1, 2, 3, 4 times the least from their nearest: 4.75 on average.
    assert lines[8] == "| up to 4, every head's nearest" + ' | 0.475' * 5 + ' |'
    assert lines[-2].startswith('| beyond 4, as the released code | 1.220 ')
    assert '| 0.32 to 1.3 | 0.15 to 0.73 | 0.1 to 0.3 |' in lines[-1]


def test_text_has_an_axis_of_window_lengths() -> None:
    figure = draw(distance_input(task=None, seeds=1)).figure
    panels = [axes for axes in figure.axes if axes.get_visible()]
    assert len(panels) == 5
    assert panels[0].get_title() == 'text, all layers'
    assert panels[4].get_title() == 'text, layer 4'
    assert panels[0].get_xscale() == panels[0].get_yscale() == 'log'


def test_models_that_attend_alike_are_drawn_and_decide_nothing() -> None:
    given = distance_input()
    alike = {name: measuring(r, distance=0 * r['distance']) for name, r in given.records.items()}
    found = claims_of(KIND, with_records(given, **alike))
    assert found[LIKE_T5].measured == {'missing': 'T5 is at a distance of 0'}


def test_records_that_do_not_belong_together_are_refused() -> None:
    given = INPUTS['attention_distance']
    other = distance_input(task='scan').records['T5/2']
    with pytest.raises(ValueError, match="the seeds of 'T5' differ in what is read"):
        draw(with_records(given, **{'T5/2': other}))
    fewer = {name: r for name, r in given.records.items() if name != 'T5/2'}
    with pytest.raises(ValueError, match=r"'the T5' on 'rsc' has the seeds \['0', '1'\], others"):
        draw(dataclasses.replace(given, records=fewer))
    two = distance_input(task='scan')
    renamed = {f's{name}': r for name, r in two.records.items()}
    one_more = {**two.options['curves'][0], 'group': 'sRoPE'}
    both = {'curves': [*given.options['curves'], one_more]}
    with pytest.raises(ValueError, match=r"'scan' has the curves \['the RoPE'\], 'rsc' has"):
        draw(FigureInput('f', {**given.records, **renamed}, both))
    curve = {**given.options['curves'][0], 'paper': 'rope'}
    with pytest.raises(ValueError, match='paper must be one of'):
        KINDS['attention_distance'].required('f', {'curves': [curve]})
