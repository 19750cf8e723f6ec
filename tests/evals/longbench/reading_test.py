from __future__ import annotations

import logging
import pathlib
from typing import Any

import pytest

from nope.evals.longbench import DATASETS, check, read
from nope.evals.longbench.reading import LongBenchSample
from tests.evals.longbench.files import row, write


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """All data sets, two samples each."""
    for name, dataset in DATASETS.items():
        first = row(dataset.metric, input=f'{name} 0')
        write(tmp_path, name, [first, row(dataset.metric, input=f'{name} 1')])
    return tmp_path


def test_samples_are_read_in_order(folder: pathlib.Path) -> None:
    samples = read(folder)
    assert [sample.key for sample in samples] == [
        f'{name}/{i}' for name in DATASETS for i in (0, 1)
    ]
    assert [sample.input for sample in samples] == [s.key.replace('/', ' ') for s in samples]
    assert read(folder, ['trec', 'qasper'])[1:3] == [
        LongBenchSample('trec', 1, 'trec 1', 'It is in Paris.', ('City',), ('City', 'Country')),
        LongBenchSample('qasper', 0, 'qasper 0', 'It is in Paris.', ('Paris', 'in Paris'), ()),
    ]


def test_a_limit_takes_the_first_of_each(folder: pathlib.Path) -> None:
    assert [sample.key for sample in read(folder, limit=1)] == [f'{name}/0' for name in DATASETS]
    assert read(folder, limit=2) == read(folder, limit=9) == read(folder)


def test_a_whole_folder_passes_and_its_size_is_compared(
    folder: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        check(folder)
    assert len(caplog.messages) == len(DATASETS)
    assert caplog.messages[2] == (
        f'{folder / "multifieldqa_en.jsonl"} has 2 samples; 150 were published'
    )
    caplog.clear()
    write(folder, 'multifieldqa_en', [row()] * 150)
    with caplog.at_level(logging.WARNING):
        check(folder, ['multifieldqa_en'])
    assert caplog.messages == []


@pytest.mark.parametrize('function', [check, read])
def test_a_missing_folder_is_named_with_what_it_should_hold(
    function: Any, tmp_path: pathlib.Path
) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere': there is no such folder; .*NAME.jsonl"):
        function(tmp_path / 'nowhere')


@pytest.mark.parametrize('function', [check, read])
def test_all_missing_files_are_named(function: Any, folder: pathlib.Path) -> None:
    (folder / 'trec.jsonl').unlink()
    (folder / 'lcc.jsonl').unlink()
    with pytest.raises(FileNotFoundError, match=r': trec\.jsonl, lcc\.jsonl missing; .*data\.zip'):
        function(folder)
    function(folder, ['qasper'])


@pytest.mark.parametrize(
    ('names', 'named'), [(['gsm8k'], 'gsm8k'), (['lcc', 'lcc'], 'lcc, lcc'), ([], 'empty')]
)
def test_names_must_be_data_sets(folder: pathlib.Path, names: list[str], named: str) -> None:
    with pytest.raises(ValueError, match=f'names is {named}; it must be one or more of narrative'):
        check(folder, names)


@pytest.mark.parametrize('content', ['', '\n \n'])
def test_a_file_without_samples_is_refused(tmp_path: pathlib.Path, content: str) -> None:
    (tmp_path / 'lcc.jsonl').write_text(content)
    with pytest.raises(ValueError, match=r'lcc\.jsonl: there is no sample in it'):
        check(tmp_path, ['lcc'])


@pytest.mark.parametrize(
    ('line', 'what'),
    [
        (b'{"input": ', 'not a line of JSON'),
        (b'{"input": "\xff"}', 'not a line of JSON'),
        (b'[' * 100_000, 'not a line of JSON .its values are nested too deep'),
        (b'[1]', 'a JSON list; it must be an object'),
        (b'{"input": "", "length": 1}', 'no context, answers, all_classes; a sample has input,'),
    ],
)
def test_a_malformed_line_is_named(tmp_path: pathlib.Path, line: bytes, what: str) -> None:
    path = write(tmp_path, 'lcc', [row()])
    path.write_bytes(b'\n' + path.read_bytes() + line)
    for function in (check, read):
        with pytest.raises(ValueError, match=rf'lcc\.jsonl, line 3: {what}'):
            function(tmp_path, ['lcc'])
    assert len(read(tmp_path, ['lcc'], limit=1)) == 1


@pytest.mark.parametrize(
    ('field', 'value', 'what'),
    [
        ('input', None, 'input is null; it must be a text'),
        ('length', '4', 'length is "4"; it must be an integer'),
        ('answers', 'Paris', 'answers is "Paris"; it must be a list of one or more texts'),
        ('answers', ['x', 7], r'answers is \["x", 7\]; it must be a list'),
        ('context', [0] * 99, r'context is \[[0, ]{39} \.\.\.; it'),
    ],
)
def test_a_wrong_type_is_named(tmp_path: pathlib.Path, field: str, value: Any, what: str) -> None:
    write(tmp_path, 'qasper', [row(), row(**{field: value})])
    with pytest.raises(ValueError, match=rf'qasper\.jsonl, line 2: {what}'):
        check(tmp_path, ['qasper'])


def test_a_sample_that_cannot_be_scored_is_refused(tmp_path: pathlib.Path) -> None:
    write(tmp_path, 'trec', [row('classification', all_classes=None)])
    with pytest.raises(ValueError, match=r'trec\.jsonl, line 1: classification needs the classes'):
        check(tmp_path, ['trec'])
    write(tmp_path, 'passage_retrieval_en', [row('retrieval', answers=['3'])])
    with pytest.raises(ValueError, match=r"line 1: truth is '3'; it must name a paragraph"):
        check(tmp_path, ['passage_retrieval_en'])
