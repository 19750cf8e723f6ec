"""A folder of a work folder is the home of one spec, and says which."""

from __future__ import annotations

import json
import pathlib
import re

import pytest

from experiments.homes import SETTINGS, SPEC, check_figure, check_home, take_figure, take_home

SPEC_OF_A_RUN = {'version': 1, 'model': {'width': 32}, 'seed': 0}
DAMAGED = ['', 'null', '[]', '"x"', '{', '\x00', '[' * 100_000]


def test_a_home_is_taken_once(tmp_path: pathlib.Path) -> None:
    take_home(tmp_path, SPEC_OF_A_RUN)
    take_home(tmp_path, SPEC_OF_A_RUN)
    with pytest.raises(ValueError, match=r'another config: model\.width is 64 here and 32 there'):
        take_home(tmp_path, {**SPEC_OF_A_RUN, 'model': {'width': 64}})


@pytest.mark.parametrize('content', DAMAGED)
def test_a_damaged_spec_is_no_free_home(tmp_path: pathlib.Path, content: str) -> None:
    (tmp_path / SPEC).write_text(content)
    for check in (check_home, take_home, check_figure, take_figure):
        with pytest.raises(ValueError, match=rf'^{re.escape(str(tmp_path / SPEC))} is damaged: '):
            check(tmp_path, SPEC_OF_A_RUN)
    assert (tmp_path / SPEC).read_text() == content


@pytest.mark.parametrize('settings', [None, 3, [], 'x'])
def test_damaged_settings_of_a_figure_are_named(tmp_path: pathlib.Path, settings: object) -> None:
    (tmp_path / SPEC).write_text(json.dumps({SETTINGS: settings}))
    with pytest.raises(ValueError, match=r'spec\.json is damaged: settings are no named values'):
        check_figure(tmp_path, {'train.steps': 1})


def test_a_difference_is_told_in_few_words(tmp_path: pathlib.Path) -> None:
    (tmp_path / SPEC).write_text(json.dumps({**SPEC_OF_A_RUN, 'model': ['x' * 9] * 9000}))
    with pytest.raises(ValueError, match=r'model is ') as caught:
        check_home(tmp_path, SPEC_OF_A_RUN)
    assert len(str(caught.value)) < 2000
