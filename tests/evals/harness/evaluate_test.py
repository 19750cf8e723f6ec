"""Tasks of every kind of request, from files to metrics, through the harness's own entry point."""

from __future__ import annotations

import math
import pathlib
from typing import Any

import pytest
from lm_eval import evaluator
from lm_eval.tasks import TaskManager

from nope.data.chat import Chat
from nope.evals.harness import adapter, evaluate, find, load
from tests.evals.harness.documents import write_jsonl
from tests.evals.harness.fakes import TOKENIZER, FakeGenerator, direct

YAML = """
task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {folder}/{name}.jsonl}}}}
test_split: test
"""
COLOURS = [
    {'question': 'Grass is', 'colours': ['green', 'blue'], 'right': 0},
    {'question': 'Blood is', 'colours': ['black', 'red', 'white'], 'right': 1},
    {'question': 'Snow is', 'colours': ['pink', 'white'], 'right': 1},
]
PAGES = [{'text': 'one two three'}, {'text': 'Die Straße'}]
REPLIES = [{'ask': 'Say yes', 'reply': 'Say yes!'}, {'ask': 'Say no', 'reply': 'yes'}]
TASKS = {
    'colours': (
        COLOURS,
        'output_type: multiple_choice\ndoc_to_text: "{{question}}"\ndoc_to_choice: colours\n'
        'doc_to_target: right\nmetric_list: [{metric: acc}, {metric: acc_norm}]\n',
    ),
    'pages': (
        PAGES,
        'output_type: loglikelihood_rolling\ndoc_to_text: ""\ndoc_to_target: "{{text}}"\n'
        'metric_list:\n  - metric: word_perplexity\n  - metric: byte_perplexity\n'
        '  - metric: bits_per_byte\n',
    ),
    'replies': (
        REPLIES,
        'output_type: generate_until\ndoc_to_text: "{{ask}}"\ndoc_to_target: "{{reply}}"\n'
        'generation_kwargs: {until: ["\\n"], max_gen_toks: 16}\n'
        'metric_list: [{metric: exact_match}]\n',
    ),
}
WINDOW = 24


@pytest.fixture
def tasks(tmp_path: pathlib.Path) -> dict[str, Any]:
    for name, (rows, text) in TASKS.items():
        write_jsonl(tmp_path / f'{name}.jsonl', rows)
        (tmp_path / f'{name}.yaml').write_text(YAML.format(name=name, folder=tmp_path) + text)
    return load(find(list(TASKS), include=tmp_path, built_in=False))


def generator() -> FakeGenerator:
    return FakeGenerator(lambda i, prompt: f'{prompt}!\nand more')


def adapted(model: FakeGenerator, **settings: Any) -> Any:
    return adapter(model, TOKENIZER, **{'window': WINDOW, **settings})  # type: ignore[arg-type]


def test_every_kind_of_task_has_the_metrics_of_a_direct_computation(tasks: dict[str, Any]) -> None:
    found = evaluate(tasks, adapted(generator()))['results']

    scores = [[direct(r['question'], f' {c}') for c in r['colours']] for r in COLOURS]
    hits = [max(range(len(s)), key=s.__getitem__) == r['right'] for s, r in _zip(scores, COLOURS)]
    norms = [
        [score / len(colour) for score, colour in _zip(s, r['colours'])]
        for s, r in _zip(scores, COLOURS)
    ]
    norm_hits = [
        max(range(len(s)), key=s.__getitem__) == r['right'] for s, r in _zip(norms, COLOURS)
    ]
    assert found['colours']['acc,none'] == pytest.approx(sum(hits) / 3)
    assert found['colours']['acc_norm,none'] == pytest.approx(sum(norm_hits) / 3)

    total = sum(direct('', row['text']) for row in PAGES)
    size = sum(len(row['text'].encode()) for row in PAGES)
    assert found['pages']['word_perplexity,none'] == pytest.approx(math.exp(-total / 5))
    assert found['pages']['byte_perplexity,none'] == pytest.approx(math.exp(-total / size))
    assert found['pages']['bits_per_byte,none'] == pytest.approx(-total / size / math.log(2))

    assert found['replies']['exact_match,none'] == 0.5


def _zip(*lists: Any) -> Any:
    return zip(*lists, strict=True)


def test_the_harness_itself_gives_the_same(
    tasks: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    # It describes the machine by starting other programs.
    monkeypatch.setattr(evaluator, 'add_env_info', lambda storage: None)
    theirs = evaluator.simple_evaluate(
        model=adapted(generator()),
        tasks=list(tasks['tasks'].values()),
        bootstrap_iters=1000,
        torch_random_seed=None,
        task_manager=TaskManager(include_defaults=False),
        log_samples=False,
    )
    ours = evaluate(tasks, adapted(generator()))
    assert theirs['results'] == ours['results'] and len(ours['results']) == 3
    assert theirs['n-samples'] == ours['n-samples']


def test_a_limit_and_a_seed_reach_the_model(tasks: dict[str, Any]) -> None:
    model = generator()
    found = evaluate(tasks, adapted(model, seed=7), limit=1)
    assert {name: n['effective'] for name, n in found['n-samples'].items()} == dict.fromkeys(
        TASKS, 1
    )
    assert [options.seed for options in model.options] == [7]


TURNS = "{% for m in messages %}[{{ m['role'] }}: {{ m['content'] }}]{% endfor %}"
REFUSES = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}"


@pytest.mark.parametrize(('template', 'first'), [
    (TURNS, '[system: Answer.]'), (REFUSES + TURNS, ''),
])  # fmt: skip
def test_examples_of_a_chat_are_turns_as_those_of_the_harness(
    tmp_path: pathlib.Path, template: str, first: str
) -> None:
    """As by `lm_eval run --apply_chat_template`, also where a template takes no system's turn."""
    rows, text = TASKS['replies']
    write_jsonl(tmp_path / 'asked.jsonl', rows)
    examples = 'fewshot_split: test\nfewshot_config: {sampler: first_n}\nnum_fewshot: 1\n'
    examples += 'description: "Answer."\n'
    (tmp_path / 'asked.yaml').write_text(
        YAML.format(name='asked', folder=tmp_path) + text + examples
    )
    tasks = load(find(['asked'], include=tmp_path, built_in=False))
    model, chat = generator(), Chat('asked', template, {})
    evaluate(tasks, adapted(model, window=256, chat=chat))
    example = '[user: Say yes][assistant: Say yes!]'
    asked = [TOKENIZER.decode(ids) for ids in model.prompts[0]]
    assert asked[-1] == f'{first}{example}[user: Say no]'
