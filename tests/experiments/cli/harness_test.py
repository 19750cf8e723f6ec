"""`nope harness` on a small model that is a run folder or a Hugging Face directory."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest

from experiments.cli import evaluate
from experiments.cli import harness as tool
from nope.interop import Described, save
from nope.interop.run_folder import write_run
from tests import tiny
from tests.evals.harness.documents import DOCUMENTS, write_jsonl
from tests.evals.harness.long_test import QUESTIONS
from tests.model import programs

CONFIG = tiny.model(attention=None, vocab_size=258)
WINDOW = 20  # shorter than some questions with their answers
HEAD = """
task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {path}}}}}
test_split: test
doc_to_text: "{{{{goal}}}}"
"""
TASKS = {
    'choices': 'output_type: multiple_choice\ndoc_to_choice: "{{[sol1, sol2]}}"\n'
    'doc_to_target: label\nmetric_list: [{metric: acc}, {metric: acc_norm}]\n',
    'answers': 'output_type: loglikelihood\ndoc_to_target: " {{sol1}}"\n'
    'metric_list: [{metric: perplexity}, {metric: acc}]\n',
}


@pytest.fixture(scope='module')
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp('runs') / 'run'
    described = Described(CONFIG, WINDOW)
    write_run(folder, described, tiny.variables(CONFIG), {'path': '/nowhere'})
    return folder


@pytest.fixture
def include(tmp_path: pathlib.Path) -> pathlib.Path:
    write_jsonl(tmp_path / 'rows.jsonl', DOCUMENTS['piqa'])
    for name, text in TASKS.items():
        head = HEAD.format(name=name, path=tmp_path / 'rows.jsonl')
        (tmp_path / f'{name}.yaml').write_text(head + text)
    return tmp_path


def log_probability(context: str, continuation: str) -> float:
    """Of the continuation, by one plain forward pass over what the window holds."""
    ids = [*context.encode(), *continuation.encode()][-(WINDOW + 1) :]
    first = len(ids) - len(continuation.encode())
    padded = np.array([ids + [0] * (WINDOW + 1 - len(ids))], np.int32)  # one program for all
    output = programs.run(CONFIG, tiny.variables(CONFIG), padded[:, :-1], entropy=False)
    logits_TV = np.asarray(output.hidden[0] @ output.head, np.float64)
    log_probs_TV = logits_TV - np.log(np.exp(logits_TV).sum(-1, keepdims=True))
    return float(sum(log_probs_TV[t - 1, ids[t]] for t in range(first, len(ids))))


def test_a_model_is_measured_as_by_plain_forward_passes(
    run_folder: pathlib.Path, include: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = include / 'out.json'
    chosen = [f'--tasks={",".join(TASKS)}', f'--include={include}', '--tokenizer=bytes']
    tool.main([f'--model={run_folder}', *chosen, f'--output={output}'])
    found = json.loads(output.read_text())

    rows = DOCUMENTS['piqa']
    scores = [[log_probability(r['goal'], f' {r[c]}') for c in ('sol1', 'sol2')] for r in rows]
    norms = [
        [score / len(row[c]) for score, c in zip(pair, ('sol1', 'sol2'), strict=True)]
        for pair, row in zip(scores, rows, strict=True)
    ]
    for metric, values in (('acc', scores), ('acc_norm', norms)):
        hits = [np.argmax(pair) == row['label'] for pair, row in zip(values, rows, strict=True)]
        assert found['results']['choices'][f'{metric},none'] == np.mean(hits)
    wanted = np.exp(-np.mean([first for first, _ in scores]))
    assert found['results']['answers']['perplexity,none'] == pytest.approx(wanted, rel=1e-5)

    score = {name: 100 * found['results'][name]['acc,none'] for name in TASKS}
    score['choices'] = 100 * found['results']['choices']['acc_norm,none']
    assert found['score'] == score and found['average'] == np.mean([*score.values()])
    assert (found['window'], found['bos'], found['limit']) == (WINDOW, False, None)
    asked = [(r['goal'], f' {r[c]}') for r in rows for c in ('sol1', 'sol2', 'sol1')]
    long = sum(len((context + answer).encode()) > WINDOW + 1 for context, answer in asked)
    assert (found['contexts'], found['truncated']) == (len(asked), long) and long > 0
    printed = capsys.readouterr().out
    assert 'acc_norm' in printed and 'average of 2 tasks' in printed and str(output) in printed


def test_an_evaluation_finds_the_same_as_the_command(
    run_folder: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    write_jsonl(tmp_path / 'data.jsonl', QUESTIONS)
    names, window = ['longbench2_legal_multi', 'longbench2_legal_single'], 256
    model = [f'--model={run_folder}', '--tokenizer=bytes', f'--data={tmp_path}']
    asked = [f'--window={window}', f'--tasks={",".join(names)}', f'--output={tmp_path}/out.json']
    tool.main([*model, *asked])
    one = json.loads((tmp_path / 'out.json').read_text())
    asked = ['--eval=harness', f'--harness-tasks={",".join(names)}', f'--lengths={window}']
    evaluate.main([*model, *asked, f'--out={tmp_path}/out'])
    rows = [json.loads(line) for line in (tmp_path / 'out/results.jsonl').read_text().splitlines()]
    wanted = {**one['score'], 'mean of 2 tasks': one['average']}
    assert {row['what']: row['value'] for row in rows} == wanted
    assert [(row['samples'], row['length']) for row in rows] == [
        (1, window),
        (2, window),
        (3, window),
    ]
    with pytest.raises(SystemExit, match=r'--eval=harness: --metadata: \[\]; accepted: a JSON'):
        evaluate.main([*model, *asked, f'--out={tmp_path}/out', '--metadata=[]'])
    with pytest.raises(SystemExit, match='--data is empty: --data=FOLDER with the data of --harn'):
        evaluate.main([*model[:2], *asked, f'--out={tmp_path}/out'])


def test_tasks_are_told_the_metadata_and_the_tokenizer_of_the_model(
    run_folder: pathlib.Path, include: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = include / 'hf'
    described = Described(CONFIG, WINDOW, 'float32', bos=257, eos=256)
    save(directory, tiny.variables(CONFIG), described, tokenizer='bytes')
    told: list[dict] = []

    def report(results: object, tasks: dict, *rest: object) -> None:
        told.extend(task.config.metadata for task in tasks.values())

    monkeypatch.setattr(tool, '_report', report)
    chosen = ['--tasks=choices', f'--include={include}', '--limit=1']
    tool.main([f'--model=hf:{directory}', *chosen, '--metadata={"max_seq_lengths": [64]}'])
    assert told[0]['max_seq_lengths'] == [64]
    assert told[0]['tokenizer'] == str(directory)
    tool.main([f'--model={run_folder}', *chosen, '--tokenizer=bytes'])
    assert 'tokenizer' not in told[1] and 'max_seq_lengths' not in told[1]


@pytest.mark.parametrize(
    ('arguments', 'said'),
    [
        (['--tasks=piqa', '--data=.', '--tokenizer=bytes'], 'lacks the data of 1 tasks'),
        (['--tasks=choices', '--metadata={'], '--metadata={ is no JSON'),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    run_folder: pathlib.Path,
    include: pathlib.Path,
    arguments: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(include)
    with pytest.raises(SystemExit) as error:
        tool.main([f'--model={run_folder}', f'--include={include}', *arguments])
    assert said in str(error.value)
