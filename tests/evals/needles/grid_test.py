"""Tasks on the grid: prompt and answer within a length, and a model that reads or does not."""

from __future__ import annotations

import json
import pathlib
import re

import numpy as np
import pytest

from nope.data.templates import BRIEF
from nope.evals.needles import TASKS, Task, cells, grid
from nope.evals.samples import SampleLog
from tests.evals.needles.fakes import BYTES, Model, Pieces

TASK = pytest.mark.parametrize('task', TASKS.values(), ids=TASKS)
MAX_LENGTH = 3200


def plan(task: Task, tests: int = 1, **changed) -> grid.NeedlePlan:
    return grid.plan(
        task, BRIEF, BYTES, MAX_LENGTH, **{'seed': 5, 'bos': True, **changed}, tests=tests
    )


def read(text: str) -> str:
    """The answer to any of the questions."""
    question = text.rpartition('\n')[2]
    if found := re.fullmatch(r'The pass key of (\w+) is', question):
        return ' ' + re.findall(rf'pass key of {found[1]} is (\d+)', text)[0]
    if found := re.fullmatch(r'The pass keys of (\w+) are', question):
        return ' ' + ', '.join(re.findall(rf'pass key of {found[1]} is (\d+)', text))
    (number,) = re.findall(r'hold (\d+) are', question)
    holding = [number]
    for name, source in re.findall(r'VAR (\w+) = (?:VAR )?(\w+)\.', text):
        holding += [name] if source in holding else []
    return ' ' + ', '.join(holding[1:])


@TASK
def test_a_model_that_reads_is_right_everywhere(task: Task, tmp_path: pathlib.Path) -> None:
    model, log = Model(BYTES, read), SampleLog(tmp_path / 'samples.jsonl')
    made = plan(task)
    records = grid.run(model, made, log, window=800)
    assert records.attributes == {
        'evaluation': 'needles',
        'task': task.name,
        'max_length': MAX_LENGTH,
        'plan_seed': 5,
        'template': 'brief',
        'tests': 1,
        'bos': True,
        'new_tokens': task.new_tokens,
        'window': 800,
    }
    lengths = records.coordinates['length']
    assert lengths[-1] == MAX_LENGTH
    np.testing.assert_array_equal(records['accuracy'], np.ones((len(lengths), 10)))
    room = lengths - task.new_tokens
    # The longest word of the filler, ' blue.', has six bytes.
    assert np.all((records['tokens'] <= room) & (records['tokens'] > room - 6))
    row = log[f'{MAX_LENGTH}/0.2/0']
    assert row['score'] == 1 and row['tokens'] == len(made.ask(made.questions[2]).prompt)
    assert row['expected'] == list(made.ask(made.questions[2]).expected)
    json.dumps(dict(records.attributes))


@TASK
def test_answers_are_greedy_and_end_at_the_end_mark(task: Task, tmp_path: pathlib.Path) -> None:
    model = Model(BYTES, read)
    grid.run(model, plan(task), SampleLog(tmp_path / 'samples.jsonl'), window=800)
    assert model.options is not None
    assert model.options.new_tokens == task.new_tokens
    assert model.options.stop_ids == (BYTES.eos_id,)
    assert (model.options.beams, model.options.temperature) == (1, 0)


def test_half_an_answer_has_half_a_score(tmp_path: pathlib.Path) -> None:
    model = Model(BYTES, lambda text: read(text)[: len(' 12345, 12345')])
    log = SampleLog(tmp_path / 'samples.jsonl')
    records = grid.run(model, plan(TASKS['multi_value']), log, window=800)
    assert np.unique(records['accuracy']).tolist() == [0.5]


def test_the_first_needle_lies_in_its_tenth() -> None:
    made = plan(TASKS['multi_value'])
    for question in made.questions[:10]:
        text = BYTES.decode(made.ask(question).prompt)
        front = text[: text.index('One pass key')]
        assert abs(front.count('.') / text.count('.') - question.position / question.length) < 0.05


@TASK
def test_questions_do_not_depend_on_which_others_are_asked(task: Task) -> None:
    few, many = plan(task), plan(task, tests=3)
    assert few.questions == tuple(q for q in many.questions if q.test == 0)
    for question in few.questions[::37]:
        assert few.ask(question).prompt.tolist() == many.ask(question).prompt.tolist()
    other = plan(task, seed=6)
    assert other.ask(other.questions[0]).expected != few.ask(few.questions[0]).expected


@TASK
def test_what_is_logged_is_not_asked_again(task: Task, tmp_path: pathlib.Path) -> None:
    path = tmp_path / 'samples.jsonl'
    first = grid.run(Model(BYTES, read), plan(task), SampleLog(path), window=800)
    *kept, cut = path.read_text().splitlines(keepends=True)
    path.write_text(''.join(kept) + cut[:10])
    model = Model(BYTES, read)
    again = grid.run(model, plan(task), SampleLog(path), window=800)
    assert len(model.asked) == 1
    idle = Model(BYTES, read)
    grid.run(idle, plan(task), SampleLog(path), window=800)
    assert idle.calls == 0
    np.testing.assert_array_equal(first['accuracy'], again['accuracy'])
    np.testing.assert_array_equal(first['tokens'], again['tokens'])


@TASK
def test_lengths_without_room_are_left_out(task: Task) -> None:
    lengths = {q.length for q in plan(task).questions}
    assert lengths == {q.length for q in cells.questions(MAX_LENGTH, 5, 1) if q.length in lengths}
    assert 200 not in lengths and {800, MAX_LENGTH} <= lengths
    with pytest.raises(ValueError, match='max_length is 160'):
        grid.plan(task, BRIEF, BYTES, 160, bos=True)


def test_bad_input_is_refused_before_anything_runs() -> None:
    task = TASKS['multi_key']
    with pytest.raises(ValueError, match='bos=True'):
        grid.plan(task, BRIEF, Pieces(list, bos_id=None), MAX_LENGTH, bos=True)
    with pytest.raises(ValueError, match='max_length is 3201'):
        grid.plan(task, BRIEF, BYTES, 3201, bos=True)
    with pytest.raises(ValueError, match='tests is 0'):
        plan(task, tests=0)
