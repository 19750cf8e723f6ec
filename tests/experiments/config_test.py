"""Config sections: the path of every value, and fields that nothing reads."""

from __future__ import annotations

import dataclasses
import re

import pytest

from experiments.config import Ledger, Section, merge
from nope.runtime.errors import FieldError


@dataclasses.dataclass(frozen=True)
class Oven:
    degrees: float
    minutes: int = 10
    colour: str = dataclasses.field(default='white', metadata={'identity': False})

    def __post_init__(self) -> None:
        if self.degrees > 300:
            raise FieldError('degrees', self.degrees, 'accepted: up to 300')


def oven(ledger: Ledger, **values: object) -> Section:
    return Section('oven', {'degrees': 200.0, 'minutes': 5, 'colour': 'red', **values}, ledger)


def test_a_value_is_named_where_it_was_typed() -> None:
    ledger = Ledger()
    section = oven(ledger).changed({'degrees': 400}, 'cakes.lemon.oven')
    assert section.path('degrees') == 'cakes.lemon.oven.degrees'
    assert section.path('minutes') == 'oven.minutes'
    with pytest.raises(ValueError, match=r'^cakes\.lemon\.oven\.degrees is 400\.0; accepted: up'):
        section.make(Oven)
    with pytest.raises(ValueError, match=r'^oven\.minutes is 5; it must be at least 6'):
        section.at_least('minutes', 6)


def test_a_field_of_a_value_is_named_below_the_field_that_holds_it() -> None:
    section = Section('oven', {'degrees': 1}, Ledger()).changed({'degrees': 2}, 'cakes.oven')
    for field in ('degrees.low', 'degrees[1].low'):
        message = rf'^cakes\.oven\.{re.escape(field)} is 2; it is low$'
        with pytest.raises(ValueError, match=message), section.naming():
            raise FieldError(field, 2, 'it is low')
    with pytest.raises(FieldError, match=r'^door is 2; it is low$'), section.naming():
        raise FieldError('door', 2, 'it is low')


def test_changes_have_known_names_and_the_types_of_what_they_change() -> None:
    section = oven(Ledger())
    with pytest.raises(ValueError, match=r'cakes\.lemon\.oven\.door is unknown; accepted: colour'):
        section.changed({'door': 1}, 'cakes.lemon.oven')
    with pytest.raises(ValueError, match=r"cakes\.minutes is '5'; accepted is a int as in 5"):
        section.changed({'minutes': '5'}, 'cakes')
    assert merge({'a': None}, {'a': 3}, '') == {'a': 3}
    assert merge({'a': 3}, {'a': None}, '') == {'a': None}


def test_what_nothing_reads_is_refused_by_its_name() -> None:
    ledger = Ledger()
    section = oven(ledger).changed({'minutes': 7}, 'cakes.lemon.oven')
    assert section.make(Oven) == Oven(200.0, 7, 'red')
    ledger.check_used(['oven.degrees', 'oven.colour', 'cakes.lemon.oven.minutes', 'cakes.lemon'])
    with pytest.raises(ValueError, match=r'oven\.minutes is set, but .*: cakes\.lemon\.oven\.min'):
        ledger.check_used(['oven.minutes'])
    with pytest.raises(ValueError, match=r'fridge\.degrees is set, but nothing in this config'):
        ledger.check_used(['fridge.degrees'])


def test_settings_are_what_determines_results() -> None:
    ledger = Ledger()
    oven(ledger).make(Oven)
    assert ledger.settings() == {'oven.degrees': 200.0, 'oven.minutes': 5}
    assert ledger.execution == {'oven.colour'}


def test_a_field_that_changes_no_result_is_read_but_no_setting() -> None:
    ledger = Ledger()
    assert oven(ledger).detailing('colour').changed({'minutes': 6}, 'cakes')['colour'] == 'red'
    assert ledger.settings() == {}
    ledger.check_used(['oven.colour'])


@pytest.mark.parametrize('given', [('a,b',), ('a', 'b'), ['a', 'b'], 'a, b', ('a', ' b')])
def test_names_are_typed_as_a_tuple_or_between_commas(given: object) -> None:
    ledger = Ledger()
    assert oven(ledger, cakes=given).names('cakes') == ('a', 'b')
    assert ledger.settings() == {'oven.cakes': ('a', 'b')}, 'both are the same settings'
    assert oven(ledger, cakes=()).changed({'cakes': 'a,b'}, 'x').names('cakes') == ('a', 'b')


@pytest.mark.parametrize('given', [('a,',), (',',), 3, (3,)])
def test_what_is_no_list_of_names_is_refused_with_how_lists_are_written(given: object) -> None:
    with pytest.raises(ValueError, match=r'^oven\.cakes is .*; accepted: names, as in a,b$'):
        oven(Ledger(), cakes=given).names('cakes')


def test_a_section_and_a_number_are_not_taken_for_each_other() -> None:
    with pytest.raises(ValueError, match=r'^x\.oven is 3; it takes named values$'):
        merge({'oven': {'degrees': 1}}, {'oven': 3}, 'x')
    with pytest.raises(ValueError, match=r'^x\.position is 3; it takes named values$'):
        merge({'position': {'kind': 'none'}}, {'position': 3}, 'x')
    with pytest.raises(ValueError, match=r"^oven\.degrees is 'hot'; it must be finite$"):
        oven(Ledger(), degrees='hot').finite('degrees')
    with pytest.raises(ValueError, match=r"^oven\.minutes is 'ten'; it must be at least 1$"):
        oven(Ledger(), minutes='ten').at_least('minutes', 1)
