"""Continuations that are longer than a window are found before a model works."""

from __future__ import annotations

import pathlib

import pytest

from nope.evals.harness import check, longest_endings
from tests.evals.harness.documents import DOCUMENTS, write_all, write_jsonl
from tests.evals.harness.fakes import TOKENIZER

LONG = 'turn the handle, ' * 20


@pytest.fixture
def data(tmp_path: pathlib.Path) -> pathlib.Path:
    write_all(tmp_path)
    rows = [{**DOCUMENTS['piqa'][0], 'sol1': LONG}, {**DOCUMENTS['piqa'][1], 'sol2': LONG * 2}]
    write_jsonl(tmp_path / 'piqa.jsonl', rows)
    return tmp_path


def test_the_longest_continuation_of_each_task_is_counted_as_the_harness_does(
    data: pathlib.Path,
) -> None:
    tasks = check(('piqa', 'boolq', 'winogrande'), TOKENIZER, data=data)['tasks']
    (found,) = longest_endings(tasks, TOKENIZER, over=64)
    assert found == ('piqa', f' {LONG * 2}', 1 + 2 * len(LONG))
    (first,) = longest_endings(tasks, TOKENIZER, over=64, limit=1)
    assert first == ('piqa', f' {LONG}', 1 + len(LONG))
    assert [e.task for e in longest_endings(tasks, TOKENIZER, over=3)] == [*tasks]


def test_a_continuation_that_just_fits_is_not_found(data: pathlib.Path) -> None:
    tasks = check(('piqa',), TOKENIZER, data=data)['tasks']
    most = 1 + 2 * len(LONG)
    assert [e.tokens for e in longest_endings(tasks, TOKENIZER, over=most - 1)] == [most]
    assert longest_endings(tasks, TOKENIZER, over=most) == []
