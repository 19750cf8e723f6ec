"""BABILong and LongBench v2 from local files: what the model is asked, and the scores."""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nope.evals.harness import adapter, evaluate, find, load
from nope.evals.harness.commonsense import records
from nope.evals.harness.published import LONGBENCH_2
from tests.evals.harness.documents import write_jsonl
from tests.evals.harness.fakes import TOKENIZER, FakeGenerator, direct

FACTS = [
    {'input': 'Mary went to the garden. ', 'question': 'Where is Mary?', 'target': 'garden'},
    {'input': 'It rained. Bill is here.', 'question': 'Where is Bill? ', 'target': 'office'},
]
WINDOW = 4096


def choice(part: str, domain: str, answer: str, **changes: str) -> dict[str, str]:
    row = {'_id': part, 'domain': domain, 'sub_domain': part, 'context': f'About {part}.'}
    row |= {f'choice_{letter}': f'{letter} of {part}' for letter in 'ABCD'}
    return {**row, 'question': f'What is {part}? ', 'answer': answer, **changes}


SINGLE, MULTI = 'Single-Document QA', 'Multi-Document QA'
QUESTIONS = [
    choice('Legal', SINGLE, 'B'),
    choice('Legal', MULTI, 'C', context='Two laws.'),
    choice('Legal', SINGLE, 'D', question='And then?'),
]


def results(
    tmp_path: pathlib.Path,
    names: list[str],
    generator: FakeGenerator,
    *,
    window: int = WINDOW,
    metadata: dict[str, Any] | None = None,
) -> dict[str, Any]:
    found = find(names, data=tmp_path, built_in=False, metadata=metadata)
    return evaluate(load(found)['tasks'], adapter(generator, TOKENIZER, window=window))  # type: ignore[arg-type]


@pytest.mark.peers  # lm_eval's task imports transformers
@pytest.mark.parametrize('suffix', ['json', 'parquet'])
def test_babilong_asks_with_two_examples_and_looks_for_the_target(
    tmp_path: pathlib.Path, suffix: str
) -> None:
    pytest.importorskip('transformers')
    (tmp_path / 'qa1').mkdir()
    path = tmp_path / f'qa1/4k.{suffix}'
    if suffix == 'json':
        path.write_text(json.dumps(FACTS))
    else:
        pq.write_table(pa.Table.from_pylist(FACTS), path)
    writes = FakeGenerator(lambda i, prompt: f' In the GARDEN, as {i} says.')
    found = results(tmp_path, ['babilong_qa1'], writes, metadata={'max_seq_lengths': '4k'})
    assert found['results']['babilong_qa1']['acc,none'] == 0.5
    assert (found['contexts'], found['truncated']) == (2, 0)
    prompts = [TOKENIZER.decode(prompt) for prompt in writes.prompts[0]]
    for prompt, row in zip(prompts, FACTS, strict=True):
        assert prompt.startswith('I will give you context with the facts about positions')
        assert prompt.count('The most recent location of') == 3  # the format, two examples
        assert prompt.endswith(f'\n\n{row["input"].strip()}\n{row["question"].strip()}')
    assert [options.new_tokens for options in writes.options] == [16]


def test_longbench_2_scores_letters_of_its_rows(tmp_path: pathlib.Path) -> None:
    write_jsonl(tmp_path / 'data.jsonl', QUESTIONS)
    names = ['longbench2_legal_multi', 'longbench2_legal_single']
    found = results(tmp_path, names, FakeGenerator())
    for name, rows in zip(names, ([QUESTIONS[1]], [QUESTIONS[0], QUESTIONS[2]]), strict=True):
        hits = []
        for row in rows:
            context = (
                'Please read the following text and answer the question below.\n\n<text>\n'
                f'{row["context"]}\n</text>\n\nWhat is the correct answer to this question: '
                f'{row["question"].strip()}\nChoices:\n(A) {row["choice_A"]}\n'
                f'(B) {row["choice_B"]}\n(C) {row["choice_C"]}\n(D) {row["choice_D"]}\n\nAnswer:'
            )
            scores = {letter: direct(context, f' {letter}') for letter in 'ABCD'}
            hits.append(max(scores, key=scores.__getitem__) == row['answer'])
        assert found['results'][name]['acc,none'] == sum(hits) / len(hits)
        assert found['n-samples'][name]['effective'] == len(rows)


@pytest.mark.parametrize('group', ['longbench2_single', 'longbench2_single_tasks'])
def test_a_group_or_a_tag_stands_for_its_tasks(tmp_path: pathlib.Path, group: str) -> None:
    tasks = {
        name: task.rows['sub_domain']
        for name, task in LONGBENCH_2.items()
        if task.rows['domain'] == SINGLE
    }
    rows = [choice(part, SINGLE, 'ABCD'[k % 4]) for k, part in enumerate(tasks.values())]
    write_jsonl(tmp_path / 'data.jsonl', [*rows, choice('Legal', SINGLE, 'A')])
    asked = find([group], data=tmp_path, built_in=False)
    assert asked.files == (tmp_path / 'data.jsonl',)  # the identity of what is measured
    loaded = load(asked)
    assert len(tasks) == 7 and set(loaded['tasks']) == set(tasks)
    found = evaluate(loaded, adapter(FakeGenerator(), TOKENIZER, window=WINDOW))  # type: ignore[arg-type]
    counts = [2 if name == 'longbench2_legal_single' else 1 for name in found['n-samples']]
    assert sum(counts) == 8
    if group == 'longbench2_single':  # a group has a mean over all rows, a tag is shorthand
        hits = [
            found['results'][name]['acc,none'] * samples['effective']
            for name, samples in found['n-samples'].items()
        ]
        assert found['groups'][group]['acc,none'] == pytest.approx(sum(hits) / 8)
        attributes = records(found, list(loaded['tasks'])).attributes
        assert attributes['groups'] == {
            group: {'score': pytest.approx(100 * sum(hits) / 8), 'samples': 8}
        }
        assert attributes['average'] != pytest.approx(attributes['groups'][group]['score'])
    else:
        assert set(found['results']) == set(tasks) and not loaded['groups']


def test_a_task_in_two_groups_is_refused(tmp_path: pathlib.Path) -> None:
    write_jsonl(tmp_path / 'data.jsonl', QUESTIONS)
    with pytest.raises(ValueError, match=r"tasks names 'longbench2_legal_single' twice: in"):
        find(['longbench2_single', 'longbench2_legal_single'], data=tmp_path, built_in=False)


def test_a_task_without_rows_is_said(tmp_path: pathlib.Path) -> None:
    write_jsonl(tmp_path / 'data.jsonl', QUESTIONS)
    with pytest.raises(ValueError, match=r"no rows with domain .*, sub_domain 'Table QA'"):
        load(find(['longbench2_table'], data=tmp_path, built_in=False))
    write_jsonl(tmp_path / 'data.jsonl', [{**QUESTIONS[0], 'answer': 1}])
    with pytest.raises(ValueError, match=r"answer is 1 in the first row; it must be 'A', 'B'"):
        find(['longbench2_legal_single'], data=tmp_path, built_in=False)


def test_a_package_that_a_task_lacks_is_named(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / 'qa1').mkdir()
    write_jsonl(tmp_path / 'qa1/0k.jsonl', FACTS)
    monkeypatch.setitem(sys.modules, 'transformers', None)
    monkeypatch.delitem(sys.modules, 'lm_eval.tasks.babilong.common_utils', raising=False)
    with pytest.raises(ModuleNotFoundError, match=r'babilong_qa1 .* pip install transformers'):
        load(find(['babilong_qa1'], data=tmp_path, built_in=False))
