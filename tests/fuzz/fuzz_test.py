"""Whatever a user's files hold, it is read rightly or refused in words, in good time.

The brief slice runs in this process; `-m slow` runs all cases, in processes under limits.
"""

from __future__ import annotations

import pathlib

import pytest

from tests.fuzz import campaign, targets, worker
from tests.fuzz.case import Target

EVERY = targets.every()
# Cases of the brief slice; the targets that are left out take seconds to begin with.
BRIEF = {
    'weights.safetensors': 120,
    'weights.values': 30,
    'lines.jsonl': 60,
    'lines.packed': 100,
    'lines.text': 40,
    'tables.parquet': 25,
    'tokenizers.sentencepiece': 60,
    'tokenizers.json': 60,
    'tokenizers.beside': 40,
    'questions.longbench': 40,
    'questions.prompts': 40,
}


@pytest.mark.parametrize('name', BRIEF)
def test_some_cases_are_read_rightly_or_refused_by_name(tmp_path: pathlib.Path, name: str) -> None:
    case = targets.by_name(name).make(tmp_path)
    found = [worker.outcome(case, worker.draw_of(name, i, seed=1)) for i in range(BRIEF[name])]
    wrong = [(i, why) for i, (kind, why) in enumerate(found) if kind == 'wrong']
    assert not wrong
    assert 'accepted' in {kind for kind, _ in found}


@pytest.mark.slow
@pytest.mark.parametrize('target', EVERY, ids=lambda target: target.name)
def test_every_case_is_read_rightly_or_refused_by_name(target: Target) -> None:
    (tally,) = campaign.run([target], share=1.0, seed=0)
    assert not tally.wrong
