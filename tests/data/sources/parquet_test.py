from __future__ import annotations

import pytest

from nope.data.sources import Parquet
from tests.data.sources.corpora import ROWS, read_all, texts_of, write_parquet


@pytest.mark.parametrize('part_bytes', [1, 3000, 1 << 30])
def test_parquet_reads_every_row(tmp_path, part_bytes):
    write_parquet(tmp_path / 'rows' / 'a.parquet', ROWS[:120], 'content')
    write_parquet(tmp_path / 'rows' / 'b.parquet', [*ROWS[120:], None], 'content')
    source = Parquet(str(tmp_path / 'rows'), field='content')
    assert texts_of(read_all(source, tmp_path, part_bytes)) == ROWS


def test_bad_parquet_names_the_field(tmp_path):
    path = tmp_path / 'rows.parquet'
    write_parquet(path)
    for field in ('body', 'id'):
        with pytest.raises(ValueError, match=rf"data\.field='{field}'.*text"):
            read_all(Parquet(str(path), field=field), tmp_path)
    path.write_text('not parquet')
    with pytest.raises(ValueError, match=r'data\.source: .*not a Parquet file'):
        read_all(Parquet(str(path)), tmp_path)
