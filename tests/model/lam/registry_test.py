"""Forms of lambda from the plain data of a config."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest

from nope.model import lam
from nope.model.lam.info_scale import InfoScale
from nope.model.lam.relative import Relative
from tests.model.lam.by_keys import ByKeys

FIELD = 'runs.a.search.law'


def made(section: Any) -> lam.Law:
    return lam.from_section(section, FIELD, train_length=512, head_dim=16)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(lam.LAWS, 'by_keys', ByKeys)


@pytest.mark.parametrize(
    ('section', 'expected'),
    [
        ('constant', lam.Constant()),
        ({'kind': 'constant'}, lam.Constant()),
        ('log_length', lam.LogLength(512)),
        ({'kind': 'log_length'}, lam.LogLength(512)),
        ({'kind': 'log_length', 'train_length': 64}, lam.LogLength(64)),
        ('info_scale', InfoScale(512, 16)),
        ('by_keys', ByKeys(1.0)),
        ({'kind': 'by_keys', 'rate': 2}, ByKeys(2.0)),
    ],
    ids=str,
)
def test_a_section_is_the_form_that_it_names(section: Any, expected: lam.Law) -> None:
    before = copy.deepcopy(section)
    assert made(section) == expected
    assert section == before


@pytest.mark.parametrize('name', lam.LAWS)
def test_a_bare_name_is_enough_for_every_form(name: str) -> None:
    assert type(made(name)) is lam.LAWS[name]


@pytest.mark.parametrize(
    ('section', 'message'),
    [
        ('linear', r"law is 'linear'; accepted: constant, .*by_keys"),
        ({'kind': 'linear'}, r"law\.kind is 'linear'; accepted: constant, .*by_keys"),
        ({'train_length': 64}, r'law\.kind is None; accepted: constant'),
        (7, r'law is 7; accepted: constant, .*by_keys, \{.*NAME'),
        (None, r'law is None; accepted: constant'),
        ({'kind': 'constant', 'rate': 2.0}, r'law\.rate is unknown for Constant; accepted: kind'),
        (
            {'kind': 'log_length', 'L': 2},
            r'law\.L is unknown for LogLength; accepted: kind, train_length',
        ),
        *(
            ({'kind': name, 'train_length': length}, rf'law\.train_length is {length}; {rule}')
            for name, law in lam.LAWS.items()
            if issubclass(law, Relative)
            for length, rule in (
                (law.least - 1, f'it must be at least {law.least}'),
                (2**30 + 1, r'accepted: up to 2\*\*30'),
            )
        ),
        *(
            ({'kind': 'log_offset', 'share': share}, rf'law\.share is {share}; share \* train_le')
            for share in (1 / 512, 0.0, -1.0, math.inf, math.nan)
        ),
        ({'kind': 'info_scale', 'head_dim': 0}, r'law\.head_dim is 0; it must be at least 1'),
        ({'kind': 'log_length', 'train_length': 6.5}, r'law\.train_length is 6\.5; accepted'),
        ({'kind': 'by_keys', 'rate': 'fast'}, r"law\.rate is 'fast'; accepted is float"),
        ({'kind': 'by_keys', 'rate': -1.0}, r'law\.rate is -1\.0; it must be above 0'),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_by_its_name(section: Any, message: str) -> None:
    with pytest.raises(ValueError, match=rf'^runs\.a\.search\.{message}'):
        made(section)
