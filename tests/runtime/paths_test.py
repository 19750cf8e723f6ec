"""Paths with a home folder: expanded where they begin with it, and nothing else is changed."""

from __future__ import annotations

import pathlib

import pytest

from experiments.config import plain
from nope.runtime import paths


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('HOME', '/home/me')


@pytest.mark.parametrize(
    ('typed', 'meant'),
    [
        ('~/a', '/home/me/a'),
        ('hf:~/a', 'hf:/home/me/a'),
        ('jsonl:~/a b', 'jsonl:/home/me/a b'),
        ('~no-such-user/a', '~no-such-user/a'),
        ('a/~/b', 'a/~/b'),
        ('~8 L', '~8 L'),
        ('', ''),
    ],
)
def test_home_folders_in_texts(typed: str, meant: str) -> None:
    assert paths.expanded(typed) == meant
    assert plain({'a': {'b': [typed]}, 'n': 3}) == {'a': {'b': (meant,)}, 'n': 3}


def test_home_folders_of_paths() -> None:
    assert paths.path('~/a') == pathlib.Path('/home/me/a')
    assert paths.path('~') == pathlib.Path('/home/me')
    assert paths.path('a') == pathlib.Path('a')
