from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from nope.identity import digest, first_difference, plain
from nope.model import ModelConfig
from nope.model.lam import LogLength
from nope.positions import DynamicNTK, NoPE, RoPE
from nope.runtime.sections import rebuild
from tests import tiny


@dataclasses.dataclass(frozen=True)
class Source:
    name: str
    threads: int = dataclasses.field(default=1, metadata={'identity': False})


@dataclasses.dataclass(frozen=True)
class Mixture:
    sources: tuple[Source, ...]
    weights: tuple[float, ...] = (1.0,)


def test_plain_form_is_json_and_leaves_out_execution() -> None:
    found = plain(Mixture((Source('a', threads=7),)))
    assert found == {'type': 'Mixture', 'sources': [{'type': 'Source', 'name': 'a'}]}
    assert json.loads(json.dumps(found)) == found


def test_a_special_type_stands_for_what_it_is_told() -> None:
    special: dict[type, Any] = {Source: lambda source: f'contents of {source.name}'}
    assert plain(Mixture((Source('a'),)), special)['sources'] == ['contents of a']


def test_fields_at_their_default_leave_values_what_they_were() -> None:
    """Another value is another identity, and is read back."""
    assert plain(Mixture(())) == {'type': 'Mixture', 'sources': []}
    other = Mixture((), weights=(2.0,))
    assert plain(other) == plain(Mixture(())) | {'weights': [2.0]}
    kinds = {'Mixture': Mixture}
    for mixture in (Mixture(()), other):
        assert rebuild(plain(mixture), kinds) == mixture


@pytest.mark.parametrize(
    ('model', 'expected'),
    [
        (tiny.MODEL, '6e8ec8b50b8f'),
        (tiny.TINYLLAMA, '087fa26bd435'),
        (tiny.model(position=RoPE()), '4e0942232b2e'),
        (
            tiny.model(
                position=RoPE(scaling=DynamicNTK(2.0, 64)), lam=LogLength(64), tied_head=True
            ),
            '62ce512d71b2',
        ),
    ],
    ids=['tiny', 'tinyllama', 'rope', 'dynamic NTK'],
)
def test_the_digests_of_models_are_pinned(model: ModelConfig, expected: str) -> None:
    """Folders of runs are named by them."""
    assert digest(plain(model)) == expected


def test_a_models_digest_follows_what_changes_its_results() -> None:
    base = digest(plain(tiny.MODEL))
    same = tiny.model(attention='chunked', remat='full', unroll=None)
    assert digest(plain(same)) == base
    others = [
        tiny.model(width=64),
        tiny.model(dtype='bfloat16'),
        tiny.model(position=RoPE()),
        tiny.model(position=RoPE(scaling=DynamicNTK(2.0, 64))),
        tiny.model(position=RoPE(dims=4)),
        tiny.model(position=RoPE(interleaved=True)),
    ]
    assert len({base, *(digest(plain(other)) for other in others)}) == 7


def test_a_type_without_fields_is_told_from_another() -> None:
    assert plain(NoPE()) == {'type': 'NoPE'}


def test_the_digest_does_not_depend_on_the_order_of_keys() -> None:
    assert digest({'a': 1, 'b': {'c': 2, 'd': 3}}) == digest({'b': {'d': 3, 'c': 2}, 'a': 1})
    assert len(digest({})) == 12
    assert digest({'a': 1}) == 'f9d86028c6e0'  # the folders of old runs are named by it


@pytest.mark.parametrize(
    ('wanted', 'found', 'expected'),
    [
        ({'a': {'b': 1, 'c': 2}}, {'a': {'b': 1, 'c': 2}}, ''),
        ({'a': {'b': 1}}, {'a': {'b': 2}}, 'a.b is 1 here and 2 there'),
        ({'a': 1, 'b': 1}, {'a': 1}, 'b is 1 here and None there'),
        ({'a': (1, 2)}, {'a': [1, 2]}, ''),
        ({'a': [1, 2]}, {'a': [1, 3]}, 'a is [1, 2] here and [1, 3] there'),
        ({'a': {'b': 1}}, {'a': 'x'}, "a is {'b': 1} here and 'x' there"),
        (1, 2, 'value is 1 here and 2 there'),
    ],
)
def test_the_first_difference_is_named(wanted: object, found: object, expected: str) -> None:
    assert first_difference(wanted, found) == expected


def test_tuples_inside_lists_of_mappings_are_lists() -> None:
    made: Any = {'panels': ({'title': '', 'curves': ({'record': 'a'}, {'record': 'b'})},)}
    read: Any = {'panels': [{'title': '', 'curves': [{'record': 'a'}, {'record': 'b'}]}]}
    assert first_difference(made, read) == ''
    read['panels'][0]['curves'][1]['record'] = 'c'
    assert 'panels is' in first_difference(made, read)
