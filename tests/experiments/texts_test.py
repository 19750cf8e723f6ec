"""Files of text as documents: those that training reads, with the same bytes, whole."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from experiments.evaluations.texts import text_files
from nope.data.sources import Text
from nope.data.tokenizers import ByteTokenizer


def test_a_folder_is_read_as_training_reads_it(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / 'texts'
    for name, content in {
        **{'b.py': b'code', 'more/a.md': b'words', 'more/__init__.py': b''},
        **{'.hidden.txt': b'no', 'image.png': b'\x89PNG\0'},
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    found = text_files(str(folder))
    np.testing.assert_array_equal(found.documents('bytes', bos=False).lengths, [4, 5])
    (folder / 'b.py').write_bytes(b'more')
    assert text_files(str(folder)) != found
    (tmp_path / 'empty').mkdir()
    (tmp_path / 'empty/a.txt').write_text('')
    for path, said in (('empty', r'in it: 1 empty \(a.txt\)'), ('empty/a.txt', 'is empty')):
        with pytest.raises(ValueError, match=said):
            text_files(str(tmp_path / path)).documents('bytes', bos=False)


def test_a_text_is_tokenised_once_for_all_who_ask(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / 'a.txt').write_text('a text')
    first = text_files(str(tmp_path)).documents('bytes', bos=False)
    monkeypatch.setattr(ByteTokenizer, 'encode', None)
    again = text_files(str(tmp_path)).documents('bytes', bos=False, once=True)
    np.testing.assert_array_equal(again.lengths, first.lengths)


def test_a_text_has_the_same_bytes_as_the_source_of_texts(tmp_path: pathlib.Path) -> None:
    """Line ends, bytes that are no UTF-8, and no byte order mark."""
    (tmp_path / 'text').mkdir()
    for name, content in {
        'a.txt': b'a line\r\n' * 50,
        'b.txt': b'\xef\xbb\xbfmarked',
        'c.txt': 'é'.encode('utf-16'),
        'd.txt': b'\xff',
    }.items():
        (tmp_path / 'text' / name).write_bytes(content)
    parts = Text(str(tmp_path / 'text')).list_parts(tmp_path)
    texts = sum(len(text) for part in parts for _, text in part.documents())
    found = text_files(str(tmp_path / 'text')).documents('bytes', bos=False)
    assert found.lengths.tolist() == [400, 6, 2, 1] and found.lengths.sum() == texts
