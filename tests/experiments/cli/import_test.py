"""What `nope import` says of tensors that are not read."""

from __future__ import annotations

from experiments.cli.import_ import left_out


def test_tensors_that_are_not_read_have_a_line_for_each_reason() -> None:
    images, frequencies = 'for images', 'frequencies, which follow from the config'
    ignored = {'vision.a': images, 'model.inv_freq': frequencies, 'vision.b': images}
    assert left_out(ignored) == [
        'vision.a and 1 more (for images)',
        f'model.inv_freq ({frequencies})',
    ]
    assert left_out({}) == []
