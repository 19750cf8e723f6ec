"""The folder of English books, from a checkout that is small."""

from __future__ import annotations

import json
import shutil

from tools import books


def test_a_checkout_becomes_lines_of_json_or_is_refused(tmp_path, monkeypatch, capsys):
    checkout, titles = tmp_path / 'checkout', tmp_path / 'titles.tsv'
    (checkout / 'A. B').mkdir(parents=True)
    text = '-----\n\n### I\r\n\r\nOne. \n\n\n## II\r\nTwo.\n\n'
    header = '# Title: C\n\n## Author: A. B\n\n## Year: 300 BC\n\n--'
    (checkout / 'A. B/C.md').write_bytes((header + text).encode())
    monkeypatch.setattr(books, 'TITLES', titles)
    head = 'split\tauthor\ttitle\tyear\tcharacters\n'
    titles.write_text(f'{head}test\tA. B\tC\t300\t20\n')
    assert books.main([str(checkout), str(tmp_path / 'books')]) == 0
    book = {'title': 'C', 'author': 'A. B', 'year': 300, 'text': 'I\r\n\r\nOne.\n\nII\r\nTwo.\n'}
    assert json.loads((tmp_path / 'books/test.jsonl').read_text()) == book
    shutil.rmtree(tmp_path / 'books')
    titles.write_text(f'{head}test\tA. B\tC\t300\t21\n')
    assert books.main([str(checkout), str(tmp_path / 'books')]) == 2
    assert "'C' by A. B has 20 characters" in capsys.readouterr().err
    assert not (tmp_path / 'books').exists()
