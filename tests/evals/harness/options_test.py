"""What tasks say about generation is honoured or refused."""

from __future__ import annotations

from typing import Any

import pytest

from nope.evals.generation import Options
from nope.evals.harness.options import options_of


def parsed(**arguments: Any) -> tuple[Options, tuple[str, ...]]:
    return options_of(arguments, stop_ids=(7, 9), seed=5)


def options(new_tokens: int = 256, **fields: Any) -> Options:
    return Options(new_tokens, stop_ids=(7, 9), seed=5, **fields)


@pytest.mark.parametrize(
    ('arguments', 'wanted'),
    [
        ({}, options()),
        ({'max_gen_toks': 3}, options(3)),
        ({'max_new_tokens': 4}, options(4)),
        ({'do_sample': False, 'temperature': 0.7, 'top_p': 0.5}, options()),
        ({'temperature': 0}, options()),
        ({'temperature': 0.7, 'top_k': 40}, options(temperature=0.7, top_k=40)),
        ({'do_sample': True}, options(temperature=1.0)),
        ({'do_sample': True, 'temperature': 2, 'top_p': 0.9}, options(temperature=2.0, top_p=0.9)),
        (
            {'num_beams': 4, 'length_penalty': 2, 'early_stopping': 'never'},
            options(beams=4, length_penalty=2.0, early_stopping='never'),
        ),
    ],
)
def test_what_is_given_counts_and_the_rest_is_off(
    arguments: dict[str, Any], wanted: Options
) -> None:
    assert parsed(**arguments) == (wanted, ())


def test_stops_are_one_string_or_several() -> None:
    assert parsed(until='a')[1] == ('a',)
    assert parsed(until=['a', '', 'bc'])[1] == ('a', 'bc')
    assert parsed(until=None)[1] == ()


@pytest.mark.parametrize(
    ('arguments', 'said'),
    [
        ({'repetition_penalty': 1.2}, r'repetition_penalty is not known; accepted: until, max_gen'),
        ({'max_gen_toks': 3, 'max_tokens': 4}, 'max_gen_toks and max_tokens; one of them'),
        ({'max_gen_toks': 'many'}, "max_gen_toks is 'many'; it must be a whole number"),
        ({'do_sample': True, 'temperature': 0.0}, 'temperature is 0 with do_sample'),
        ({'do_sample': 'yes'}, "do_sample is 'yes'; accepted: true or false"),
        ({'num_beams': True}, 'num_beams is True; it must be a whole number'),
        ({'until': [1]}, r'until is \[1\]; accepted: a string or a list'),
    ],
)
def test_what_is_not_accepted_is_named(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parsed(**arguments)
