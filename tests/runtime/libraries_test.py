from __future__ import annotations

import pathlib
import sys

import pytest

from nope.runtime.libraries import Late


def test_a_module_is_loaded_by_the_first_use_of_it(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / 'seldom_used.py').write_text('ANSWER = 42\n')
    monkeypatch.syspath_prepend(tmp_path)
    module = Late('seldom_used')
    assert 'seldom_used' not in sys.modules
    assert module.ANSWER == 42
    assert sys.modules.pop('seldom_used').ANSWER == 42


def test_a_missing_module_is_an_error_of_its_first_use() -> None:
    module = Late('never_installed')
    with pytest.raises(ModuleNotFoundError, match='never_installed'):
        module.ANSWER  # noqa: B018
