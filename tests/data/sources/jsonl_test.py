from __future__ import annotations

import collections
import dataclasses
import gzip
import json
import tracemalloc

import pytest
import zstandard

from nope.data.sources import JsonLines
from tests.data.sources.corpora import COMPRESSORS, ROWS, read_all, texts_of, write_jsonl


@pytest.mark.parametrize(
    'suffix', ['.jsonl', '.json', '.ndjson', *(f'.jsonl{packing}' for packing in COMPRESSORS)]
)
def test_jsonl_reads_every_packing(tmp_path, suffix):
    path = tmp_path / f'rows{suffix}'
    write_jsonl(path)
    documents = read_all(JsonLines(str(path)), tmp_path)
    assert texts_of(documents) == ROWS
    assert {split for split, _ in documents} == {'train', 'validation', 'test'}


@pytest.mark.parametrize('part_bytes', [1, 37, 100, 4096])
def test_jsonl_parts_share_no_line_and_lose_none(tmp_path, part_bytes):
    path = tmp_path / 'rows.jsonl'
    write_jsonl(path)
    path.write_bytes(path.read_bytes().removesuffix(b'\n') + b'\n\n')
    assert texts_of(read_all(JsonLines(str(path)), tmp_path, part_bytes)) == ROWS


@pytest.mark.parametrize('part_bytes', [37, 4096])
@pytest.mark.parametrize('encoding', ['utf-8-sig', 'utf-16', 'utf-32'])
@pytest.mark.parametrize('suffix', ['.JSONL', '.json.GZ'])
def test_jsonl_with_a_byte_order_mark_is_read_in_any_parts(tmp_path, suffix, encoding, part_bytes):
    rows = ['語' * 9 for _ in range(9)]  # of more bytes in UTF-8
    data = ''.join(json.dumps({'text': row}, ensure_ascii=False) + '\n' for row in rows)
    path = tmp_path / f'rows{suffix}'
    packing = gzip.compress if suffix.endswith('GZ') else bytes
    path.write_bytes(packing(data.encode(encoding)))
    assert texts_of(read_all(JsonLines(str(path)), tmp_path, part_bytes)) == rows


def test_jsonl_escapes_that_utf8_cannot_hold_become_question_marks(tmp_path):
    path = tmp_path / 'rows.jsonl'
    path.write_text('{"text": "a\\ud800b"}\n')
    assert texts_of(read_all(JsonLines(str(path)), tmp_path)) == ['a?b']


def test_rows_with_the_same_text_share_a_split(tmp_path):
    path = tmp_path / 'rows.jsonl'
    write_jsonl(path, ROWS + ROWS)
    splits = collections.defaultdict(set)
    for split, text in read_all(JsonLines(str(path)), tmp_path):
        splits[text].add(split)
    assert all(len(found) == 1 for found in splits.values())


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        ('{"text": "ok"}\n{"text": "cut', r'rows\.jsonl at byte 15: not a line of JSON'),
        ('{"body": "x"}\n', r"data\.field='text'; it has the fields \['body'\]"),
        ('{"text": 3}\n', r"no text in data\.field='text'; it holds a number"),
        ('{"text": true}\n', r"no text in data\.field='text'; it holds true"),
        ('{"text": null}\n', r"no text in data\.field='text'; it holds null"),
        ('{"text": ["a"]}\n', r"no text in data\.field='text'; it holds an array"),
        ('{"text": {"a": "b"}}\n', r"no text in data\.field='text'; it holds an object"),
        ('[1]\n', r"no text in data\.field='text'; the line is an array"),
        ('"text"\n', r"no text in data\.field='text'; the line is a text"),
        ('[' * 100_000 + '\n', r'rows\.jsonl at byte 0: not a line of JSON \(.* nested too deep\)'),
        ('{"text": "a"}\n' + '{"text":' * 100_000 + '\n', r'byte 14: .*nested too deep'),
    ],
)
def test_bad_lines_say_where_they_are(tmp_path, content, message):
    (tmp_path / 'rows.jsonl').write_text(content)
    with pytest.raises(ValueError, match=message):
        read_all(JsonLines(str(tmp_path / 'rows.jsonl')), tmp_path)


def test_jsonl_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / 'rows.csv').write_text('a,b')
    with pytest.raises(ValueError, match=r'must end in one of \.jsonl'):
        read_all(JsonLines(str(tmp_path / 'rows.csv')), tmp_path)


@pytest.mark.parametrize('suffix', ['.jsonl', '.jsonl.gz', '.jsonl.zst'])
@pytest.mark.parametrize('part_bytes', [7, 1 << 20])
def test_a_line_above_the_limit_is_refused_by_field_file_and_place(tmp_path, suffix, part_bytes):
    path = tmp_path / f'rows{suffix}'
    write_jsonl(path, ['a' * 50, 'b' * 100, 'c' * 50])
    longest = len('{"text": "", "id": 1}\n') + 100
    source = JsonLines(str(path), max_line_bytes=longest)
    assert len(read_all(source, tmp_path, part_bytes)) == 3
    source = JsonLines(str(path), max_line_bytes=longest - 1)
    message = rf'rows{suffix} at byte 72: .*longer than data\.max_line_bytes={longest - 1};'
    with pytest.raises(ValueError, match=message):
        read_all(source, tmp_path, part_bytes)


@pytest.mark.parametrize('suffix', ['.gz', '.zst', '.bz2', '.xz'])
def test_a_small_file_with_a_huge_line_does_not_fill_the_memory(tmp_path, suffix):
    path = tmp_path / f'rows.jsonl{suffix}'
    pack = zstandard.ZstdCompressor().compress if suffix == '.zst' else COMPRESSORS[suffix]
    path.write_bytes(pack(b'{"text": "' + bytes(128 << 20)))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r'at byte 0: the line is longer than'):
            read_all(JsonLines(str(path), max_line_bytes=1 << 20), tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 80 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize('limit', [0, -1, 1.5, True, None])
def test_the_limit_of_a_line_is_a_whole_number(limit):
    with pytest.raises(ValueError, match=r'data\.max_line_bytes is .*; accepted: a whole number'):
        JsonLines('a', max_line_bytes=limit)


def test_the_limit_of_a_line_does_not_count_as_content(tmp_path):
    write_jsonl(tmp_path / 'rows.jsonl')
    sources = [JsonLines(str(tmp_path), max_line_bytes=limit) for limit in (1 << 20, 2 << 20)]
    assert sources[0].identity() == sources[1].identity()


SETS = ['Github', 'C4', 'Github', 'Books']


def write_sets(path):
    rows = [{'text': f'{i} {name}', 'meta': {'set': name}} for i, name in enumerate(SETS)]
    path.write_text(''.join(json.dumps(row) + '\n' for row in rows))


def test_lines_of_a_named_value_are_no_documents(tmp_path):
    write_sets(tmp_path / 'rows.jsonl')
    source = JsonLines(str(tmp_path / 'rows.jsonl'), leave_out=(('meta.set', 'Github'),))
    assert texts_of(read_all(source, tmp_path)) == ['1 C4', '3 Books']
    both = dataclasses.replace(source, leave_out=(('meta.set', 'Github'), ('meta.set', 'C4')))
    assert texts_of(read_all(both, tmp_path)) == ['3 Books']


@pytest.mark.parametrize('spelling', ['true', 'True'])
def test_a_typed_rule_leaves_out_numbers_and_booleans_as_they_are_written(tmp_path, spelling):
    """On a command line a rule is text."""
    rows = [{'text': str(i), 'fork': i % 2 == 1, 'stars': i} for i in range(4)]
    path = tmp_path / 'rows.jsonl'
    path.write_text(''.join(json.dumps(row) + '\n' for row in rows))
    source = JsonLines(str(path), leave_out=(('fork', spelling),))
    assert texts_of(read_all(source, tmp_path)) == ['0', '2']
    assert texts_of(read_all(JsonLines(str(path), leave_out=(('stars', '1'),)), tmp_path)) == [
        *('0', '2', '3')
    ]
    assert texts_of(read_all(JsonLines(str(path), leave_out=(('stars', True),)), tmp_path)) == [
        *('0', '1', '2', '3')
    ]


def test_what_is_left_out_counts_as_content_and_nothing_does_not(tmp_path):
    write_sets(tmp_path / 'rows.jsonl')
    whole = JsonLines(str(tmp_path / 'rows.jsonl'))
    part = dataclasses.replace(whole, leave_out=(('meta.set', 'Github'),))
    assert part.identity() != whole.identity()
    assert 'leave_out' not in whole.identity()


@pytest.mark.parametrize('field', ['meta.name', 'set', 'text.set'])
def test_a_line_without_the_named_field_is_refused_by_place(tmp_path, field):
    write_sets(tmp_path / 'rows.jsonl')
    source = JsonLines(str(tmp_path / 'rows.jsonl'), leave_out=((field, 'Github'),))
    with pytest.raises(ValueError, match=rf"rows.jsonl at byte 0: no field '{field}', which"):
        read_all(source, tmp_path)


@pytest.mark.parametrize('rules', ['meta', (('meta.set',),), ((1, 'a'),), (('.set', 'a'),)])
def test_a_rule_is_a_field_and_a_value(tmp_path, rules):
    with pytest.raises(ValueError, match=r'data.leave_out: .* is no rule'):
        JsonLines(str(tmp_path), leave_out=rules)


def test_a_rule_for_an_object_is_refused_by_place(tmp_path):
    write_sets(tmp_path / 'rows.jsonl')
    source = JsonLines(str(tmp_path / 'rows.jsonl'), leave_out=(('meta', 'Github'),))
    message = r"rows.jsonl at byte 0: .*leave_out names 'meta', which is an object; accepted"
    with pytest.raises(ValueError, match=message):
        read_all(source, tmp_path)
