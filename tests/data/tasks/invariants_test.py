"""Examples at any length and seed, solved by evaluators that share nothing with the generators."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nope.data.tasks import TASKS, Example, Task, named

LONGEST = {'lego': 13}  # of training, where letters end


def draw(name: str, data: st.DataObject) -> tuple[Task, list[Example]]:
    """A task of some size, and some examples of one bin."""
    shortest = TASKS[name].shortest
    longest = data.draw(st.integers(shortest, LONGEST.get(name, 24)))
    task = named(name, longest=longest)
    split = data.draw(st.sampled_from(('train', 'test')))
    bin = data.draw(st.sampled_from(task.bins(split)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    examples = task.examples(bin, rng, count=max(6, max(bin)))
    assert examples
    assert {example.length for example in examples} == {max(bin)}
    return task, examples


def joined(text: str) -> str:
    """Digits of a number put together."""
    return re.sub(r'(?<=\d) (?=\d)', '', text)


@settings(deadline=None)
@given(st.data())
def test_addition_adds(data: st.DataObject) -> None:
    _, examples = draw('addition', data)
    for example in examples:
        first, second = joined(example.source).removeprefix('Compute ')[:-3].split(' + ')
        assert joined(example.target) == f'The answer is {int(first) + int(second)}.'
        assert max(len(first), len(second)) == example.length
        assert not re.search(r'\b0\d', joined(example.source)), 'a leading zero'


@settings(deadline=None)
@given(st.data())
def test_polynomials_have_their_value_modulo_10(data: st.DataObject) -> None:
    _, examples = draw('polynomial', data)
    for example in examples:
        found = re.fullmatch(r'Evaluate at x = (.*) in (.*) \? ', example.source)
        assert found
        value = eval(found[2], {'x': eval(found[1])})
        assert example.target == f'The answer is {value % 10}.'
        assert found[2].count('x') == example.length


@settings(deadline=None)
@given(st.data())
def test_summation_is_modulo_10(data: st.DataObject) -> None:
    _, examples = draw('summation', data)
    for example in examples:
        values = [int(digit) for digit in re.findall(r'\d', example.source)]
        assert min(values) >= 1
        assert len(values) == example.length
        assert example.target == f'The answer is {sum(values) % 10} .'


@settings(deadline=None)
@given(st.data())
def test_parity_is_yes_where_ones_are_even(data: st.DataObject) -> None:
    _, examples = draw('parity', data)
    for example in examples:
        bits = example.source.split('[')[1]
        assert bits.count('1') + bits.count('0') == example.length
        assert example.target == f'The answer is {("Yes", "No")[bits.count("1") % 2]}.'


@settings(deadline=None)
@given(st.sampled_from(('sort_single', 'sort_multi')), st.data())
def test_lists_are_sorted_and_keep_their_items(name: str, data: st.DataObject) -> None:
    task, examples = draw(name, data)
    for example in examples:
        given_, sorted_ = (
            re.findall(r'\[ (.*) \]', text)[0].split(', ')
            for text in (example.source, example.target)
        )
        rank = getattr(task, 'symbols', ()).index if name == 'sort_single' else _value
        assert sorted(given_, key=rank) == sorted_
        assert len(given_) == example.length


def _value(text: str) -> int:
    return int(text.replace(' ', ''))


@settings(deadline=None)
@given(st.data())
def test_lego_chains_are_solved(data: st.DataObject) -> None:
    _, examples = draw('lego', data)
    for example in examples:
        found = re.fullmatch(r'If (.*)\. Then, what is the value of (.)\? ', example.source)
        assert found
        values: dict[str, int] = {}
        for clause in found[1].split(', '):
            name, value = clause.split(' = ')
            assert name not in values
            values[name] = eval(value, {}, values)
        assert len(values) == example.length
        assert example.target == f'The answer is {values[found[2]]:+d}.'
        asked = list(values).index(found[2])
        assert asked >= example.length / 2


@settings(deadline=None)
@given(st.data())
def test_a_lego_chain_asks_for_each_variable_of_its_second_half(data: st.DataObject) -> None:
    """floor(n / 2) examples a chain, and whole chains only."""
    task = TASKS['lego']
    (length,) = data.draw(st.sampled_from(task.bins('test')))
    count = data.draw(st.integers(length // 2, 60))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    examples = task.examples((length,), rng, count)
    assert len(examples) == count // (length // 2) * (length // 2)
    for begin in range(0, len(examples), length // 2):
        chain = examples[begin : begin + length // 2]
        assert len({example.source.split('. Then')[0] for example in chain}) == 1
        assert len({example.source for example in chain}) == len(chain)


COPIED = {
    'cmc': lambda names: names,
    'cmc2x': lambda names: [*names, '[NEXT]', *names],
    'rsc': lambda names: names,
    'rsc2x': lambda names: names + names,
    'mc': lambda names: names[::-1],
    'mc2x': lambda names: [*names[::-1], '[NEXT]', *names[::-1]],
    'mcrv': lambda names: [*names[::-1], '[NEXT]', *names],
}


@settings(deadline=None)
@given(st.sampled_from(sorted(COPIED)), st.data())
def test_copies_and_reversals_are_of_the_source(name: str, data: st.DataObject) -> None:
    task, examples = draw(name, data)
    for example in examples:
        lead, *names = example.source.split()
        assert lead in ('Copy:', 'Reverse:')
        assert len(names) == example.length
        assert set(names) <= set(getattr(task, 'symbols', ()))
        assert example.target.split() == COPIED[name](names)
        if name.startswith('rsc'):
            assert len(set(names)) == 1


@settings(deadline=None)
@given(st.data())
def test_replacement_replaces(data: st.DataObject) -> None:
    _, examples = draw('rdc', data)
    for example in examples:
        _, old, _, new, _, *names = example.source.split()
        assert old != new
        assert names == [old] * example.length
        assert example.target.split() == [new] * example.length


@pytest.mark.parametrize('name', [name for name in TASKS if name != 'pcfg'])
def test_examples_answer_themselves(name: str) -> None:
    """A gold target counts as right, and its answer is in it."""
    task, rng = TASKS[name], np.random.default_rng(7)
    for split in ('train', 'test'):
        for bin in task.bins(split)[:: max(1, len(task.bins(split)) // 5)]:
            for example in task.examples(bin, rng, count=20)[:20]:
                assert task.form.matches(example.target, example.target)
                assert example.answer in example.target
                assert task.form.parse(example.target) is not None


def values(pattern: str, name: str, count: int, bin: tuple[int, ...] = (8,)) -> set[str]:
    """What a pattern finds in many sources of one bin."""
    examples = TASKS[name].examples(bin, np.random.default_rng(11), count)
    return {found for example in examples for found in re.findall(pattern, example.source)}


def test_everything_that_may_be_drawn_is_drawn_and_nothing_else() -> None:
    assert values(r'(- \d|(?<!- )\b\d) \* x', 'polynomial', 400) == {
        *('- 3', '- 2', '- 1', '0', '1', '2', '3')
    }
    assert values(r'\*\* (\d+)', 'polynomial', 400) == set('0123')
    assert values(r'x = (.*) in', 'polynomial', 400) == {'- 2', '- 1', '0', '1', '2'}
    assert values(r'\d', 'summation', 400) == set('123456789')
    assert values(r'Compute (\d) \+', 'addition', 400, (1, 1)) == set('0123456789')
    assert values(r'Compute (.*) \+', 'addition', 4000, (2, 1)) == {
        ' '.join(str(n)) for n in range(10, 100)
    }
    items = {int(n.replace(' ', '')) for n in values(r'[\[,] ([\d ]*\d)', 'sort_multi', 40_000)}
    assert (min(items), max(items)) == (10, 9999)
    assert len(items) == 9990
    assert values(r'(?:\[|,) (\w)', 'sort_single', 400) == set(TASKS['sort_single'].symbols)
    assert values(r'(\w) =', 'lego', 400) == set('abcdefghijklmnopqrstuvwxyz')
    assert values(r'= ([+-]1)', 'lego', 400) == {'+1', '-1'}
    for name in ('cmc', 'mc', 'mc2x'):
        assert values(r' (\w+)', name, 400) == set(TASKS[name].symbols)
