"""Local files of the published tasks: their layout, and what is said where they do not keep it."""

from __future__ import annotations

import json
import pathlib
import re
from typing import Any

import lm_eval.tasks
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nope.evals.harness import local
from nope.evals.harness.local import local_tasks
from nope.evals.harness.published import LONGBENCH_2, TABLE_1
from tests.evals.harness.documents import DOCUMENTS, write_all, write_jsonl


def test_a_task_reads_its_file_wherever_it_is_run_from(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_all(tmp_path)
    rows = [dict(row) for row in DOCUMENTS['piqa']]
    (tmp_path / 'piqa.jsonl').unlink()
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / 'piqa.parquet')
    monkeypatch.chdir(tmp_path)
    tasks = local_tasks(pathlib.Path(), TABLE_1)
    assert [task['task'] for task in tasks] == list(TABLE_1)
    for task in tasks:
        parquet = task['task'] == 'piqa'
        path = tmp_path / f'{task["task"]}.{"parquet" if parquet else "jsonl"}'
        assert task['dataset_path'] == ('parquet' if parquet else 'json')
        assert task['dataset_kwargs'] == {'data_files': {'test': str(path)}}
        assert task['num_fewshot'] == 0


def test_all_missing_files_are_named_with_their_columns(tmp_path: pathlib.Path) -> None:
    write_jsonl(tmp_path / 'boolq.jsonl', DOCUMENTS['boolq'])
    with pytest.raises(FileNotFoundError) as error:
        local_tasks(tmp_path, ['boolq', 'piqa', 'winogrande'])
    lines = str(error.value).splitlines()
    assert 'lacks the data of 2 tasks' in lines[0]
    assert [line.strip() for line in lines[1:]] == [
        'piqa.jsonl or piqa.json or piqa.parquet: goal, sol1, sol2, label',
        'winogrande.jsonl or winogrande.json or winogrande.parquet: sentence, option1, option2, '
        'answer',
    ]


@pytest.mark.parametrize(
    ('name', 'change', 'said'),
    [
        ('boolq', {'label': 'yes'}, "label is 'yes' in the first row; it must be a whole number"),
        ('hellaswag', {'endings': 'a b'}, "endings is 'a b' .*must be a list of strings"),
        ('arc_easy', {'choices': ['a', 'b']}, r'choices is .*; it must be \{"text"'),
    ],
)
def test_a_column_of_another_kind_is_named(
    tmp_path: pathlib.Path, name: str, change: dict[str, Any], said: str
) -> None:
    write_jsonl(tmp_path / f'{name}.jsonl', [{**DOCUMENTS[name][0], **change}])
    with pytest.raises(ValueError, match=said):
        local_tasks(tmp_path, [name])


@pytest.mark.parametrize(
    ('task', 'file', 'content', 'said'),
    [
        ('piqa', 'piqa.jsonl', '', "has no column 'goal'; it has no rows"),
        (
            'piqa',
            'piqa.jsonl',
            '\n{"text": 1}\n',
            "'goal'; it has text, and the task needs goal, so",
        ),
        ('piqa', 'piqa.jsonl', '[1]', 'its first line is not a JSON object'),
        ('piqa', 'piqa.parquet', 'PAR1', 'not a Parquet file'),
        (
            'babilong_qa1',
            'qa1/0k.json',
            '[{"input": "a"}]',
            "has no column 'question'; it has input",
        ),
        ('babilong_qa1', 'qa1/0k.json', ' [ ]', "has no column 'input'; it has no rows"),
        ('babilong_qa1', 'qa1/0k.json', '[{"input": "a"', 'its first row is not JSON'),
    ],
)
def test_a_file_of_something_else_is_named(
    tmp_path: pathlib.Path, task: str, file: str, content: str, said: str
) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(content)
    with pytest.raises(ValueError, match=f'{file}.*{said}'):
        local_tasks(tmp_path, [task])


def test_an_empty_parquet_file_has_no_rows(tmp_path: pathlib.Path) -> None:
    pq.write_table(pa.table({'goal': pa.array([], pa.string())}), tmp_path / 'piqa.parquet')
    with pytest.raises(ValueError, match='it has no rows'):
        local_tasks(tmp_path, ['piqa'])


def test_two_files_of_a_task_are_refused(tmp_path: pathlib.Path) -> None:
    write_jsonl(tmp_path / 'piqa.jsonl', DOCUMENTS['piqa'])
    (tmp_path / 'piqa.parquet').touch()
    with pytest.raises(ValueError, match=r'task piqa has two files, .*jsonl and .*parquet'):
        local_tasks(tmp_path, ['piqa'])


def test_the_file_of_several_tasks_is_asked_for_once(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError) as error:
        local_tasks(tmp_path, ['babilong_qa2', *LONGBENCH_2], {'max_seq_lengths': '4k'})
    lines = [line.strip() for line in str(error.value).splitlines()]
    assert 'lacks the data of 21 tasks' in lines[0]
    assert lines[1:] == [
        'qa2/4k.jsonl or qa2/4k.json or qa2/4k.parquet: input, question, target',
        'data.jsonl or data.json or data.parquet: domain, sub_domain, context, question, '
        'choice_A, choice_B, choice_C, choice_D, answer',
    ]


def test_the_subsets_of_longbench_2_are_those_of_the_harness() -> None:
    root = pathlib.Path(lm_eval.tasks.__file__).parent / 'longbench2'
    texts = (path.read_text() for path in root.glob('*.yaml'))
    names = {found[1] for text in texts if (found := re.search(r'^task: (\w+)$', text, re.M))}
    assert names == set(LONGBENCH_2)
    assert len({tuple(task.rows.items()) for task in LONGBENCH_2.values()}) == len(names) == 20


@pytest.mark.parametrize('length', [4096, ['4k']])
def test_babilong_takes_one_length(tmp_path: pathlib.Path, length: Any) -> None:
    with pytest.raises(ValueError, match=r'max_seq_lengths is .*; babilong_qa1 accepts one length'):
        local_tasks(tmp_path, ['babilong_qa1'], {'max_seq_lengths': length})


def test_of_a_list_no_more_is_read_than_its_first_row(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, 'FIRST_READ', 7)
    row = {'input': 'ä' * 90, 'question': 'b', 'target': 'c'}
    (tmp_path / 'qa1').mkdir()
    (tmp_path / 'qa1/0k.json').write_text(f'[\n{json.dumps(row)}, {"broken" * 99}')
    assert local_tasks(tmp_path, ['babilong_qa1'])[0]['test_split'] == 'qa1'
