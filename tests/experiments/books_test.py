"""English books in the place of Python's library: names, sources, results."""

from __future__ import annotations

import json
import pathlib

import pytest

from experiments import config_files, figure_configs
from experiments.build import build

CONFIGS = ('fig1', 'fig4', 'fig_dynamic', 'split_seeds')
TEXT = 'It was a dark and stormy night. ' * 40


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    books = tmp_path / 'books'
    books.mkdir()
    for split in ('train_0', 'validation', 'test'):
        (books / f'{split}.jsonl').write_text(json.dumps({'text': TEXT + split}) + '\n')
    return books


@pytest.mark.parametrize('name', CONFIGS)
@pytest.mark.parametrize(('size', 'end'), [('quick', ''), ('small', '_small')])
def test_only_the_text_is_another(name, size, end, folder):
    module = config_files.module(name)
    own, books = module.get_config(size), module.get_config(f'{size},books')
    assert books.name == f'{name}_books{end}'
    assert figure_configs.config_of(books.name) == (f'{name}_books', size)
    assert figure_configs.figure_name(f'{name}_books', size) == books.name
    sources = [s for s, _ in books.data.mixture] or [books.data.source]
    assert sources == [
        'jsonl:data/books' if source == 'stdlib' else source
        for source in [s for s, _ in own.data.mixture] or [own.data.source]
    ]
    assert config_files.text_of(name, size) == 'Python'
    assert config_files.text_of(f'{name}_books', size) == 'books'
    here = build(module.get_config(f'{size},books={folder}')).settings
    there = build(own).settings
    assert {path for path in here if here[path] != there.get(path)} <= {
        *('name', 'data.source', 'data.mixture', 'data.field', 'data.leave_out'),
        'data.max_line_bytes',
    }


def test_the_result_is_the_same_wherever_the_books_lie(tmp_path, folder):
    config = config_files.module('split_seeds').get_config(f'quick,books={folder}')
    settings = build(config).settings
    path = tmp_path / 'split_seeds_books/spec.json'
    path.parent.mkdir()

    def changes(given):
        path.write_text(json.dumps({'settings': given}))
        return set(figure_configs.changes(path.parent, 'split_seeds_books', 'quick'))

    assert not changes(settings)
    mixture = [list(entry) for entry in settings['data.mixture']]
    assert changes({**settings, 'data.mixture': [['stdlib', 0.5], mixture[1]]}) == {'data.mixture'}
    assert changes({**settings, 'data.mixture': [mixture[0], ['retrieval', 0.1]]}) == {
        'data.mixture'
    }
    without = {p: v for p, v in settings.items() if p != 'runs.half_forget_tied.search.tied'}
    assert changes(without) == {'runs.half_forget_tied.search.tied'}
    asked = 'configs/split_heads/split_seeds.py:quick,books'
    assert figure_configs.differences(settings, asked).config == asked


@pytest.mark.parametrize('name', CONFIGS)
def test_a_missing_folder_is_refused_with_the_recipe(name):
    config = config_files.module(name).get_config('quick,books=/nowhere')
    said = r"data\.\w+.*'/nowhere'; accepted: .*books/README\.md.*jsonl:FOLDER"
    with pytest.raises(FileNotFoundError, match=said):
        build(config)


@pytest.mark.parametrize('argument', ['book', 'books=', 'books,longppl'])
def test_another_argument_is_refused(argument):
    with pytest.raises(ValueError, match=f"fig1: '{argument}' is unknown; accepted .* books=FOLD"):
        config_files.module('fig1').get_config(f'quick,{argument}')


def test_a_name_that_ends_so_belongs_to_no_config_without_the_argument():
    assert figure_configs.config_of('fig7_books') is None
    with pytest.raises(ValueError, match="size 'paper,books' is unknown"):
        config_files.module('fig1').get_config('paper,books')
