"""Maps of layers by heads: their positions, numbers, and windows that are too short."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.figures import KINDS
from experiments.figures.base import FigureOutput
from experiments.figures.given import FigureInput
from experiments.figures.read.curves import BITS_PER_NAT
from tests.experiments.figures import synthetic
from tests.experiments.figures.synthetic import INPUTS


def drawn(given: FigureInput | None = None) -> FigureOutput:
    return KINDS['head_maps'].draw(given or INPUTS['head_maps'])


def test_maps_are_at_doublings_of_l_and_at_the_end() -> None:
    output = drawn()
    found = {(r['label'], r['position_over_L'], r['layer'], r['head']): r for r in output.rows}
    assert len(found) == len(output.rows) == 2 * 4 * 16
    assert sorted({multiple for _, multiple, _, _ in found}) == [1, 2, 4, 5]
    entropy = INPUTS['head_maps'].records['base']['entropy']
    row = found['base', 2.0, 3, 1]
    assert row['entropy_bits'] == pytest.approx(entropy[3, 1, 124:128].mean() * BITS_PER_NAT)
    near = [found['half local', m, 0, 3]['weight_on_latest'] for m in (1.0, 2.0, 4.0, 5.0)]
    np.testing.assert_array_less(near[1:], near[:-1])
    assert found['half local', 5.0, 0, 0]['weight_on_latest'] == 1


def test_every_map_is_named_by_its_model_and_position() -> None:
    figure = drawn().figure
    assert figure is not None
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    at = [f'at {multiple} L' for multiple in (1, 2, 4, 5)]
    assert titles == [
        f'{label}\n{where}'
        for label in ('base', 'half local')
        for where, label in zip(at, (label, '', '', ''), strict=True)
    ]


def test_windows_shorter_than_l_and_of_other_lengths_are_refused() -> None:
    short = synthetic.shape_records(48)
    given = INPUTS['head_maps']
    with pytest.raises(ValueError, match='windows have 48 tokens, fewer than L = 64'):
        drawn(synthetic.with_records(given, base=short, split=short))
    with pytest.raises(ValueError, match="differ in 'length'"):
        drawn(synthetic.with_records(given, base=synthetic.shape_records(256)))
