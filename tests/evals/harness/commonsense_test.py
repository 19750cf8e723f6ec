"""Table 1's tasks from local files: what the model is asked, and the scores that come of it."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

from nope.evals.harness import TASKS, adapter, check, run
from tests.evals.harness.documents import write_all, write_jsonl
from tests.evals.harness.fakes import BEGIN, TOKENIZER, FakeGenerator, direct


class Question(NamedTuple):
    """Contexts and continuations by choice, the characters that acc_norm divides by, the answer."""

    pairs: list[tuple[str, str]]
    characters: list[int]
    answer: int


def chosen(context: str, choices: list[str], answer: int) -> Question:
    return Question([(context, f' {c}') for c in choices], [len(c) for c in choices], answer)


QUESTIONS = {
    'arc_challenge': [
        chosen('Question: Which is hot?\nAnswer:', ['ice', 'the sun', 'snow'], 1),
        chosen('Question: Which flies?\nAnswer:', ['a bird', 'a stone'], 0),
    ],
    'arc_easy': [
        chosen('Question: Which is wet?\nAnswer:', ['water', 'sand', 'bread'], 0),
        chosen('Question: Which is big?\nAnswer:', ['an ant', 'a hill'], 1),
    ],
    'boolq': [
        chosen('Cats are animals.\nQuestion: are cats animals?\nAnswer:', ['no', 'yes'], 1),
        chosen('Ice is cold.\nQuestion: is ice hot?\nAnswer:', ['no', 'yes'], 0),
    ],
    'hellaswag': [
        chosen(
            'Swimming: A man. stands. The man',
            ['dives in.', 'eats soup.', 'sings.', 'flies away.'],
            0,
        ),
        chosen('Baking: A cake.', ['is red.', 'runs.', 'is baked.', 'sleeps.'], 2),
    ],
    'openbookqa': [
        chosen('The sun is', ['cold', 'a star'], 1),
        chosen('Fish live in', ['water', 'fire'], 0),
    ],
    'piqa': [
        chosen('Question: Open a door\nAnswer:', ['turn the handle', 'sing'], 0),
        chosen('Question: Boil water\nAnswer:', ['wait', 'heat it'], 1),
    ],
    'winogrande': [
        Question(
            [('The ball', ' is red and round.'), ('The river', ' is red and round.')], [1, 1], 0
        ),
        Question(
            [('Ann sees that a tree', ' swims.'), ('Ann sees that Bob', ' swims.')], [1, 1], 1
        ),
    ],
}


def accuracy(questions: list[Question], norm: bool) -> float:
    hits = []
    for question in questions:
        scores = np.array([direct(*pair) for pair in question.pairs])
        best = (scores / question.characters if norm else scores).argmax()
        hits.append(best == question.answer)
    return 100 * float(np.mean(hits))


@pytest.fixture
def data(tmp_path: pathlib.Path) -> pathlib.Path:
    folder = tmp_path / 'data'
    folder.mkdir()
    write_all(folder)
    return folder


def loaded(tasks: Sequence[str], data: pathlib.Path) -> dict[str, Any]:
    return check(tasks, TOKENIZER, data=data)


def adapted(generator: FakeGenerator, **settings: Any) -> Any:
    return adapter(generator, TOKENIZER, **settings)  # type: ignore[arg-type]


def test_the_table_is_that_of_a_direct_computation(data: pathlib.Path) -> None:
    generator = FakeGenerator()
    found = run(loaded(TASKS, data), adapted(generator, window=256))
    pairs = [(bytes(a).decode(), bytes(b).decode()) for a, b in generator.asked[0]]
    assert pairs == [pair for name in TASKS for q in QUESTIONS[name] for pair in q.pairs]

    norm = [name not in ('boolq', 'winogrande') for name in TASKS]
    score = [accuracy(QUESTIONS[name], n) for name, n in zip(TASKS, norm, strict=True)]
    assert found.coordinates['task'].tolist() == list(TASKS)
    np.testing.assert_allclose(found['score'], score)
    np.testing.assert_allclose(found['acc'], [accuracy(QUESTIONS[n], False) for n in TASKS])
    assert found['samples'].tolist() == [2] * 7
    assert found.attributes['metrics'] == ['acc_norm' if n else 'acc' for n in norm]
    assert found.attributes['average'] == pytest.approx(np.mean(score))
    assert {found.measures[name].unit for name in ('score', 'acc')} == {'percent'}
    facts = {name: found.attributes[name] for name in ('evaluation', 'bos', 'window', 'limit')}
    assert facts == {'evaluation': 'harness', 'bos': False, 'window': 256, 'limit': None}

    assert 'beyond' not in found.attributes
    small = run(loaded(['piqa'], data), adapted(generator, window=4, beyond=True))
    np.testing.assert_allclose(small['acc'], [accuracy(QUESTIONS['piqa'], False)])
    assert (small.attributes['window'], small.attributes['beyond']) == (4, True)


def test_a_limit_takes_the_first_documents(data: pathlib.Path) -> None:
    names, first = ('winogrande', 'boolq'), FakeGenerator()
    model = adapted(first, window=64, bos=True)
    found = run(loaded(names, data), model, limit=1)
    assert found.coordinates['task'].tolist() == list(names)
    assert found['samples'].tolist() == [1, 1] and found.attributes['bos'] is True
    assert [ids[0] for ids, _ in first.asked[0]] == [BEGIN] * 4
    with pytest.raises(ValueError, match='limit is 0; it must be at least 1'):
        run(loaded(names, data), model, limit=0)


def test_a_task_without_accuracy_is_refused(tmp_path: pathlib.Path) -> None:
    write_jsonl(tmp_path / 'rows.jsonl', [{'text': 'a b'}])
    (tmp_path / 'pages.yaml').write_text(
        'task: pages\ndataset_path: json\noutput_type: loglikelihood_rolling\n'
        f'dataset_kwargs: {{data_files: {{test: {tmp_path / "rows.jsonl"}}}}}\n'
        'test_split: test\ndoc_to_text: ""\ndoc_to_target: "{{text}}"\n'
        'metric_list: [{metric: byte_perplexity}]\n'
    )
    with pytest.raises(ValueError, match='task pages measures byte_perplexity; a score is one of'):
        check(['pages'], TOKENIZER, include=tmp_path)
