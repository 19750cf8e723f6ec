from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nope.data.sources import Parquet
from tests.data import damage
from tests.data.sources.corpora import ROWS, read_all, texts_of, write_parquet


@pytest.mark.parametrize('part_bytes', [1, 3000, 1 << 30])
def test_parquet_reads_every_row(tmp_path, part_bytes):
    write_parquet(tmp_path / 'rows' / 'a.parquet', ROWS[:120], 'content')
    write_parquet(tmp_path / 'rows' / 'b.parquet', ROWS[120:], 'content')
    source = Parquet(str(tmp_path / 'rows'), field='content')
    assert texts_of(read_all(source, tmp_path, part_bytes)) == ROWS


@pytest.mark.parametrize('suffix', ['.parq', '.PQ', '.Parquet'])
def test_columns_that_are_dictionaries_of_texts_are_read(tmp_path, suffix):
    rows = ['the same'] * 99 + ROWS
    table = pa.table({'text': pa.array(rows).dictionary_encode()})
    pq.write_table(table, tmp_path / f'rows{suffix}')
    assert texts_of(read_all(Parquet(str(tmp_path)), tmp_path)) == rows


def test_bad_parquet_names_the_field(tmp_path):
    path = tmp_path / 'rows.parquet'
    write_parquet(path)
    for field in ('body', 'id'):
        with pytest.raises(ValueError, match=rf"data\.field='{field}'.*text"):
            read_all(Parquet(str(path), field=field), tmp_path)
    path.write_text('not parquet')
    with pytest.raises(ValueError, match=r'data\.source: .*not a Parquet file'):
        read_all(Parquet(str(path)), tmp_path)


@pytest.mark.parametrize('part_bytes', [1, 1 << 30])
def test_a_row_without_text_is_refused_by_its_number(tmp_path, part_bytes):
    path = tmp_path / 'rows.parquet'
    write_parquet(path, [*ROWS[:50], None, *ROWS[50:]])
    message = rf"^data\.source: {path} row 50: no text in data\.field='text'; it holds null$"
    with pytest.raises(ValueError, match=message):
        read_all(Parquet(str(path)), tmp_path, part_bytes)


def refusals(path, contents, tmp_path) -> list[str]:
    """The messages with which damaged files are refused; all others give every row."""
    messages = []
    for content in contents:
        path.write_bytes(content)
        try:
            assert texts_of(read_all(Parquet(str(path)), tmp_path)) == ROWS
        except ValueError as error:
            messages.append(str(error))
    return messages


def test_a_parquet_file_cut_or_longer_than_it_was_is_refused_by_name(tmp_path):
    path = tmp_path / 'rows.parquet'
    write_parquet(path)
    damaged = [*damage.cuts(path.read_bytes()), *damage.trailed(path.read_bytes())]
    messages = refusals(path, damaged, tmp_path)
    assert len(messages) == len(damaged)
    assert all(message.startswith(f'data.source: {path} is not a Par') for message in messages)


def test_a_parquet_file_that_lost_a_row_group_is_refused(tmp_path, monkeypatch):
    path = tmp_path / 'rows.parquet'
    write_parquet(path)
    counts = pq.ParquetFile.iter_batches

    def fewer(file, size, groups, **more):
        return counts(file, size, groups[1:], **more)

    monkeypatch.setattr(pq.ParquetFile, 'iter_batches', fewer)
    with pytest.raises(ValueError, match=r'is damaged: it holds 184 rows of text, not 200'):
        read_all(Parquet(str(path)), tmp_path)


def write_column(path, column, **options) -> None:
    pq.write_table(
        pa.table({'text': column}), path, compression='zstd', store_schema=False, **options
    )


@pytest.mark.parametrize('short', [0, 40])
@pytest.mark.parametrize('use_dictionary', [True, False])
def test_a_value_above_the_limit_is_refused(tmp_path, short, use_dictionary):
    path = tmp_path / 'rows.parquet'
    write_column(path, ['a'] * short + ['b' * 1000], use_dictionary=use_dictionary)
    assert len(read_all(Parquet(str(path), max_line_bytes=1000), tmp_path)) == short + 1
    message = rf'rows\.parquet: row {short} has 1000 bytes, more than data\.max_line_bytes=999 '
    with pytest.raises(ValueError, match=message):
        read_all(Parquet(str(path), max_line_bytes=999), tmp_path)
