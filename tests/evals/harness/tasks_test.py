"""Tasks are found by name, or it is said where they were looked for."""

from __future__ import annotations

import pathlib
import sys

import pytest
from lm_eval.tasks import TaskManager

from nope.evals.harness import TASKS, adapter, find, load
from tests.evals.harness.documents import DOCUMENTS, write_all, write_jsonl
from tests.evals.harness.fakes import TOKENIZER, FakeGenerator

MINE = """
task: {name}
dataset_path: json
dataset_kwargs:
  data_files:
    test: {data}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{question_stem}}}}"
doc_to_choice: "{{{{choices.text}}}}"
doc_to_target: 0
"""


@pytest.fixture
def include(tmp_path: pathlib.Path) -> pathlib.Path:
    folder = tmp_path / 'tasks'
    folder.mkdir()
    write_jsonl(folder / 'rows.jsonl', DOCUMENTS['openbookqa'])
    for name in ('mine', 'piqa'):
        (folder / f'{name}.yaml').write_text(MINE.format(name=name, data=folder / 'rows.jsonl'))
    (folder / 'broken.yaml').write_text('task: [')
    return folder


@pytest.fixture
def data(tmp_path: pathlib.Path) -> pathlib.Path:
    folder = tmp_path / 'data'
    folder.mkdir()
    write_all(folder)
    return folder


def test_tasks_of_the_paper_read_local_files_in_its_order(data: pathlib.Path) -> None:
    assert TASKS == (
        'arc_challenge', 'arc_easy', 'boolq', 'hellaswag', 'openbookqa', 'piqa', 'winogrande'
    )  # fmt: skip
    loaded = load(find(TASKS, data=data, built_in=False))
    assert tuple(loaded['tasks']) == TASKS and not loaded['groups']
    for name, task in loaded['tasks'].items():
        assert len(task.eval_docs) == 2
        assert task.get_config('num_fewshot') == 0
        assert str(data / f'{name}.jsonl') in str(task.get_config('dataset_kwargs'))


def test_tasks_of_a_folder_come_before_those_of_the_harness(
    include: pathlib.Path, data: pathlib.Path
) -> None:
    names = ['mine', 'winogrande', 'piqa']
    loaded = load(find(names, include=include, data=data, built_in=False))
    assert list(loaded['tasks']) == names
    assert 'rows.jsonl' in str(loaded['tasks']['piqa'].get_config('dataset_kwargs'))
    assert 'winogrande.jsonl' in str(loaded['tasks']['winogrande'].get_config('dataset_kwargs'))
    assert loaded['tasks']['mine'].get_config('num_fewshot') == 0


def test_files_that_tasks_read_are_known(include: pathlib.Path, data: pathlib.Path) -> None:
    rows = include / 'rows.jsonl'
    assert find(['mine'], include=include, built_in=False).files == (rows,)
    found = find(['mine', 'boolq'], include=include, data=data, built_in=False)
    assert found.files == tuple(sorted([rows, *data.glob('boolq.*')]))
    many = MINE.format(name='many', data=include / 'row*.jsonl')
    (include / 'many.yaml').write_text(many)
    assert find(['many'], include=include, built_in=False).files == (rows,)


def test_an_unknown_name_is_said_with_the_places_that_were_searched(
    include: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError) as error:
        find(['mine', 'yours', 'broken'], include=include, built_in=False)
    assert str(error.value) == (
        f"task 'yours', 'broken' is unknown; looked up in: Table 1 ({', '.join(TASKS)}); the YAML "
        f'files in {include} (one that cannot be read is not looked at)'
    )
    # The index of everything takes half a minute: a small one in its place.
    monkeypatch.setattr('lm_eval.tasks.TaskManager', _only(include))
    assert find(['mine'], built_in=True).names == ('mine',)
    with pytest.raises(ValueError, match=r"'yours' is unknown; .*the tasks, groups and tags that"):
        find(['mine', 'yours'], built_in=True)


def _only(folder: pathlib.Path) -> type[TaskManager]:
    class Only(TaskManager):
        def __init__(self, include_path: list, include_defaults: bool, metadata: None) -> None:
            paths = [*include_path, *([folder] if include_defaults else [])]
            super().__init__(include_path=paths, include_defaults=False)

    return Only


def test_settings_that_cannot_be_are_refused(include: pathlib.Path, data: pathlib.Path) -> None:
    with pytest.raises(ValueError, match='tasks is empty'):
        find([], built_in=False)
    with pytest.raises(ValueError, match="tasks names 'piqa' twice"):
        find(['piqa', 'boolq', 'piqa'], built_in=False)
    with pytest.raises(FileNotFoundError, match='must be a folder of task YAML files'):
        find(['mine'], include=include / 'rows.jsonl', built_in=False)
    with pytest.raises(ValueError, match='none of mine reads it; the tasks that do are arc_ch'):
        find(['mine'], include=include, data=data, built_in=False)
    (data / 'boolq.jsonl').unlink()
    with pytest.raises(FileNotFoundError, match='lacks the data of 1 tasks'):
        find(TASKS, data=data, built_in=False)


def test_what_tasks_draw_while_they_load_is_drawn_alike(include: pathlib.Path) -> None:
    (include / 'drawn.py').write_text("""
import random

def of(docs):
    return docs.select([random.randrange(10**9) % len(docs) for _ in range(40)])
""")
    mine = (include / 'mine.yaml').read_text().replace('mine', 'drawn')
    (include / 'drawn.yaml').write_text(mine + 'process_docs: !function drawn.of\n')
    asked = [
        list(load(find(['drawn'], include=include, built_in=False))['tasks']['drawn'].eval_docs)
        for _ in range(2)
    ]
    assert asked[0] == asked[1]


@pytest.mark.parametrize('name', ['tokenizer_config.json', 'config.json'])
def test_code_that_comes_with_a_tokenizer_is_not_run(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """lm_eval's RULER would trust it."""
    told = {'tokenizer': str(tmp_path)}
    assert find(['piqa'], built_in=False, metadata=told).names == ('piqa',)
    (tmp_path / name).write_text('{"auto_map": {"AutoTokenizer": [null, "own.Own"]}}')
    with pytest.raises(ValueError, match=f'tokenizer .*whose {name} has auto_map'):
        find(['piqa'], built_in=False, metadata=told)
    monkeypatch.chdir(tmp_path)
    assert find(['piqa'], built_in=False).names == ('piqa',)  # which asks for no tokenizer


def test_hidden_files_are_no_data_of_a_task(include: pathlib.Path) -> None:
    folder = include / 'data'
    folder.mkdir()
    for name in ('rows.jsonl', '.DS_Store', '.cache/lock'):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    (include / 'local.yaml').write_text(f'task: local\ndataset_path: {folder}\n')
    assert find(['local'], include=include, built_in=False).files == (folder / 'rows.jsonl',)


def test_data_that_cannot_be_had_are_said(include: pathlib.Path) -> None:
    (include / 'rows.jsonl').unlink()
    with pytest.raises(OSError, match=r'the data of mine cannot be had: .*rows.jsonl'):
        load(find(['mine'], include=include, built_in=False))


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, 'lm_eval', None)
    with pytest.raises(ModuleNotFoundError, match='pip install lm_eval'):
        find(TASKS)
    with pytest.raises(ModuleNotFoundError, match='pip install lm_eval'):
        adapter(FakeGenerator(), TOKENIZER, window=8)  # type: ignore[arg-type]
