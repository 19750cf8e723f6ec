"""HELMET's recall group: what the model is asked, and the scores that come of its answers."""

from __future__ import annotations

import json
import pathlib
import re
from typing import Any

import pytest

from nope.evals.answers import Sample
from nope.evals.generation import Options
from nope.evals.helmet import LENGTHS, TASKS, HelmetPlan, run
from nope.evals.helmet.tasks import recall, substring
from nope.evals.samples import SampleLog
from tests.evals.helmet.files import ROWS, needle, pair, write
from tests.evals.writers import BYTES, Writer

BUDGETS = {'ruler_niah_mk_2': 50, 'ruler_niah_mk_3': 100, 'ruler_niah_mv': 50, 'json_kv': 100}


def finds(prompt: str) -> str:
    """The value of the key of a JSON object; the first of the values of a needle's key."""
    if prompt.endswith('Corresponding value:'):
        key = re.findall(r'Key: (\S+)', prompt)[-1]
        return f' {json.loads(prompt.splitlines()[0])[key].upper()}'
    found = re.search(r'is: (\S+)\.', prompt)
    return f' {found[1]}.' if found else ''


def plan(folder: pathlib.Path, lengths: tuple[int, ...] = (8192,), **changes: Any) -> HelmetPlan:
    return HelmetPlan(BYTES, folder, lengths, **changes)


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    write(tmp_path / 'data', 8192, 16384)
    return tmp_path / 'data'


def test_scores_are_means_over_the_rows_of_files(folder: pathlib.Path, log: SampleLog) -> None:
    writer = Writer(finds)
    found = run(writer, plan(folder, (8192, 16384)), log=log)
    assert found.coordinates['task'].tolist() == list(BUDGETS)
    assert found['score'].tolist() == [[100, 100, 50, 100]] * 2
    assert found['average'].tolist() == [87.5] * 2
    assert found['samples'].tolist() == [[ROWS] * 4] * 2
    assert found['truncated'].tolist() == [[0] * 4] * 2
    assert [options for _, options in writer.calls] == [
        Options(new_tokens=budget, stop_ids=(BYTES.eos_id,)) for budget in BUDGETS.values()
    ] * 2


def test_prompts_are_the_published_ones(folder: pathlib.Path) -> None:
    row, texts = pair(0), {}
    for task in TASKS:
        samples, _ = plan(folder).prompts(8192, task)
        texts[task] = {sample.text: sample for sample in samples}
    asked = (
        f'{row["context"]}\n\nExtract the value corresponding to the specified key in the JSON '
        'object below.\n\nKey: d0\nCorresponding value: e0\n\nKey: d1\nCorresponding value: e1\n\n'
        'Key: k0-0\nCorresponding value:'
    )
    assert texts['json_kv'][asked] == Sample(asked, ('v0-0',), len(asked))
    row = needle(1, 'uuid', 1)
    asked = (
        'A special magic uuid is hidden within the following text. Make sure to memorize it. I '
        f'will quiz you about the uuid afterwards.\n{row["context"]}\nWhat is the special magic '
        'uuid for red-hat mentioned in the provided text?\nThe special magic uuid for red-hat '
        'mentioned in the provided text is'
    )
    assert texts['ruler_niah_mk_3'][asked].answers == ('1077',)
    row = needle(2, 'numbers', 2)
    asked = (
        'Some special magic numbers are hidden within the following text. Make sure to memorize '
        f'it. I will quiz you about the numbers afterwards.\n{row["context"]}\nWhat are all the '
        'special magic numbers for red-hat mentioned in the provided text?\nThe special magic '
        'numbers for red-hat mentioned in the provided text are'
    )
    assert texts['ruler_niah_mv'][asked].answers == ('2077', '2177')


def test_a_hundred_rows_are_drawn_as_the_published_code_draws(tmp_path: pathlib.Path) -> None:
    datasets = pytest.importorskip('datasets')
    write(tmp_path, 8192, rows=130)
    samples, _ = plan(tmp_path).prompts(8192, 'ruler_niah_mk_2')
    rows = datasets.Dataset.from_list([{'i': i} for i in range(130)])
    wanted = rows.shuffle(seed=42).select(range(100))['i']
    assert [sample.answers for sample in samples] == [(f'{i}077',) for i in wanted]
    few, _ = plan(tmp_path, limit=2).prompts(8192, 'ruler_niah_mk_2')
    assert few == samples[:2]


@pytest.mark.parametrize('bos', [False, True])
def test_a_context_that_is_too_long_loses_its_end_and_is_counted(
    folder: pathlib.Path, log: SampleLog, bos: bool
) -> None:
    path = folder / TASKS['json_kv'].files[8192]
    context = ''.join(f'ö{i}' for i in range(4000))
    path.write_text(json.dumps({**pair(0), 'context': context}) + '\n')
    writer = Writer(lambda prompt: 'V0 0')
    asked = plan(folder, bos=bos)
    found = run(writer, asked, log=log)
    assert found['truncated'].tolist() == [[0, 0, 0, 1]]
    (sample,), cut = asked.prompts(8192, 'json_kv')
    kept = sample.text.partition('\n\n')[0]
    assert cut == 1 and context.startswith(kept)
    # A character is cut as a whole.
    assert 8192 - 100 - bos - sample.tokens in (0, 1)
    assert found['tokens'][0, 3] == sample.tokens + 100


@pytest.mark.parametrize(
    ('prediction', 'answers', 'score'),
    [
        (' 4-A b', ('4a-b',), 0.0),
        (' say 4A-B.', ('4a-b',), 1.0),
        ('4ab', ('4a-b', 'none'), 1.0),
        ('', ('value',), 1.0),  # the line it stands in is read too
        (' the cat', ('a the cat',), 1.0),
        (' one\nCorresponding value: two', ('two',), 1.0),
    ],
)
def test_a_value_counts_without_case_punctuation_and_articles(
    prediction: str, answers: tuple[str, ...], score: float
) -> None:
    assert substring(prediction, Sample('Key: k\nCorresponding value:', answers, 0)) == score


def test_recall_is_the_share_of_the_values() -> None:
    sample = Sample('?\nnumbers for x are', ('Ab', '7', 'are 1'), 0)
    assert recall(' 1, AB', sample) == pytest.approx(2 / 3)


def changed(**change: Any) -> str:
    return '\n'.join(json.dumps(row) for row in (pair(0), {**pair(1), **change}))


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        (changed(demos=[['a']]), 'line 2: demos is .*must be a list of pairs of texts'),
        (changed(question=3), "line 2: question is '3'; it must be a text"),
        (changed(answer=[]), r"line 2: the answer is '\[\]'; it must be a text, or a list"),
        ('{', 'not a line of JSON'),
        ('[]', 'a JSON list; it must be'),
        ('', 'there is no sample'),
        ('{"context": ""}', 'it has context; needed are context, question, demos, an'),
    ],
)
def test_a_file_of_something_else_is_named(
    folder: pathlib.Path, content: str, message: str
) -> None:
    (folder / TASKS['json_kv'].files[8192]).write_text(content)
    with pytest.raises(ValueError, match=message):
        plan(folder).check()


def test_missing_files_and_other_lengths_are_said_at_once(folder: pathlib.Path) -> None:
    assert LENGTHS == (8192, 16384, 32768, 65536, 131072)
    with pytest.raises(FileNotFoundError, match=r'test_k440_dep6.jsonl missing; it must be the'):
        plan(folder, (8192, 32768))
    with pytest.raises(ValueError, match=r'lengths are \(4096,\); HELMET has 8192, 16384'):
        plan(folder, (4096,))
