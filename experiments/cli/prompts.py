"""Prompts from the command line or a file."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Sequence
from typing import NamedTuple

from nope.runtime.files import parse_json, read_utf8

FIELD = 'prompt'
OBJECTS = ('.jsonl', '.ndjson', '.json')
OBJECT = f'accepted is an object like {{"{FIELD}": "Once"}}'


class Prompt(NamedTuple):
    """where: what it is called in errors."""

    where: str
    text: str


def read(given: Sequence[str] | None, file: pathlib.Path | None) -> list[Prompt]:
    """The prompts of the command line, or else of the file. FileNotFoundError where there is no
    such file; ValueError naming the line that holds no prompt, or the file where none does."""
    if given or file is None:
        numbered = enumerate(given or (), 1)
        return [_checked(Prompt(f'--prompt {number}', text)) for number, text in numbered]
    if file.is_dir():
        raise ValueError(f'--prompts={file} is a folder; it takes a file')
    if not file.is_file():
        raise FileNotFoundError(f'--prompts={file}: there is no such file')
    try:
        lines = re.split(r'\r\n?|\n', read_utf8(file).decode())
    except UnicodeDecodeError as error:
        raise ValueError(f'--prompts={file}: not text in UTF-8 or UTF-16 ({error})') from error
    prompts = []
    for number, line in enumerate(lines, 1):
        where = f'{file}, line {number}'
        if not line.strip():
            continue
        if file.suffix.lower() in OBJECTS:
            try:
                row = parse_json(line)
            except ValueError as error:
                raise ValueError(f'{where}: not a line of JSON ({error}); {OBJECT}') from error
            if not isinstance(row, dict) or not isinstance(row.get(FIELD), str):
                raise ValueError(f'{where}: there is no text {FIELD!r} in it; {OBJECT}')
            if unknown := sorted(row.keys() - {FIELD}):
                raise ValueError(f'{where}: the field {unknown[0]!r} is not known; {OBJECT}')
            line = row[FIELD]
        prompts.append(_checked(Prompt(where, line)))
    if not prompts:
        raise ValueError(f'--prompts={file}: there is no prompt in it')
    return prompts


def _checked(prompt: Prompt) -> Prompt:
    try:
        prompt.text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f'{prompt.where}: the prompt is no text ({error})') from error
    return prompt
