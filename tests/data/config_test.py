from __future__ import annotations

import pytest

from nope.data import DataConfig, describe, from_section, identity
from nope.data.sources import JsonLines, Retrieval, Stdlib, Text
from tests.data.words import words


def test_default_is_the_standard_library_in_bytes():
    config = DataConfig()
    assert config.sources == (Stdlib(),)
    assert config.tokenizer == 'bytes'
    assert hash(config) == hash(DataConfig())
    assert from_section({}) == config


def test_a_section_gives_its_mixture_and_what_else_the_data_are():
    section = {
        'source': 'stdlib',
        'mixture': (('jsonl:a', 3), ('retrieval', 1.0)),
        'field': 'body',
        'record_length': None,
        'tokenizer': 'a.model',
        'eval_source': 1,
    }
    assert from_section(section, 64) == DataConfig(
        sources=(JsonLines('a', 'body'), Retrieval(64, tokenizer='a.model')),
        weights=(3.0, 1.0),
        tokenizer='a.model',
        eval_source=1,
    )


def test_a_source_beside_a_mixture_is_refused():
    """It would change nothing."""
    section = {'source': 'text:a', 'mixture': (('stdlib', 1.0),)}
    with pytest.raises(ValueError, match=r"data\.source is 'text:a', but data\.mixture = .*=\(\)"):
        from_section(section)


@pytest.mark.parametrize('entry', ['stdlib', ('stdlib',), ('stdlib', 'much'), (1.0, 'stdlib')])
def test_an_entry_of_a_mixture_is_a_source_and_a_weight(entry):
    with pytest.raises(ValueError, match=r'data\.mixture\[1\] is .*; accepted is a source and'):
        from_section({'mixture': (('stdlib', 1.0), entry)})


@pytest.mark.parametrize('weight', [0.0, -1, float('nan'), float('inf')])
def test_an_impossible_weight_is_refused_by_field(weight):
    with pytest.raises(ValueError, match=rf'data\.mixture\[1\]: its weight is {float(weight)}'):
        from_section({'mixture': (('stdlib', 1.0), ('text:a', weight))})


@pytest.mark.parametrize('index', [-1, 1])
def test_eval_source_must_exist(index):
    with pytest.raises(ValueError, match=rf'data\.eval_source is {index}'):
        DataConfig(eval_source=index)


def test_documents_are_joined_or_apart():
    with pytest.raises(ValueError, match=r"data\.documents is 'split'; accepted: joined, apart"):
        DataConfig(documents='split')


def test_documents_apart_are_other_data():
    joined, apart = (DataConfig(documents=name) for name in ('joined', 'apart'))
    assert from_section({'documents': 'apart'}) == apart
    assert identity(apart) == {**identity(joined), 'documents': 'apart'}


def test_tokenizer_must_be_named():
    with pytest.raises(ValueError, match=r'data\.tokenizer is empty'):
        DataConfig(tokenizer='')


@pytest.mark.parametrize(
    ('section', 'message'),
    [
        ({'source': 'csv'}, r"runs\.a\.data\.source is 'csv'"),
        ({'mixture': (('csv', 1.0),)}, r"runs\.a\.data\.mixture\[0\] is 'csv'"),
        ({'source': 'jsonl:a', 'field': ''}, r'runs\.a\.data\.field: '),
        ({'source': 'retrieval', 'record_length': 1}, r'runs\.a\.data\.record_length is 1'),
        ({'eval_source': 2}, r'runs\.a\.data\.eval_source is 2'),
        ({'documents': 'split'}, r"runs\.a\.data\.documents is 'split'"),
        ({'tokenizer': ''}, r'runs\.a\.data\.tokenizer is empty'),
        ({'source': 'text:a', 'mixture': (('csv', 1.0),)}, r'runs\.a\.data\.source is'),
    ],
)
def test_errors_name_what_the_user_typed(section, message):
    with pytest.raises(ValueError, match=message):
        from_section(section, path='runs.a.data.{}'.format)


def test_identity_counts_weights_in_a_mixture_only(corpus):
    def of(*weights):
        return identity(DataConfig((Text(str(corpus)),) * len(weights), weights=weights))

    assert of(1.0) == of(2.0)
    assert of(1.0, 1.0) != of(1.0, 2.0)


def test_describe_reads_as_a_caption():
    assert describe(DataConfig()) == 'Python standard library sources, bytes'
    apart = DataConfig(documents='apart')
    assert describe(apart) == 'Python standard library sources, bytes, documents apart'
    assert describe(DataConfig(bos=True)) == 'Python standard library sources, bytes with BOS'
    mixed = DataConfig(
        (Text('/data/web'), JsonLines('code.jsonl')),
        weights=(3, 1),
        tokenizer='/models/tokenizer.model',
    )
    assert describe(mixed) == 'web (75.0%) + code.jsonl (25.0%), tokenizer.model'


def test_bos_in_front_is_part_of_the_identity_and_the_tokenizer_has_to_have_it(tmp_path):
    without, behind = DataConfig(), from_section({'bos': True})
    assert (without.prefix, behind.prefix) == ((), (257,))
    assert identity(behind) == {**identity(without), 'bos': True}
    words(tmp_path, 'a', '</s>')
    none = DataConfig(tokenizer=str(tmp_path / 'tokenizer.json'), bos=True)
    with pytest.raises(ValueError, match=r'data\.bos is True; .*data\.tokenizer=.* has no BOS'):
        _ = none.prefix
    with pytest.raises(ValueError, match=r"data\.bos is 'yes'; accepted: True or False"):
        DataConfig(bos='yes')
    with pytest.raises(ValueError, match=r"data\.bos is True; .* where data\.documents is 'apart'"):
        DataConfig(bos=True, documents='apart')
