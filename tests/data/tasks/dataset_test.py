"""Data sets: sizes and bins of every split, determinism, restart, what training shares."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import multiprocessing
import time
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from nope.data.tasks import TASKS, Sizes, Task, dataset, named, symbols
from nope.data.tasks.base import Example
from nope.data.tasks.dataset import draw, parts

GENERATED = [name for name, task in TASKS.items() if not task.exhaustive]
SMALL = Sizes(train=600, validation=200, test=200)

# Name -> lengths of training and of the test, train, validation and test sizes.
PAPER = {
    'rsc': (range(2, 21), range(21, 41), 100_000, 14_988, 10_000),
    'rsc2x': (range(2, 21), range(21, 41), 100_000, 14_988, 10_000),
    'rdc': (range(2, 21), range(21, 41), 100_000, 14_114, 10_000),
    'cmc': (range(2, 21), range(21, 41), 100_000, 14_988, 10_000),
    'cmc2x': (range(2, 21), range(21, 41), 100_000, 14_988, 10_000),
    'mc': (range(2, 21), range(21, 41), 100_000, 14_988, 10_000),
    'mc2x': (range(2, 21), range(21, 41), 100_000, 14_988, 10_000),
    'mcrv': (range(2, 21), range(21, 41), 100_000, 14_988, 10_000),
    'addition': (range(1, 9), range(9, 17), 100_000, 14_944, 9_984),
    'polynomial': (range(1, 9), range(9, 17), 100_000, 15_000, 10_000),
    'sort_single': (range(2, 9), range(9, 17), 100_000, 14_996, 10_000),
    'sort_multi': (range(2, 9), range(9, 17), 100_000, 14_996, 10_000),
    'summation': (range(2, 9), range(9, 17), 100_000, 14_996, 10_000),
    'parity': (range(4, 9), range(9, 17), 100_000, 15_000, 10_000),
    'lego': (range(4, 9), range(9, 17), 100_000, 14_996, 9_984),
    'scan': (range(1, 26), range(26, 49), 15_997, 1_777, 3_136),
}


def quick(name: str) -> Task:
    """A task of small lengths and, where it has any, 50 symbols."""
    changes = {'symbols': symbols.closed(50)} if hasattr(TASKS[name], 'symbols') else {}
    return named(name, longest=10, **changes)


def sources(examples: Sequence[Example]) -> set[str]:
    return {example.source for example in examples}


def by_length(examples: Sequence[Example]) -> Counter[int]:
    return Counter(example.length for example in examples)


def test_every_split_of_the_paper_is_named() -> None:
    assert TASKS.keys() == {*PAPER, 'pcfg'} and len(PAPER) == 16
    assert TASKS['pcfg'].paper_sizes == Sizes(72_909, 8_101, 11_333)


@pytest.mark.parametrize('name', PAPER)
def test_lengths_are_the_papers(name: str) -> None:
    task, (trained, tested, *_) = TASKS[name], PAPER[name]
    assert (task.lengths('train'), task.lengths('test')) == (trained, tested)
    for split, lengths in (('train', trained), ('test', tested)):
        assert {max(bin) for bin in task.bins(split)} <= set(lengths)


def test_addition_has_a_bin_for_each_pair_of_digit_counts() -> None:
    """64 of training; 192 of the test, each with an operand longer than in training."""
    trained, tested = (TASKS['addition'].bins(split) for split in ('train', 'test'))
    assert len(trained) == len(set(trained)) == 64
    assert len(tested) == len(set(tested)) == 192
    assert all(max(bin) > 8 and min(bin) >= 1 and max(bin) <= 16 for bin in tested)
    data = dataset(TASKS['addition'], Sizes(640, 64, 192))
    assert len(data.test) == 192
    digits = Counter(
        tuple(len(n.split()) for n in e.source.removeprefix('Compute ')[:-3].split(' + '))
        for e in data.test
    )
    assert digits == dict.fromkeys(tested, 1)


@pytest.mark.slow
@pytest.mark.parametrize('name', PAPER)
def test_the_papers_sizes_come_out(name: str) -> None:
    """At full size: numbers, equal bins, and no test example in training. Under 10 minutes in all
    on two cores: all 16 took 85 s of one that others used, 30 s of it their own."""
    task, (_, tested, *sizes) = TASKS[name], PAPER[name]
    begin = time.process_time()
    data = dataset(task)
    assert [len(data.train), len(data.validation), len(data.test)] == sizes
    assert time.process_time() - begin < 60
    assert sources(data.train).isdisjoint(sources(data.test))
    if not task.exhaustive:
        assert by_length(data.test).keys() == set(tested)
    if name not in ('addition', 'lego', 'scan'):
        assert set(by_length(data.test).values()) == {10_000 // len(tested)}
    if name == 'addition':
        assert len(data.test) == 192 * 52
    if name == 'lego':
        assert {n: 1250 - 1250 % (n // 2) for n in tested} == by_length(data.test)


@pytest.mark.parametrize('name', [*GENERATED, 'scan'])
def test_a_quick_size_works_as_the_papers(name: str) -> None:
    task = quick(name)
    sizes = SMALL
    if name in ('rsc', 'rsc2x', 'rdc'):
        sizes = Sizes(train=360, validation=90, test=200)  # of 50 symbols in 9 lengths
    if name == 'addition':
        sizes = dataclasses.replace(SMALL, test=300)  # bins
    data = dataset(task, sizes)
    assert len(data.train) == sizes.train
    assert 0 < len(data.validation) <= sizes.validation
    assert 0 < len(data.test) <= sizes.test
    assert by_length(data.train).keys() <= set(task.lengths('train'))
    assert by_length(data.test).keys() <= set(task.lengths('test'))
    assert sources(data.train).isdisjoint(sources(data.test))


@pytest.mark.parametrize('name', GENERATED)
def test_a_seed_gives_the_same_examples_and_another_seed_others(name: str) -> None:
    task = TASKS[name]
    first, again, other = (dataset(task, SMALL, seed) for seed in (5, 5, 6))
    assert first == again
    assert first.train != other.train
    assert first.test != other.test


def test_a_bin_has_as_many_examples_as_the_papers() -> None:
    paper = {('cmc', 'train'): 6052, ('cmc', 'test'): 500}
    paper |= {('addition', 'train'): 1796, ('addition', 'test'): 52}
    for (name, split), count in paper.items():
        assert TASKS[name].per_bin(split, TASKS[name].paper_sizes) == count
    rng = np.random.default_rng(0)
    assert len(TASKS['cmc'].examples((3,), rng, 7)) == 7
    assert len(TASKS['lego'].examples((14,), rng, 1250)) == 1246


def test_examples_of_a_seed_do_not_change() -> None:
    """A changed generator changes every data set that was made before."""
    found = {name: dataset(TASKS[name], SMALL) for name in ('summation', 'lego', 'mc')}
    assert found['summation'].train[0].source == 'Compute: 1 + 6 .'
    assert found['lego'].test[0].source.startswith('If c = -1, i = + c, s = - i, o = - s, ')
    assert found['mc'].train[0].source == 'Reverse: t r af Z bh al e '


@pytest.mark.parametrize('name', ['addition', 'cmc', 'rdc', 'lego', 'scan'])
def test_parts_can_be_drawn_again_in_any_order(name: str) -> None:
    sizes, task = Sizes(360, 90, 300), quick(name)
    order = [parts(task)[i] for i in np.random.default_rng(1).permutation(len(parts(task)))]
    drawn = {part: draw(task, part, sizes) for part in (*order[:3], *order)}
    assert drawn == {part: draw(task, part, sizes) for part in parts(task)}


def test_parts_can_be_drawn_by_other_processes() -> None:
    task = TASKS['summation']
    every = parts(task)
    apart = multiprocessing.get_context('spawn')
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=apart) as pool:
        found = pool.map(draw, [task] * len(every), every, [SMALL] * len(every))
        assert list(found) == [draw(task, part, SMALL) for part in every]


def test_streams_of_tasks_and_of_bins_differ() -> None:
    assert len({task.stream for task in TASKS.values()}) == len(TASKS)
    mc, mc2x = (dataset(TASKS[name], SMALL) for name in ('mc', 'mc2x'))
    assert sources(mc.test).isdisjoint(sources(mc2x.test))


def test_short_strings_recur_in_validation() -> None:
    data = dataset(TASKS['parity'], Sizes(1000, 150, 80))
    known = sources(data.train)
    assert len(known) < 1000
    assert 100 < sum(example.source in known for example in data.validation) < 150


def test_one_symbol_repeated_has_each_symbol_once_a_length() -> None:
    data = dataset(quick('rsc'), Sizes(360, 90, 200))
    pool = [*data.train, *data.validation]
    assert len({example.source for example in pool}) == len(pool) == 50 * 9

    assert by_length(data.test) == dict.fromkeys(range(11, 21), 20)


def test_a_test_bin_of_copies_is_a_sample_of_one_as_large_as_in_training() -> None:
    """So that symbols are not the first ones only."""
    data = dataset(TASKS['rsc'], Sizes(10_000, 450, 200))
    used = {example.source.split()[1] for example in data.test}
    assert len(used) > 100
    assert used & set(symbols.closed(550)[200:])


def test_replacement_has_all_ordered_pairs_of_the_first_symbols() -> None:
    examples = TASKS['rdc'].examples((2,), np.random.default_rng(0), 6052)
    assert len(examples) == len({example.source for example in examples}) == 78 * 77
    assert len(TASKS['rdc'].examples((2,), np.random.default_rng(0), 6006)) == 6006
    assert len(TASKS['rdc'].examples((2,), np.random.default_rng(0), 6005)) == 77 * 76


@pytest.mark.parametrize(
    'name, sizes, problem',
    [
        ('addition', Sizes(50, 0, 200), 'gives no train example for each of 64 bins'),
        ('addition', Sizes(640, 0, 100), 'gives no test example for each of 192 bins'),
        ('summation', Sizes(1000, 0, 80), '994 examples for train=1000'),
        ('lego', Sizes(1000, 150, 40), 'sizes give no whole example of length 12'),
        ('rsc', Sizes(120_000, 0, 1000), 'symbols has 6052, and 6315 examples of each length'),
    ],
)
def test_sizes_that_cannot_be_are_refused(name: str, sizes: Sizes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        dataset(TASKS[name], sizes)


@pytest.mark.parametrize(
    'field, value, least', [('train', 0, 1), ('validation', -1, 0), ('test', 0, 1)]
)
def test_sizes_below_their_least_are_refused(field: str, value: int, least: int) -> None:
    with pytest.raises(ValueError, match=f'{field} is {value}; at least {least}'):
        dataclasses.replace(SMALL, **{field: value})


@pytest.mark.parametrize('name', ['rsc', 'rsc2x', 'rdc'])
def test_no_test_has_symbols_that_training_has_not(name: str) -> None:
    """Training has the first symbols, as many as it has examples of a length."""
    sizes = Sizes(train=1000, validation=200, test=10_000)
    with pytest.raises(ValueError, match=rf'{name}: test=10000 asks for .* of each length'):
        dataset(TASKS[name], sizes)
    data = dataset(TASKS[name], dataclasses.replace(sizes, test=1000))
    known = {word for example in data.train for word in example.source.split()}
    assert all(set(example.source.split()) <= known for example in data.test)
