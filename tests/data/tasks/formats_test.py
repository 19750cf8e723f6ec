"""Sources and targets of every task, character by character, as the released code writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nope.data.tasks import TASKS, Example, SteppedTask, Task, named, pcfg_grammar
from nope.data.tasks.scratchpad import FORMATS, MINIMAL, Format, write
from tests.data.tasks.scripted import scripted

LETTERS = ('a', 'b', 'c')
ANY: Any = np.random.default_rng(0)


def copies(variant: str) -> Task:
    return named(variant, symbols=LETTERS)


def first(task: Task, length: int, count: int) -> Example:
    return task.examples((length,), ANY, count)[0]


def sorting() -> Example:
    return scripted(named('sort_single', symbols=tuple('abcde')), (3,), [[3, 1, 4]])


def numbers() -> Example:
    return scripted(TASKS['sort_multi'], (3,), [[31, 4159, 26]])


def addition() -> Example:
    # All digits, then the first one, which is not 0; of both operands.
    return scripted(TASKS['addition'], (5, 4), [[0, 3, 7, 2, 6]], [5], [[0, 9, 1, 7]], [1])


def polynomial() -> Example:
    return scripted(TASKS['polynomial'], (2,), [[3, -2]], [[0, 3]], [-2])


def summation() -> Example:
    return scripted(TASKS['summation'], (3,), [[1, 2, 9]])


def parity() -> Example:
    return scripted(TASKS['parity'], (5,), [[1, 0, 0, 1, 1]])


def lego() -> Example:
    letters = [ord(letter) - ord('a') for letter in 'qtc'] + [0] * 23
    return scripted(named('lego', shortest=2), (3,), [0, 1, 1], letters)


def scan() -> Example:
    examples = TASKS['scan'].examples((2,), ANY, 1)
    return next(e for e in examples if e.source == 'Solve: walk after turn right')


DOCUMENTED: dict[str, tuple[Callable[[], Example], str, str]] = {
    'rsc': (lambda: first(copies('rsc'), 3, 1), 'Copy: a a a ', 'a a a'),
    'rsc2x': (lambda: first(copies('rsc2x'), 3, 1), 'Copy: a a a ', 'a a a a a a'),
    'rdc': (lambda: first(copies('rdc'), 3, 2), 'Replace a with b in a a a ', 'b b b'),
    'cmc': (lambda: scripted(copies('cmc'), (3,), [[0, 1, 2]]), 'Copy: a b c ', 'a b c'),
    'cmc2x': (
        lambda: scripted(copies('cmc2x'), (3,), [[0, 1, 2]]),
        'Copy: a b c ',
        'a b c [NEXT] a b c',
    ),
    'mc': (lambda: scripted(copies('mc'), (3,), [[0, 1, 2]]), 'Reverse: a b c ', 'c b a'),
    'mc2x': (
        lambda: scripted(copies('mc2x'), (3,), [[0, 1, 2]]),
        'Reverse: a b c ',
        'c b a [NEXT] c b a',
    ),
    'mcrv': (
        lambda: scripted(copies('mcrv'), (3,), [[0, 1, 2]]),
        'Reverse: a b c ',
        'c b a [NEXT] a b c',
    ),
    'addition': (addition, 'Compute 5 3 7 2 6 + 1 9 1 7 ? ', 'The answer is 5 5 6 4 3.'),
    'polynomial': (
        polynomial,
        'Evaluate at x = - 2 in 3 * x ** 0 + - 2 * x ** 3 ? ',
        'The answer is 9.',
    ),
    'sort_single': (
        sorting,
        'Sort the following list [ d, b, e ]. ',
        'The sorted list is [ b, d, e ].',
    ),
    'sort_multi': (
        numbers,
        'Sort the following list [ 3 1, 4 1 5 9, 2 6 ]. ',
        'The sorted list is [ 2 6, 3 1, 4 1 5 9 ].',
    ),
    'summation': (summation, 'Compute: 1 + 2 + 9 .', 'The answer is 2 .'),
    'parity': (
        parity,
        "Is the number of 1's even in the sequence [ 1, 0, 0, 1, 1 ] ? ",
        'The answer is No.',
    ),
    'lego': (
        lego,
        'If q = -1, t = - q, c = + t. Then, what is the value of c? ',
        'The answer is +1.',
    ),
    'scan': (scan, 'Solve: walk after turn right', 'Right Walk'),
}


@pytest.mark.parametrize('name', DOCUMENTED)
def test_sources_and_targets_are_those_of_the_released_code(name: str) -> None:
    draw, source, target = DOCUMENTED[name]
    example = draw()
    assert (example.source, example.target) == (source, target)


def test_a_pcfg_source_is_solved_as_documented() -> None:
    assert pcfg_grammar.interpret('echo append copy Q10 E4 , shift K15 D8') == 'Q10 E4 D8 K15 K15'


# Character by character, double blanks included.
SCRATCHPADS = {
    'addition': 'Thinking step by step:  '
    'in 6, 7 comp 6 + 7 + carry = 13 + 0 = 13 out 3 [ carry: 1 ] re 5 3 7 2 + 1 9 1  # '
    'in 2, 1 comp 2 + 1 + carry = 3 + 1 = 4 out 4 [ carry: 0 ] re 5 3 7 + 1 9  # '
    'in 7, 9 comp 7 + 9 + carry = 16 + 0 = 16 out 6 [ carry: 1 ] re 5 3 + 1  # '
    'in 3, 1 comp 3 + 1 + carry = 4 + 1 = 5 out 5 [ carry: 0 ] re 5 + 0  # '
    'in 5, 0 comp 5 + 0 + carry = 5 + 0 = 5 out 5 [ carry: 0 ] re  +   '
    '. Thus,  The answer is 5 5 6 4 3.',
    'parity': 'Thinking step by step:  '
    'in 1 comp 1 ** par = 1 ** 0 out 1 [ par: 1 ] re [ 0, 0, 1, 1 ]  # '
    'in 0 comp 0 ** par = 0 ** 1 out 1 [ par: 1 ] re [ 0, 1, 1 ]  # '
    'in 0 comp 0 ** par = 0 ** 1 out 1 [ par: 1 ] re [ 1, 1 ]  # '
    'in 1 comp 1 ** par = 1 ** 1 out 0 [ par: 0 ] re [ 1 ]  # '
    'in 1 comp 1 ** par = 1 ** 0 out 1 [ par: 1 ] re [  ]  . Thus,  The answer is No.',
    'polynomial': 'Thinking step by step:  '
    'in 3 * x ** 0 comp 3 * - 2 ** 0 = 3 * 1 out 3 [ sum: 0 + 3 = 3 ] re - 2 * x ** 3  # '
    'in - 2 * x ** 3 comp - 2 * - 2 ** 3 = - 2 * - 8 out 1 6 [ sum: 3 + 1 6 = 9 ] re   '
    '. Thus,  The answer is 9.',
    'summation': 'Thinking step by step:  '
    'in 1 comp 1 + sum = 1 + 0 = out 1 [ sum: 1 = 1 ] re 2 + 9  # '
    'in 2 comp 2 + sum = 2 + 1 = out 3 [ sum: 3 = 3 ] re 9  # '
    'in 9 comp 9 + sum = 9 + 3 = out 1 2 [ sum: 1 2 = 2 ] re   . Thus,  The answer is 2 .',
    'sort_single': 'Thinking step by step:  '
    'in d comp The minimum of the unsorted portion out b re [ d, e ]  # '
    'in d comp The minimum of the unsorted portion out d re [ e ]  # '
    'in e comp The minimum of the unsorted portion out e re [  ]  '
    '. Thus,  The sorted list is [ b, d, e ].',
    'sort_multi': 'Thinking step by step:  '
    'in 3 1 comp The minimum of the unsorted portion out 2 6 re [ 4 1 5 9, 3 1 ]  # '
    'in 4 1 5 9 comp The minimum of the unsorted portion out 3 1 re [ 4 1 5 9 ]  # '
    'in 4 1 5 9 comp The minimum of the unsorted portion out 4 1 5 9 re [  ]  '
    '. Thus,  The sorted list is [ 2 6, 3 1, 4 1 5 9 ].',
    'lego': 'Thinking step by step:  '
    'in q comp  out -1 re t = - q, c = + t  # '
    'in t comp - q = - -1 out +1 re c = + t  # '
    'in c comp + t = + +1 out +1 re   . Thus,  The answer is +1.',
}


def target(name: str, style: Format) -> str:
    """The documented target of a task with a scratchpad."""
    draw, _, answer = DOCUMENTED[name]
    task = TASKS[name]
    assert isinstance(task, SteppedTask)
    return write(task.steps(draw().source), style, answer)


@pytest.mark.parametrize('name', SCRATCHPADS)
def test_a_full_scratchpad_is_that_of_the_released_code(name: str) -> None:
    assert target(name, FORMATS['full']) == SCRATCHPADS[name]


def test_each_switch_leaves_its_part_out() -> None:
    step = {
        'full': 'in 9 comp 9 + sum = 9 + 3 = out 1 2 [ sum: 1 2 = 2 ] re   .',
        'no_input': 'comp 9 + sum = 9 + 3 = out 1 2 [ sum: 1 2 = 2 ] re   .',
        'no_computation': 'in 9 out 1 2 [ sum: 1 2 = 2 ] re   .',
        'no_output': 'in 9 comp 9 + sum = 9 + 3 = [ sum: 1 2 = 2 ] re   .',
        'no_variables': 'in 9 comp 9 + sum = 9 + 3 = out 1 2 re   .',
        'no_remaining': 'in 9 comp 9 + sum = 9 + 3 = out 1 2 [ sum: 1 2 = 2 ]  .',
        'minimal': 'comp 9 + sum = 9 + 3 = out 1 2  .',
    }
    for name, last in step.items():
        assert target('summation', FORMATS[name]).endswith(f' # {last} Thus,  The answer is 2 .')
    assert target('summation', FORMATS['none']) == 'The answer is 2 .'
    assert FORMATS.keys() == {'none', *step}


def test_a_carry_beyond_the_last_digit_has_a_step_of_its_own() -> None:
    task = named('addition', scratchpad=MINIMAL)
    example = scripted(task, (1, 1), [[9]], [[1]])
    assert example.target == (
        'Thinking step by step:  comp 9 + 1 + carry = 10 + 0 = 10 out 0  # '
        'comp 0 + 0 + carry = 0 + 1 = 1 out 1  . Thus,  The answer is 1 0.'
    )


def test_the_separator_stands_between_source_and_target() -> None:
    """`[SEP] ` of copies, reversals, SCAN, PCFG and summation; nothing else of the others."""
    of_paper = {name: TASKS[name] for name in (*DOCUMENTED, 'pcfg')}
    with_one = {name for name, task in of_paper.items() if task.separator == '[SEP] '}
    others = {name for name, task in of_paper.items() if task.separator == ''}
    assert others == {'addition', 'polynomial', 'sort_single', 'sort_multi', 'parity', 'lego'}
    assert with_one | others == of_paper.keys() and len(of_paper) == 17
    example = scripted(copies('cmc'), (3,), [[0, 1, 2]])
    assert copies('cmc').prompt(example) + example.target == 'Copy: a b c [SEP] a b c'
