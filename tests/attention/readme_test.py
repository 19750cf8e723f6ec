"""The layer of the page: it trains, and its heads look at less."""

from __future__ import annotations

import pathlib
import re
from typing import Any

import jax

PAGE = pathlib.Path(__file__).parents[2] / 'nope/attention/README.md'


def test_the_layer_of_the_page_learns_to_look_at_less() -> None:
    (code,) = re.findall(r'^```python\n(.*?)^```', PAGE.read_text(), re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    with jax.numpy_dtype_promotion('standard'):  # as a user's
        exec(code, names)
    fresh = names['Layer']().init(names['jax'].random.key(1), names['x_BTD'])
    (before, spread), (after, sharp) = (
        (names['loss'](params, names['x_BTD']), names['Layer']().apply(params, names['x_BTD'])[1])
        for params in (fresh, names['params'])
    )
    assert after < before and sharp < spread - 0.5
