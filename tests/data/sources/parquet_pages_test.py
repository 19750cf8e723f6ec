"""Headers of pages say what pyarrow wrote, and what is no header is told from one."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nope.data.sources import parquet_pages
from tests.data.sources.corpora import ROWS

OPTIONS: dict[str, dict[str, Any]] = {
    'plain': {'use_dictionary': False, 'compression': 'none'},
    'dictionary': {'compression': 'snappy', 'write_page_checksum': True},
    'version 2': {'data_page_version': '2.0', 'compression': 'zstd', 'data_page_size': 300},
}


def found_in(path: pathlib.Path) -> list[list[parquet_pages.Page]]:
    with pq.ParquetFile(path) as file, path.open('rb') as content:
        groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
        return [list(parquet_pages.pages(content, group.column(0))) for group in groups]


@pytest.mark.parametrize('options', OPTIONS.values(), ids=OPTIONS)
def test_pages_hold_every_value_once(tmp_path: pathlib.Path, options: dict[str, Any]) -> None:
    path = tmp_path / 'rows.parquet'
    pq.write_table(pa.table({'text': ROWS}), path, row_group_size=70, **options)
    groups = found_in(path)
    assert [sum(p.values for p in pages if not p.is_dictionary) for pages in groups] == [70, 70, 60]
    has_dictionary = options.get('use_dictionary', True)
    assert all(pages[0].is_dictionary == has_dictionary for pages in groups)
    texts = [sum(map(len, ROWS[start : start + 70])) for start in (0, 70, 140)]
    if not has_dictionary:  # each value behind its length in 4 bytes
        sizes = [sum(page.size for page in pages) for pages in groups]
        assert all(0 <= s - t - 4 * 70 < 100 for s, t in zip(sizes[:2], texts[:2], strict=True))


def test_a_header_may_hold_a_long_statistic(tmp_path: pathlib.Path) -> None:
    path = tmp_path / 'rows.parquet'
    pq.write_table(pa.table({'text': ['a' * 4000] * 9}), path, use_dictionary=False)
    assert [page.values for (page,) in found_in(path)] == [9]


def test_changed_bytes_are_pages_or_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / 'rows.parquet'
    pq.write_table(pa.table({'text': ROWS}), path, **OPTIONS['version 2'])
    data, draw = path.read_bytes(), np.random.default_rng(0)
    with pq.ParquetFile(path) as file:
        chunk = file.metadata.row_group(0).column(0)
    refused = 0
    for _ in range(300):
        changed = bytearray(data)
        place = int(draw.integers(4, 60))
        changed[place : place + 2] = draw.bytes(2)
        path.write_bytes(changed[: int(draw.integers(60, len(data)))])
        with path.open('rb') as file:
            try:
                assert all(p.size >= 0 for p in parquet_pages.pages(file, chunk))
            except parquet_pages.NoPageError:
                refused += 1
    assert refused > 30
