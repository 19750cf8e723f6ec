"""PCFG SET: the interpreter, the user's files and what is wrong with them."""

from __future__ import annotations

import pathlib
import re
import shutil
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nope.data.tasks import TASKS, dataset, named
from nope.data.tasks.pcfg_grammar import ALPHABET, BINARY, COMMA, UNARY, functions, interpret
from nope.data.tasks.words import WordTokenizer


def drawn(count: int, rng: np.random.Generator) -> str:
    """A random source of so many functions."""
    if count == 0:
        return ' '.join(rng.choice(ALPHABET, rng.integers(2, 6)))
    name = str(rng.choice([*UNARY, *BINARY]))
    if name in UNARY:
        return f'{name} {drawn(count - 1, rng)}'
    first = int(rng.integers(count))
    return f'{name} {drawn(first, rng)} {COMMA} {drawn(count - 1 - first, rng)}'


def write_files(folder: pathlib.Path, lengths: dict[str, range]) -> None:
    """Three sources of every length, and their targets."""
    rng = np.random.default_rng(0)
    for split, of in lengths.items():
        sources = [drawn(length, rng) for length in of for _ in range(3)]
        (folder / f'{split}.src').write_text(''.join(f'{s}\n' for s in sources))
        (folder / f'{split}.tgt').write_text(''.join(f'{interpret(s)}\n' for s in sources))


@pytest.fixture(scope='module')
def sound(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp('pcfg')
    write_files(folder, {'train': range(1, 9), 'test': range(9, 13)})
    return folder


@pytest.fixture
def files(sound: pathlib.Path, tmp_path: pathlib.Path) -> pathlib.Path:
    """A copy of sound files, to be damaged."""
    return pathlib.Path(shutil.copytree(sound, tmp_path / 'files'))


@pytest.mark.parametrize(
    'source, string',
    [
        ('copy A1 B2 C3', 'A1 B2 C3'),
        ('reverse A1 B2 C3', 'C3 B2 A1'),
        ('shift A1 B2 C3', 'B2 C3 A1'),
        ('swap_first_last A1 B2 C3', 'C3 B2 A1'),
        ('swap_first_last A1 B2 C3 D4', 'D4 B2 C3 A1'),
        ('repeat A1 B2', 'A1 B2 A1 B2'),
        ('echo A1 B2', 'A1 B2 B2'),
        ('append A1 B2 , C3', 'A1 B2 C3'),
        ('prepend A1 B2 , C3', 'C3 A1 B2'),
        ('remove_first A1 B2 , C3', 'C3'),
        ('remove_second A1 B2 , C3', 'A1 B2'),
        # Of the data set's paper and of its own pages.
        ('reverse copy O14 O4 C12 J14 W3', 'W3 J14 C12 O4 O14'),
        ('repeat append A1 B2 , C3 D4', 'A1 B2 C3 D4 A1 B2 C3 D4'),
        ('append repeat A1 , prepend B2 , C3', 'A1 A1 C3 B2'),
    ],
)
def test_each_function_edits_its_string(source: str, string: str) -> None:
    assert interpret(source) == string


@pytest.mark.parametrize(
    'source, problem',
    [
        ('', 'a string is missing at word 1'),
        ('copy', 'a string is missing at word 2'),
        ('append A1', "append has no ','"),
        ('append A1 , ', 'a string is missing at word 4'),
        ('copy A1 , B2', "',' (word 3) stands behind the end"),
        ('A1 copy', "'copy' (word 2) stands behind the end"),
        ('repeat ' * 30 + 'A1', 'more than 100000 words'),
        ('copy ' * 201 + 'A1', '201 functions; accepted: up to 200'),
    ],
)
def test_what_is_not_of_the_grammar_is_refused(source: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        interpret(source)


def by_brackets(source: str) -> str:
    """A second interpreter: Python's own, of nested calls on strings of words."""
    calls = {
        'copy': lambda a: a,
        'reverse': lambda a: ' '.join(reversed(a.split())),
        'shift': lambda a: ' '.join([*a.split()[1:], a.split()[0]]),
        'swap_first_last': lambda a: ' '.join([a.split()[-1], *a.split()[1:-1], a.split()[0]]),
        'repeat': lambda a: f'{a} {a}',
        'echo': lambda a: f'{a} {a.split()[-1]}',
        'append': lambda a, b: f'{a} {b}',
        'prepend': lambda a, b: f'{b} {a}',
        'remove_first': lambda a, b: b,
        'remove_second': lambda a, b: a,
    }
    text = re.sub(r'[A-Z]\d+(?: [A-Z]\d+)*', lambda found: f'"{found[0]}"', source)
    words = re.findall(r'"[^"]*"|\S+', text)

    def call(words: list[str]) -> str:
        name = words.pop(0)
        if name not in calls:
            return name
        first = call(words)
        if words[:1] == [','] and name in ('append', 'prepend', 'remove_first', 'remove_second'):
            words.pop(0)
            return f'{name}({first}, {call(words)})'
        return f'{name}({first})'

    return eval(call(words), calls)


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(0, 2**32))
def test_a_second_interpreter_agrees(length: int, seed: int) -> None:
    source = drawn(length, np.random.default_rng(seed))
    assert functions(source) == length
    assert by_brackets(source) == interpret(source)


def test_the_users_files_are_split_as_the_paper_does(sound: pathlib.Path) -> None:
    task = named('pcfg', path=str(sound))
    data = dataset(task)
    assert (len(data.train), len(data.validation)) == (22, 2)
    assert Counter(example.length for example in data.test) == {9: 3, 10: 3, 11: 3, 12: 3}
    sources = {f'Solve: {line}' for line in (sound / 'train.src').read_text().splitlines()}
    assert {example.source for example in (*data.train, *data.validation)} == sources
    assert sources.isdisjoint(example.source for example in data.test)
    tokenizer = WordTokenizer.of(task)
    for example in (*data.train, *data.test):
        text = task.prompt(example) + example.target
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_files_that_changed_are_read_again(files: pathlib.Path) -> None:
    task = named('pcfg', path=str(files))
    assert len(dataset(task).test) == 12
    write_files(files, {'test': range(9, 11)})
    assert len(dataset(task).test) == 6


def test_a_missing_path_or_file_is_named(files: pathlib.Path) -> None:
    with pytest.raises(ValueError, match='path is empty; it must be the folder'):
        dataset(TASKS['pcfg'])
    (files / 'test.tgt').unlink()
    with pytest.raises(FileNotFoundError, match=r'path=.*: no file test.tgt'):
        dataset(named('pcfg', path=str(files)))


def lines(file: pathlib.Path, change: dict[int, str]) -> None:
    """Replaces lines of a file, counted from 1."""
    found = file.read_text().splitlines()
    for number, line in change.items():
        found[number - 1] = line
    file.write_text(''.join(f'{line}\n' for line in found))


def test_a_wrong_target_is_named_by_its_line(files: pathlib.Path) -> None:
    lines(files / 'train.tgt', {5: 'A1 A1'})
    with pytest.raises(ValueError, match=r"train.tgt, line 5: 'A1 A1'; its source describes '"):
        dataset(named('pcfg', path=str(files)))


def test_a_source_outside_the_grammar_is_named_by_its_line(files: pathlib.Path) -> None:
    lines(files / 'test.src', {7: 'append A1'})
    with pytest.raises(ValueError, match=r"test.src, line 7: append has no ','"):
        dataset(named('pcfg', path=str(files)))


def test_files_of_other_lengths_of_lines_are_refused(files: pathlib.Path) -> None:
    (files / 'test.tgt').write_text('A1\n')
    with pytest.raises(ValueError, match=r'test.tgt has 1 lines, and test.src has 12'):
        dataset(named('pcfg', path=str(files)))


@pytest.mark.parametrize('content, problem', [(b'', 'is empty'), (b'\xff\n', 'not ASCII text')])
def test_files_that_are_no_text_are_named(
    files: pathlib.Path, content: bytes, problem: str
) -> None:
    (files / 'train.src').write_bytes(content)
    with pytest.raises(ValueError, match=f'train.src.* {problem}'):
        dataset(named('pcfg', path=str(files)))


def test_a_source_of_the_other_split_is_refused(files: pathlib.Path) -> None:
    lines(files / 'test.src', {1: 'copy A1'})
    lines(files / 'test.tgt', {1: 'A1'})
    with pytest.raises(ValueError, match='test has 1 sources of 1 functions; longest=8 needs 9'):
        dataset(named('pcfg', path=str(files)))
