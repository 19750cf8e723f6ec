"""tools.bench.positions on a tiny model."""

from __future__ import annotations

import pytest

from nope.model import counts
from nope.positions.registry import KINDS
from tests import tiny
from tools.bench import positions as tool

T = 16


def test_every_encoding_of_the_registry_is_a_model() -> None:
    found = tool.models([], T)
    assert set(found) == set(KINDS) and next(iter(found)) == 'none'
    for name, model in found.items():
        assert isinstance(model.position, KINDS[name])
        assert counts.parameters(model) > 0


def test_costs_are_over_those_of_no_encoding_in_the_same_run() -> None:
    found = tool.models(['t5'], T, tiny.model(attention=None))
    none, t5 = tool.measure(found, T, 8, budget=0.0)
    assert (none['position'], t5['position']) == ('none', 't5')
    assert t5['parameters'] - none['parameters'] == 32 * 4  # a table of buckets and heads
    for what in ('step', 'evaluation'):
        assert none[f'{what}_seconds_over_none'] == none[f'{what}_temp_over_none'] == 1
        over = t5[f'{what}_seconds'] / none[f'{what}_seconds']
        assert t5[f'{what}_seconds_over_none'] == pytest.approx(over)
        assert t5[f'{what}_temp_bytes'] > 0 and t5[f'{what}_compile_seconds'] > 0
