from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from nope.identity import added_later, digest, first_difference, none_was, plain, rebuild
from nope.model import LayerKind, ModelConfig
from nope.model.lam import LogLength
from nope.positions import DynamicNTK, NoPE, Rotary
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
    assert found == {
        'type': 'Mixture',
        'sources': [{'type': 'Source', 'name': 'a'}],
        'weights': [1.0],
    }
    assert json.loads(json.dumps(found)) == found


def test_a_special_type_stands_for_what_it_is_told() -> None:
    special: dict[type, Any] = {Source: lambda source: f'contents of {source.name}'}
    assert plain(Mixture((Source('a'),)), special)['sources'] == ['contents of a']


def shape_of(layers: int, **later: Any) -> Any:
    """A value of a dataclass that got fields after its first ones, each with a default."""
    fields: list[Any] = [('layers', int, dataclasses.field())]
    fields += [(name, object, added_later(default)) for name, (default, _) in later.items()]
    kind = dataclasses.make_dataclass('Shape', fields, frozen=True)
    return kind(layers, **{name: value for name, (_, value) in later.items()})


def test_fields_added_later_leave_values_what_they_were() -> None:
    """At their defaults; another value is another identity."""
    before = plain(shape_of(2))
    assert before == {'type': 'Shape', 'layers': 2}
    assert plain(shape_of(2, window=(0, 0), kinds=((), ()), norm=('rms', 'rms'))) == before
    assert plain(shape_of(2, scale=(1.5, float('1.5')))) == before  # equal, not the same object
    assert plain(shape_of(2, window=(0, 4), norm=('rms', 'rms'))) == before | {'window': 4}
    nested = plain(shape_of(2, kinds=((), (Source('a', threads=7),))))
    assert nested == before | {'kinds': [{'type': 'Source', 'name': 'a'}]}


@dataclasses.dataclass(frozen=True)
class Layer:
    reach: int | None = none_was(0)
    scale: float | None = none_was(0.0, added_later=True)


def test_none_is_written_as_what_stood_for_it() -> None:
    assert plain(Layer()) == {'type': 'Layer', 'reach': 0}
    assert plain(Layer(4, 0.5)) == {'type': 'Layer', 'reach': 4, 'scale': 0.5}
    kinds = {'Layer': Layer}
    for layer in (Layer(), Layer(4), Layer(scale=0.5)):
        assert rebuild(plain(layer), kinds) == layer
    assert rebuild({'type': 'Layer', 'reach': 0, 'scale': 0.0}, kinds) == Layer()


@pytest.mark.parametrize(
    ('model', 'expected'),
    [
        (tiny.MODEL, 'e44f627ee3b0'),
        (tiny.TINYLLAMA, '45c7886beb66'),
        (tiny.model(position=Rotary()), 'fdfd24613828'),
        (
            tiny.model(
                position=Rotary(scaling=DynamicNTK(2.0, 64)), lam=LogLength(64), tied_head=True
            ),
            '9c720307a123',
        ),
    ],
    ids=['tiny', 'tinyllama', 'rotary', 'dynamic NTK'],
)
def test_the_digests_of_models_are_pinned(model: ModelConfig, expected: str) -> None:
    """They were these when a model had no pattern, no window and no other blocks: folders of runs
    are named by them."""
    assert digest(plain(model)) == expected


OTHERS: tuple[dict[str, Any], ...] = (
    {'window': 4},
    {'pattern': (LayerKind(Rotary()), LayerKind(window=4))},
    {'lam_layers': 'nope'},
    {'norm': 'layer'},
    {'norm': 'layer', 'norm_bias': True},
    {'embedding_norm': True},
    {'qk_norm': True},
    {'softmax_scale': 1.0},
    {'qkv_bias': True},
    {'output_bias': True},
    {'mlp_bias': True},
    {'mlp': 'plain'},
    {'activation': 'relu'},
    {'logit_multiplier': 0.5},
    {'init': 't5'},
    {'sinks': True},
    {'pattern': (LayerKind(Rotary()),), 'position_range': 64},
    {'output_gate': 'head'},
    {'temperature': 'adaptive'},
    {'weights': 'entmax'},
    {'block': 'parallel'},
    {'norm_offset': True},
    {'embedding_multiplier': 8.0},
    {'residual_multiplier': 0.5},
    {'qk_norm': True, 'qk_norm_over': 'projection'},
    {'dropout': 0.1},
    {'attention_dropout': 0.1},
    {'value_norm': True},
    {'layer_scale': True},
    {'token_width': 4},
    {'logit_cap': 30.0},
)


def test_every_later_field_of_a_model_is_part_of_its_identity() -> None:
    later = {f.name for f in dataclasses.fields(ModelConfig) if f.metadata.get('added_later')}
    assert later == set().union(*OTHERS)
    found = [plain(tiny.model(attention=None, **changes)) for changes in OTHERS]
    for changes, value in zip(OTHERS, found, strict=True):
        assert changes.keys() <= value.keys()
    assert len({digest(plain(tiny.MODEL)), *map(digest, found)}) == len(OTHERS) + 1
    assert plain(tiny.model(**OTHERS[1]))['pattern'] == [
        {
            'type': 'LayerKind',
            'position': {'type': 'Rotary', 'base': 10_000.0, 'scaling': {'type': 'Unscaled'}},
            'window': 0,
        },
        {'type': 'LayerKind', 'position': {'type': 'NoPE'}, 'window': 4},
    ]
    unnormed = plain(tiny.model(pattern=(LayerKind(), LayerKind(qk_norm=False)), qk_norm=True))
    chunked = plain(tiny.model(pattern=(LayerKind(), LayerKind(chunk=4))))
    assert [kind.get('chunk') for kind in chunked['pattern']] == [None, 4]
    assert [kind.get('qk_norm') for kind in unnormed['pattern']] == [None, False]


def test_a_models_digest_follows_what_changes_its_results() -> None:
    base = digest(plain(tiny.MODEL))
    same = tiny.model(attention='chunked', remat='full', unroll=None)
    assert digest(plain(same)) == base
    others = [
        tiny.model(width=64),
        tiny.model(dtype='bfloat16'),
        tiny.model(position=Rotary()),
        tiny.model(position=Rotary(scaling=DynamicNTK(2.0, 64))),
        tiny.model(position=Rotary(dims=4)),
        tiny.model(position=Rotary(interleaved=True)),
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
