"""Scratchpads: what is written parses and checks, what is changed is found."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nope.data.tasks import TASKS, SteppedTask, named
from nope.data.tasks.scratchpad import FORMATS, FULL, MINIMAL, NONE, Format, parse, write

STEPPED = {name: task for name, task in TASKS.items() if isinstance(task, SteppedTask)}
WITH_VARIABLES = {'addition', 'polynomial', 'summation', 'parity'}
PARTS = ('input', 'computation', 'output', 'variables', 'remaining')
# Every combination of switches but none at all.
STYLES = [Format(*on) for on in itertools.product((False, True), repeat=5) if any(on)]


def stepped(name: str, style: Format) -> SteppedTask:
    task = named(name, scratchpad=style)
    assert isinstance(task, SteppedTask)
    return task


def examples(task: SteppedTask, seed: int, split: str = 'train'):
    rng = np.random.default_rng(seed)
    bins = task.bins(split)
    bin = bins[rng.integers(len(bins))]
    return task.examples(bin, rng, count=max(1, max(bin) // 2))


def test_the_tasks_with_scratchpads_are_seven() -> None:
    assert STEPPED.keys() == WITH_VARIABLES | {'sort_single', 'sort_multi', 'lego'}


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(sorted(STEPPED)),
    st.sampled_from(STYLES),
    st.integers(0, 2**32),
    st.sampled_from(('train', 'test')),
    st.booleans(),
)
def test_what_is_written_is_right_in_every_step(
    name: str, style: Format, seed: int, split: str, joined: bool
) -> None:
    """Also with every run of blanks as one, as tokenizers give it back."""
    if style == Format(False, False, False, True, False) and name not in WITH_VARIABLES:
        return  # nothing of a step is left
    task = stepped(name, style)
    for example in examples(task, seed, split):
        text = ' '.join(example.target.split()) if joined else example.target
        checked = task.check(example.source, text)
        assert checked.problems == ()
        assert checked.right and all(checked.right)
        assert task.form.parse(text) == task.form.parse(f'The answer is {example.answer}.') or (
            task.form.parse(text) == task.form.parse(f'The sorted list is [ {example.answer} ].')
        )


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(STEPPED)), st.integers(0, 2**32), st.data())
def test_one_changed_part_makes_its_step_wrong_and_no_other(
    name: str, seed: int, data: st.DataObject
) -> None:
    task = stepped(name, FULL)
    example = examples(task, seed)[0]
    steps = task.steps(example.source)
    at = data.draw(st.integers(0, len(steps) - 1))
    parts = [part for part in PARTS if getattr(steps[at], part) is not None]
    part = data.draw(st.sampled_from(parts))
    steps[at] = dataclasses.replace(steps[at], **{part: getattr(steps[at], part) + ' 77'})
    body, _, answer = example.target.rpartition('. Thus,  ')
    assert body
    checked = task.check(example.source, write(steps, FULL, answer))
    assert [not right for right in checked.right].index(True) == at
    assert sum(not right for right in checked.right) == 1
    assert len(checked.problems) == 1
    assert checked.problems[0].startswith(f'step {at + 1}: {part} is')


def test_a_missing_step_makes_all_wrong() -> None:
    task = stepped('summation', MINIMAL)
    text = 'Thinking step by step:  comp 1 + sum = 1 + 0 = out 1  . Thus,  The answer is 3 .'
    checked = task.check('Compute: 1 + 2 .', text)
    assert checked.right == (False, False) and checked.parsed
    assert checked.problems == ('1 steps instead of 2',)


@pytest.mark.parametrize(
    'text, problem',
    [
        ('', 'does not begin'),
        ('The answer is 2 .', 'does not begin'),
        ('Thinking step by step:  comp 1 out 1 ', "has no '. Thus,'"),
        ('Thinking step by step:  comp 1  . Thus,  The answer is 1 .', "step 1: no 'out'"),
        ('Thinking step by step:  out 1  . Thus,  The answer is 1 .', "step 1: 'comp' expected"),
        ('Thinking step by step:  . Thus,  The answer is 1 .', "step 1: 'comp' expected"),
        (
            'Thinking step by step:  comp 1 out 1  # in 1 comp 1 out 1  . Thus,  x',
            "step 2: 'comp' expected before its computation, not 'in'",
        ),
    ],
)
def test_what_does_not_parse_says_why(text: str, problem: str) -> None:
    found = parse(text, MINIMAL, variables=True)
    assert problem in found.problem
    assert found.steps == ()
    checked = stepped('summation', MINIMAL).check('Compute: 1 + 2 .', text)
    assert not any(checked.right) and not checked.parsed


def test_formats_have_names() -> None:
    assert {style.name for style in FORMATS.values()} == set(FORMATS)
    assert Format(True, False, True, False, False).name == 'input+output'


def test_words_behind_a_step_do_not_parse() -> None:
    style = Format(True, False, False, True, False)
    text = 'Thinking step by step: in 1 [ sum: 1 = 1 ] re 2 . Thus, The answer is 1 .'
    assert "'re 2' behind its last part" in parse(text, style, variables=True).problem


@settings(deadline=None)
@given(st.sampled_from(STYLES), st.text(), st.booleans())
def test_no_text_is_an_error(style: Format, text: str, variables: bool) -> None:
    for body in (text, f'Thinking step by step: {text} . Thus, {text}'):
        found = parse(body, style, variables)
        assert bool(found.problem) == (not found.steps)


@settings(deadline=None)
@given(st.sampled_from(sorted(STEPPED)), st.text())
def test_a_source_of_no_task_is_refused(name: str, source: str) -> None:
    with pytest.raises(ValueError, match='is no source of this task'):
        stepped(name, FULL).steps(source)


def test_of_equal_items_the_first_is_swapped_to_the_front() -> None:
    steps = TASKS['sort_single'].steps('Sort the following list [ c, a, a ]. ')
    assert [step.remaining for step in steps] == ['[ c, a ]', '[ c ]', '[  ]']


def test_a_variable_that_a_chain_has_not_is_no_source() -> None:
    with pytest.raises(ValueError, match='is no source'):
        TASKS['lego'].steps('If q = -1, t = - q. Then, what is the value of z? ')
    with pytest.raises(ValueError, match='is no source'):
        TASKS['lego'].steps('If q = -1, t = - b. Then, what is the value of t? ')


def test_a_scratchpad_changes_targets_only() -> None:
    for name in STEPPED:
        plain = examples(stepped(name, NONE), seed=1)
        full = examples(stepped(name, FULL), seed=1)
        assert [e._replace(target='') for e in plain] == [e._replace(target='') for e in full]
        assert all(
            f.target.endswith(f'. Thus,  {p.target}') for p, f in zip(plain, full, strict=True)
        )
