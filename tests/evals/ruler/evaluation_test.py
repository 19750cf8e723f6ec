from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from nope.evals import answers
from nope.evals.generation import Options
from nope.evals.ruler import TASKS, RulerPlan, effective, run
from nope.evals.samples import SampleLog
from tests.evals.ruler.pieces import vocabulary
from tests.evals.writers import BYTES, Writer

WORDS = vocabulary()


def find(text: str) -> str:
    """The needle that a prompt asks for; nothing for other questions."""
    asked = re.search(r'What is the special magic \w+ for (\S+) mentioned', text)
    if asked is None:
        return ' \n'
    needle = re.search(rf'for {asked[1]} is: (\S+)\.', text)
    assert needle is not None
    return f' {needle[1].upper()}.'


def plan(**changes: Any) -> RulerPlan:
    settings: dict[str, Any] = {
        'tasks': ('niah_multikey_3', 'vt'),
        'lengths': (2560, 4096),
        'samples': 3,
        'words': WORDS,
        **changes,
    }
    return RulerPlan(BYTES, **settings)


def test_scores_are_means_over_samples(log: SampleLog) -> None:
    found = run(Writer(find), plan(), log=log, bos=False)
    assert found['score'].tolist() == [[100, 0], [100, 0]]
    assert found['nulls'].tolist() == [[0, 3], [0, 3]]
    assert found['samples'].tolist() == [[3, 3], [3, 3]]
    assert found['average'].tolist() == [50, 50]
    assert found.attributes['effective_length'] == 0
    assert found.attributes['effective_length_of_base'] == 4096
    for i, length in enumerate((2560, 4096)):
        assert np.all(found['tokens'][i] <= length) and np.all(found['tokens'][i] > length * 0.7)
    assert found.along('task', 2).tolist() == ['niah_multikey_3', 'vt']
    assert found.along('length', 2).tolist() == [2560, 4096]
    row = log['niah_multikey_3/2560/0']
    assert (row['prediction'], row['score']) == (f'{row["answers"][0].upper()}.', 1.0)
    assert log['vt/4096/2']['prediction'] == '' and len(log) == 12


def test_answers_have_the_budget_of_their_task(
    log: SampleLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, 'BATCH', 2)
    reader = Writer(find)
    run(reader, plan(), log=log, bos=True)
    assert [len(prompts) for prompts, _ in reader.calls] == [2, 1] * 4
    for prompts, options in reader.calls:
        task = 'vt' if b'VAR' in BYTES.decode(prompts[0]).encode() else 'niah_multikey_3'
        assert options == Options(new_tokens=TASKS[task].budget, stop_ids=(BYTES.eos_id,))
        assert all(ids[0] == BYTES.bos_id for ids in prompts)


def test_the_effective_length_ends_before_the_first_failure() -> None:
    assert effective((8192, 4096, 16384), (90.0, 95.0, 85.6), 85.6) == 8192
    assert effective((4096, 8192), (85.0, 99.0), 85.6) == 0
    assert effective((4096, 8192), (86.0, 86.0), 85.6) == 8192
