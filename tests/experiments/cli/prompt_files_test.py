"""Prompts of the command line, as they are read."""

from __future__ import annotations

import pathlib

import pytest

from experiments.cli.generate import read_prompts


def test_a_file_holds_objects_or_lines_as_its_suffix_says(tmp_path: pathlib.Path) -> None:
    text = '{"prompt": "two\\nlines"}\n\n {"prompt": ""}\n'
    for name, expected in (
        ('a.jsonl', ['two\nlines', '']),
        ('a.txt', [line for line in text.split('\n') if line]),
    ):
        (tmp_path / name).write_text(text)
        found = read_prompts(None, tmp_path / name)
        assert [prompt.text for prompt in found] == expected
        assert [prompt.where for prompt in found] == [
            f'{tmp_path / name}, line {n}' for n in (1, 3)
        ]
    assert [prompt.text for prompt in read_prompts(['b', ' a '], None)] == ['b', ' a ']


@pytest.mark.parametrize('encoding', ['utf-8-sig', 'utf-16'])
@pytest.mark.parametrize(
    ('name', 'content'),
    [('a.txt', 'one é\r\ntwo'), ('a.JSONL', '{"prompt": "one é"}\r\n{"prompt": "two"}')],
)
def test_a_file_with_a_byte_order_mark_holds_the_same_prompts(
    encoding: str, name: str, content: str, tmp_path: pathlib.Path
) -> None:
    (tmp_path / name).write_bytes(content.encode(encoding))
    assert [prompt.text for prompt in read_prompts(None, tmp_path / name)] == ['one é', 'two']


@pytest.mark.parametrize(
    ('line', 'said'),
    [
        (b'{"prompt": "a"', 'line 2: not a line of JSON'),
        (b'[' * 100_000, 'line 2: not a line of JSON'),
        (b'["a"]', "line 2: there is no text 'prompt'"),
        (b'{"text": "a"}', "line 2: there is no text 'prompt'"),
        (b'{"prompt": 1}', "line 2: there is no text 'prompt'"),
        (b'{"prompt": "a", "seed": 1}', "line 2: the field 'seed' is not known; accepted is"),
        (b'{"prompt": "\\ud800"}', 'line 2: the prompt is no text'),
        (b'\xff', 'a.jsonl: not text in UTF-8 or UTF-16'),
    ],
)
def test_lines_without_a_prompt_are_named(line: bytes, said: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / 'a.jsonl').write_bytes(b'{"prompt": "a"}\n' + line)
    with pytest.raises(ValueError) as error:
        read_prompts(None, tmp_path / 'a.jsonl')
    assert said in str(error.value)


def test_a_file_without_prompts_is_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / 'a.txt').write_text('\n \n')
    with pytest.raises(ValueError, match=r'a\.txt: there is no prompt in it'):
        read_prompts(None, tmp_path / 'a.txt')
