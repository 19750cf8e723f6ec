from __future__ import annotations

import dataclasses

from experiments.report.pairs import paired


@dataclasses.dataclass(frozen=True)
class Thing:
    names: tuple[str, ...]
    compared: int = 0


def test_things_of_one_folder_stand_alone() -> None:
    (pair,) = paired([[Thing(('a',))]])
    assert (pair.title, pair.note, pair.marked) == ('a', '', False)
    assert pair.sides == pair.shown == [('', Thing(('a',)))]


def test_things_of_two_folders_meet_by_any_of_their_names() -> None:
    first = [Thing(('fig1: x', 'slug-1'), 1), Thing(('slug-2',), 2), Thing(('only',))]
    second = [Thing(('new',)), Thing(('fig9: y', 'slug-2'), 2), Thing(('fig1: x', 'slug-9'), 3)]
    found = [(pair.title, pair.note) for pair in paired([first, second])]
    assert found == [
        ('fig1: x', 'differs'),
        ('slug-2', 'same'),
        ('only', 'only in A'),
        ('new', 'only in B'),
    ]


def test_a_thing_is_shown_once_where_it_is_the_same() -> None:
    same, differs = paired([[Thing(('a',)), Thing(('b',))], [Thing(('a',)), Thing(('b',), 1)]])
    assert [letter for letter, _ in same.shown] == ['A, B'] and not same.marked
    assert [letter for letter, _ in differs.shown] == ['A', 'B'] and differs.marked


def test_no_thing_meets_two() -> None:
    found = paired([[Thing(('x',)), Thing(('x',))], [Thing(('x',))]])
    assert [pair.note for pair in found] == ['same', 'only in A']


def test_the_same_and_the_first_name_come_before_another_name() -> None:
    """Data sources go by their kind alone, runs by their slug and by what they are without it."""
    first = [Thing(('retrieval',), 6), Thing(('retrieval',), 1)]
    found = [pair.note for pair in paired([first, [Thing(('retrieval',), 1)]])]
    assert found == ['only in A', 'same']
    first = [Thing(('rope-1', 'rope'), 6), Thing(('rope-2', 'rope'), 1)]
    found = [pair.note for pair in paired([first, [Thing(('rope-2', 'rope'), 3)]])]
    assert found == ['only in A', 'differs']
