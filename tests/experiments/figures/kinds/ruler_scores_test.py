"""Effective lengths, numbers and caption of the figure of RULER's scores."""

from __future__ import annotations

import pytest

from experiments.figures import KINDS
from experiments.figures.base import FigureOutput
from experiments.figures.given import FigureInput
from tests.experiments.figures import synthetic


def drawn(given: FigureInput | None = None) -> FigureOutput:
    return KINDS['ruler_scores'].draw(given or synthetic.ruler_input())


def test_the_effective_length_is_read_by_three_rules() -> None:
    (claim,) = drawn().claims
    assert (claim.id, claim.verdict, claim.holds) == ('effective_length', 'reading', None)
    before, after = claim.measured['as it is'], claim.measured['scaled']
    assert (before['score above 85.6'], after['score above 85.6']) == ('128', '256')
    assert (before['85 % of the base score'], after['85 % of the base score']) == ('128', '256')
    # 0.1 nats above the level come after a tenth of a doubling.
    assert int(before['loss']) == pytest.approx(100 * 2**0.1, abs=2)
    assert after['loss'] == 'not measured'


def test_a_loss_that_ends_inside_the_training_length_decides_nothing() -> None:
    given = synthetic.ruler_input()
    short = synthetic.positions_records(length=48)
    (claim,) = drawn(synthetic.with_records(given, before_loss=short)).claims
    assert claim.measured['as it is']['loss'] == 'not measured'


@pytest.mark.parametrize(
    ('averages', 'said'), [((90, 89, 88), '512 or more'), ((80, 90, 90), 'none')]
)
def test_the_ends_of_what_was_measured_are_told(averages: tuple[int, ...], said: str) -> None:
    given = synthetic.ruler_input(after=averages)
    if averages[0] < 85.6:  # the first length that fails ends it
        after = synthetic.stating(given.records['after'], effective_length=0)
        given = synthetic.with_records(given, after=after)
    (claim,) = drawn(given).claims
    assert claim.measured['scaled']['score above 85.6'] == said


def test_rows_and_tables_have_every_score() -> None:
    output = drawn()
    found = {(r['label'], r['task'], r['length']): r['score'] for r in output.rows}
    assert len(found) == 2 * 3 * 3
    assert found['as it is', 'mean', 256] == 70 and found['as it is', 'fwe', 256] == 71
    assert '| vt | 89.0 | 69.0 | 19.0 |' in output.markdown
    assert '| **mean** | 92.0 | 88.0 | 70.0 |' in output.markdown


def test_the_caption_says_how_long_prompts_really_are() -> None:
    caption = drawn().caption
    assert '20 samples each' in caption and 'prompts have 90 to 90 % of it' in caption


@pytest.mark.parametrize(
    ('panels', 'message'),
    [
        ([{'record': 'a', 'label': 'b'}] * 2, 'panels must be 1 to 4 labels'),
        ([{'record': 'a'}], "panels must give 'label'"),
    ],
)
def test_panels_are_checked(panels: list[dict[str, str]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        KINDS['ruler_scores'].required('f', {'panels': panels})


def test_panels_of_other_lengths_are_refused() -> None:
    given = synthetic.ruler_input()
    other = synthetic.ruler_records((90, 80, 70), lengths=(128, 256, 1024))
    with pytest.raises(ValueError, match="'scaled' has other tasks or lengths than 'as it is'"):
        drawn(synthetic.with_records(given, after=other))
