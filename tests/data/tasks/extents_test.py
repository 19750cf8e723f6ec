"""Extents of a task's training examples, against those of every example."""

from __future__ import annotations

import pytest

from nope.data import TaskData
from nope.data.tasks import TASKS, Sizes, named, tokenised, training_extents
from nope.data.tasks.symbols import closed

SIZES = Sizes(train=2000, validation=300, test=400)


@pytest.mark.parametrize('name', sorted(set(TASKS) - {'pcfg'}))  # which is read from files
def test_extents_are_those_of_all_training_examples(name: str) -> None:
    has_symbols = 'symbols' in vars(TASKS[name])
    task = named(name, **({'symbols': closed(200)} if has_symbols else {}))
    data = TaskData(task, Sizes(50, 5, 5) if task.exhaustive else SIZES)
    found = data.dataset()
    tokenizer = data.load_tokenizer()
    read = [tokenised(task, tokenizer, example) for example in (*found.train, *found.validation)]
    prompts = [len(example.prompt) for example in read]
    longest = max(example.length for example in read)
    assert training_extents(data) == (min(prompts), max(prompts), longest)
