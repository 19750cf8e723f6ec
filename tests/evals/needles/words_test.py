from __future__ import annotations

import re

import numpy as np
import pytest

from nope.data.templates import BRIEF, PAPER
from nope.evals.needles import words


@pytest.mark.parametrize(
    ('draw', 'pattern'),
    [(words.names, '[a-z]+'), (words.numbers, '[1-9][0-9]{4}'), (words.variables, '[A-Z]{3}')],
)
def test_words_differ_and_have_their_form(draw, pattern: str) -> None:
    for seed in range(20):
        drawn = draw(np.random.RandomState(seed), 10)
        assert len(set(drawn)) == 10
        assert all(re.fullmatch(pattern, word) for word in drawn)
        assert drawn == draw(np.random.RandomState(seed), 10)


def test_no_variable_is_called_var() -> None:
    class Draws:
        def __init__(self) -> None:
            self.names = iter(['VAR', 'ABC', 'VAR', 'XYZ'])

        def randint(self, high: int, size: int) -> list[int]:
            assert (high, size) == (26, 3)
            return [ord(letter) - ord('A') for letter in next(self.names)]

    assert words.variables(Draws(), 2) == ['ABC', 'XYZ']


@pytest.mark.parametrize('template', [PAPER, BRIEF], ids=lambda template: template.name)
def test_filler_says_no_name(template) -> None:
    assert not set(words.NAMES) & set(re.findall(r'\w+', template.filler))
    assert len(set(words.NAMES)) == len(words.NAMES)
