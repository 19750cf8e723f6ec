"""What holds of every task: budgets, determinism, answers that are in the prompt, scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nope.data.templates import BRIEF, PAPER
from nope.evals.needles import TASKS, Asked, Task
from tests.evals.needles.fakes import BYTES, Pieces

TASK = pytest.mark.parametrize('task', TASKS.values(), ids=TASKS)


def build(task: Task, length: int, depth: float, seed: int = 0, **changed) -> Asked:
    options = {'filler': BRIEF.filler, 'bos': True} | changed
    return task.build(BYTES, length, depth, np.random.RandomState(seed), **options)


def test_tasks_are_named_by_their_keys() -> None:
    assert list(TASKS) == ['multi_key', 'multi_value', 'variable_tracking']
    assert all(task.name == name for name, task in TASKS.items())


@TASK
@settings(deadline=None, max_examples=20)
@given(
    length=st.integers(400, 1500),
    depth=st.floats(0, 1),
    seed=st.integers(0, 2**32 - 1),
    filler=st.sampled_from([BRIEF.filler, PAPER.filler]),
    bos=st.booleans(),
)
def test_a_prompt_lacks_less_than_a_word(
    task: Task, length: int, depth: float, seed: int, filler: str, bos: bool
) -> None:
    prompt = build(task, length, depth, seed, filler=filler, bos=bos).prompt
    assert length - max(map(len, filler.split())) <= len(prompt) + 1
    assert len(prompt) <= length
    assert (prompt[0] == BYTES.bos_id) == bos


@TASK
def test_a_prompt_depends_on_its_stream_alone(task: Task) -> None:
    first, again, other = (build(task, 600, 0.3, seed) for seed in (1, 1, 2))
    assert first.prompt.tolist() == again.prompt.tolist() != other.prompt.tolist()
    assert first.expected == again.expected != other.expected


@TASK
def test_the_answer_is_in_the_prompt_and_fits_the_new_tokens(task: Task) -> None:
    for seed in range(20):
        asked = build(task, 600, 0.3, seed)
        text = BYTES.decode(asked.prompt)
        assert task.score(text, asked.expected) == 1
        assert len(set(asked.expected)) == len(asked.expected)
        assert asked.new_tokens == task.new_tokens
        assert len(BYTES.encode(' ' + ', '.join(asked.expected) + '.')) <= task.new_tokens


@TASK
def test_questions_do_not_end_with_a_space(task: Task) -> None:
    assert not BYTES.decode(build(task, 600, 0.3).prompt)[-1].isspace()


@TASK
def test_a_length_without_room_is_refused(task: Task) -> None:
    with pytest.raises(ValueError, match='length 60 is shorter than a prompt without filler'):
        build(task, 60, 0.3)


@TASK
def test_a_depth_outside_the_filler_is_refused(task: Task) -> None:
    with pytest.raises(ValueError, match=r'depth is 1\.5'):
        build(task, 600, 1.5)


@TASK
def test_a_begin_mark_that_is_not_there_is_refused(task: Task) -> None:
    draw = np.random.RandomState(0)
    with pytest.raises(ValueError, match='bos=True'):
        task.build(Pieces(list, bos_id=None), 600, 0.3, draw, filler=BRIEF.filler, bos=True)


@pytest.mark.parametrize(
    ('text', 'share'),
    [
        (' 12345 and 67890.', 1.0),
        (' 67890, 12345', 1.0),
        (' 12345 12345 12345', 0.5),
        (' 123456, 067890', 0.0),
        ('', 0.0),
    ],
)
def test_a_score_is_the_share_that_is_found_as_words(text: str, share: float) -> None:
    assert TASKS['multi_value'].score(text, ('12345', '67890')) == share
