from __future__ import annotations

import pathlib
import re
import struct

import pytest
import zstandard

from nope.data.sources import JsonLines
from tests.data import damage
from tests.data.sources.corpora import COMPRESSORS, ROWS, read_all, texts_of, write_jsonl

SKIPPED = struct.pack('<II', 0x184D2A50, 5) + b'hello'  # a frame of no content
PACKINGS = ['.gz', '.zst', '.bz2', '.xz']


def packed(suffix: str, tmp_path: pathlib.Path, *, checksum: bool = True) -> pathlib.Path:
    """Every row of `ROWS`, in two members or frames."""
    path = tmp_path / 'rows.jsonl'
    write_jsonl(path)
    data = path.read_bytes()
    path.unlink()
    half = len(data) // 2
    whole = zstandard.ZstdCompressor(write_checksum=checksum)
    compress = whole.compress if suffix == '.zst' else COMPRESSORS[suffix]
    path = tmp_path / f'rows.jsonl{suffix}'
    path.write_bytes(compress(data[:half]) + compress(data[half:]))
    return path


def refusal(path: pathlib.Path, tmp_path: pathlib.Path) -> str | None:
    """The message with which a file is refused, or None where all of its rows are read."""
    try:
        documents = read_all(JsonLines(str(path)), tmp_path)
    except ValueError as error:
        return str(error)
    assert texts_of(documents) == ROWS
    return None


@pytest.mark.parametrize('checksum', [True, False])
@pytest.mark.parametrize('suffix', PACKINGS)
def test_a_packed_file_cut_anywhere_is_refused_by_name(tmp_path, suffix, checksum):
    path = packed(suffix, tmp_path, checksum=checksum)
    data = path.read_bytes()
    for content in (*damage.cuts(data), *(data[:-n] for n in range(1, 30))):
        path.write_bytes(content)
        message = refusal(path, tmp_path)
        assert message is not None and message.startswith(f'data.source: {path} is damaged: ')


@pytest.mark.parametrize('suffix', PACKINGS)
def test_a_packed_file_with_bytes_behind_its_end_is_refused_by_name(tmp_path, suffix):
    path = packed(suffix, tmp_path)
    for content in damage.trailed(path.read_bytes()):
        path.write_bytes(content)
        message = refusal(path, tmp_path)
        assert message is not None and message.startswith(f'data.source: {path} is damaged: ')


@pytest.mark.parametrize('suffix', PACKINGS)
@pytest.mark.parametrize('content', [b'', b'garbage', b'{"text": "not packed"}\n'])
def test_a_file_that_is_not_packed_as_its_name_says_is_refused_by_name(tmp_path, suffix, content):
    path = tmp_path / f'rows.jsonl{suffix}'
    path.write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(f'data.source: {path} is damaged: ')):
        read_all(JsonLines(str(path)), tmp_path)


def test_zstandard_frames_of_the_longest_window_are_read(tmp_path):
    """As `zstd --long=31` writes them."""
    path = tmp_path / 'rows.jsonl.zst'
    write_jsonl(tmp_path / 'rows.jsonl')
    data = (tmp_path / 'rows.jsonl').read_bytes()
    header = struct.pack('<IBB', zstandard.MAGIC_NUMBER, 0, (31 - 10) << 3)
    last_block_as_it_is = (len(data) << 3 | 1).to_bytes(3, 'little')
    path.write_bytes(header + last_block_as_it_is + data)
    assert refusal(path, tmp_path) is None


@pytest.mark.parametrize('place', [0, 1, 2])
def test_zstandard_frames_without_content_are_skipped(tmp_path, place):
    path = packed('.zst', tmp_path)
    data = path.read_bytes()
    second = data.rindex(struct.pack('<I', zstandard.MAGIC_NUMBER))
    pieces = [data[:second], data[second:]]
    path.write_bytes(b''.join([*pieces[:place], SKIPPED, *pieces[place:]]))
    assert refusal(path, tmp_path) is None
