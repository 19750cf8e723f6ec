from __future__ import annotations

import pytest

from nope.data import DataConfig, SourceConfig


def test_default_is_the_standard_library_in_bytes():
    config = DataConfig()
    assert [source.kind for source in config.sources] == ['stdlib']
    assert config.tokenizer == 'bytes'
    assert hash(config) == hash(DataConfig())


@pytest.mark.parametrize(
    ('sources', 'field'),
    [
        ((), r'data\.sources is empty'),
        ((SourceConfig(kind='csv'),), r"data\.sources\[0\]\.kind='csv'"),
        ((SourceConfig(path='somewhere'),), r"data\.sources\[0\]\.path='somewhere'"),
        ((SourceConfig(), SourceConfig('text')), r'data\.sources\[1\]\.path is empty'),
        ((SourceConfig('jsonl', 'a', field=''),), r'data\.sources\[0\]\.field is empty'),
        ((SourceConfig(weight=0.0),), r'data\.sources\[0\]\.weight=0\.0'),
        ((SourceConfig(weight=float('nan')),), r'data\.sources\[0\]\.weight=nan'),
    ],
)
def test_impossible_sources_are_refused_by_field(sources, field):
    with pytest.raises(ValueError, match=field):
        DataConfig(sources=sources)


@pytest.mark.parametrize('index', [-1, 1])
def test_eval_source_must_exist(index):
    with pytest.raises(ValueError, match=rf'data\.eval_source={index}'):
        DataConfig(eval_source=index)


def test_tokenizer_must_be_named():
    with pytest.raises(ValueError, match=r'data\.tokenizer is empty'):
        DataConfig(tokenizer='')
