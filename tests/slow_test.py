"""Which cases of a test the usual run leaves out."""

from __future__ import annotations

import pytest

from tests import slow


def test_the_quickest_cases_stay() -> None:
    seconds = {'t[a]': 1.0, 't[b]': 2.5, 't[c]': 9.0, 'u[a]': 5.0}
    assert slow.chosen(seconds) == {'t[b]': 2.5, 't[c]': 9.0}


@pytest.mark.parametrize(('seconds', 'stays'), [(5.9, True), (6.0, False)])
def test_a_long_test_stays_where_it_is_kept(seconds: float, stays: bool) -> None:
    assert (slow.chosen({'t': seconds}) == {}) == stays
    assert slow.chosen({slow.KEPT[0]: seconds}) == {}


def test_what_is_not_timed_again_stays_listed(tmp_path, monkeypatch) -> None:
    (tmp_path / 'slow.txt').write_text('9 a[x]\n5 b[y]\n4 c[z]\n')
    (tmp_path / 'timed').write_text('1.00s call     b[z]\n2.00s call     c[z]\n3.00s setup    d\n')
    monkeypatch.setattr(slow, '_LIST', tmp_path / 'slow.txt')
    slow.listed.cache_clear()
    try:
        slow.main([str(tmp_path / 'timed')])
    finally:
        slow.listed.cache_clear()
    assert (tmp_path / 'slow.txt').read_text() == '9 a[x]\n5 b[y]\n'
