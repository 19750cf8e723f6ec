"""`nope generate` on a small model of letters, as a run folder and a Hugging Face directory."""

from __future__ import annotations

import dataclasses
import functools
import json
import pathlib
import re
import shutil
import string
from typing import Any

import jax
import numpy as np
import pytest

from experiments.bench import Bench
from experiments.build import build
from experiments.cli import generate as tool
from experiments.cli import models
from experiments.execute import execute
from experiments.plan import make_plan
from experiments.workspace import Workspace
from nope.data import load_tokenizer
from nope.data.tasks import words
from nope.evals.generation import Generator, Options
from nope.interop import Described, Export, save
from nope.interop.run_folder import name_base_model, read_run, write_run
from nope.positions import Learned
from nope.runtime.files import read_json
from nope.sharding import MeshConfig, make_mesh
from nope.variables import Variables, lam_of, with_lam
from tests import tiny
from tests.experiments.task_configs import spec_of
from tests.experiments.task_validation_test import NEVER, small, validated
from tests.interop import run_folder_test

CONFIG = tiny.model(attention=None, vocab_size=258)
EOS, BOS = 256, 257
NEW = 18  # more than the tokens between two looks for a stop text
PROMPTS = ('Once upon', 'A')


@pytest.fixture(scope='module')
def variables() -> Variables:
    """Of a model that says letters alone, and so never ends."""
    letters = np.frombuffer(string.ascii_lowercase.encode(), np.uint8)
    params = tiny.variables(CONFIG)['params']
    said_V = np.isin(np.arange(CONFIG.vocab_size), letters)
    head_DV = jax.device_put(params['head'] * said_V, params['head'].sharding)
    return {**tiny.variables(CONFIG), 'params': {**params, 'head': head_DV}}


@pytest.fixture(scope='module')
def directory(variables: Variables, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp('models') / 'hf'
    described = Described(CONFIG, 16, 'float32', bos=BOS, eos=EOS)
    save(folder, variables, described, export=Export(), tokenizer='bytes', origin={})
    return folder


@pytest.fixture(scope='module')
def run_folder(
    variables: Variables, directory: pathlib.Path, tmp_path_factory: pytest.TempPathFactory
) -> pathlib.Path:
    folder = tmp_path_factory.mktemp('runs') / 'run'
    write_run(folder, Described(CONFIG, 16), variables, {'path': str(directory)})
    return folder


@pytest.fixture(scope='module')
def generator(run_folder: pathlib.Path) -> Generator:
    mesh = make_mesh(MeshConfig(fsdp=jax.device_count()))
    return Generator(CONFIG, read_run(run_folder, mesh).variables, mesh, batch_tokens=512)


def made(model: object, path: pathlib.Path, *options: object) -> list[dict[str, Any]]:
    """What the tool writes for `PROMPTS`."""
    prompts = [f'--prompt={prompt}' for prompt in PROMPTS]
    same = [f'--new-tokens={NEW}', '--batch-tokens=512', f'--output={path}']
    tool.main([f'--model={model}', *prompts, *same, *map(str, options)])
    return [json.loads(line) for line in path.read_text().splitlines()]


def wanted(generator: Generator, *begin: int) -> list[list[int]]:
    """The new ids of `PROMPTS` behind those of `begin`."""
    ids = [np.array([*begin, *prompt.encode()], np.int32) for prompt in PROMPTS]
    found = generator.generate(ids, Options(NEW, stop_ids=(EOS,)))
    return [row.tolist() for row in found]


def test_prompts_are_continued_greedily(
    directory: pathlib.Path,
    run_folder: pathlib.Path,
    generator: Generator,
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = made(f'hf:{directory}', tmp_path / 'a.jsonl')
    assert [row['tokens'] for row in rows] == wanted(generator)
    assert [row['prompt'] for row in rows] == [*PROMPTS]
    assert [row['continuation'].encode() for row in rows] == [bytes(row['tokens']) for row in rows]
    assert {len(row['continuation']) for row in rows} == {NEW}
    out, err = capsys.readouterr()
    assert out == ''.join(
        f'--- --prompt {i}\n{row["prompt"]}{row["continuation"]}\n' for i, row in enumerate(rows, 1)
    )
    line = r'36 new tokens for 2 prompts in [\d.]+ s: [\d.,]+ tokens per second, after [\d.]+ s to '
    assert re.search(line + 'compile\n$', err)
    assert made(run_folder, tmp_path / 'b.jsonl') == rows  # with the tokenizer of its origin


def test_special_tokens_that_a_prompt_spells_are_read_where_asked_for(
    directory: pathlib.Path, generator: Generator, capsys: pytest.CaptureFixture[str]
) -> None:
    (ids,) = generator.generate([np.array([BOS, 65], np.int32)], Options(NEW, stop_ids=(EOS,)))
    same = [f'--model=hf:{directory}', '--prompt=<s>A', f'--new-tokens={NEW}', '--batch-tokens=512']
    tool.main([*same, '--special'])
    out, err = capsys.readouterr()
    assert out == f'<s>A{bytes(ids.tolist()).decode()}\n'
    assert 'spells' not in err
    tool.main(same)
    assert '--prompt 1 spells a special token' in capsys.readouterr().err


def test_a_search_is_read_with_the_weights_of_its_base_model(
    run_folder: pathlib.Path, variables: Variables, tmp_path: pathlib.Path
) -> None:
    searched = with_lam(variables, jax.numpy.full_like(lam_of(variables), 4.0))
    init = read_json(run_folder / 'spec.json')
    run_folder_test.write_search(tmp_path / 'search', run_folder, init, searched, CONFIG)
    rows = made(tmp_path / 'search', tmp_path / 'a.jsonl', '--tokenizer=bytes')
    mesh = make_mesh(MeshConfig(fsdp=jax.device_count()))
    began = read_run(run_folder, mesh).variables
    same = with_lam(began, jax.numpy.full_like(lam_of(began), 4.0))
    generator = Generator(CONFIG, same, mesh, batch_tokens=512)
    assert [row['tokens'] for row in rows] == wanted(generator)


def test_a_begin_mark_stands_in_front_where_it_is_asked_for(
    directory: pathlib.Path, generator: Generator, tmp_path: pathlib.Path
) -> None:
    rows = made(f'hf:{directory}', tmp_path / 'a.jsonl', '--bos')
    assert [row['tokens'] for row in rows] == wanted(generator, BOS)
    assert [row['tokens'] for row in rows] != wanted(generator)


def test_a_stop_text_ends_its_row_before_it(
    directory: pathlib.Path, generator: Generator, tmp_path: pathlib.Path
) -> None:
    whole = [bytes(row).decode() for row in wanted(generator)]
    stop = whole[0][4:7]
    rows = made(f'hf:{directory}', tmp_path / 'a.jsonl', f'--stop={stop}', '--stop=Z')
    assert [row['continuation'] for row in rows] == [text.split(stop)[0] for text in whole]
    assert [bytes(row['tokens']).decode() for row in rows] == [row['continuation'] for row in rows]
    assert len(rows[0]['tokens']) <= 4


def test_a_stop_that_is_a_special_token_is_its_id(
    directory: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Options] = []

    def generate(self: Generator, prompts: list, options: Options, ended: Any) -> list:
        asked.append(options)
        assert ended is None  # no text is looked for
        return [np.zeros(0, np.int32) for _ in prompts]

    monkeypatch.setattr(Generator, 'generate', generate)
    for beams in (1, 2):  # of beams too
        made(f'hf:{directory}', tmp_path / f'{beams}.jsonl', '--stop=<s>', f'--beams={beams}')
        assert asked.pop().stop_ids == (EOS, BOS)


def test_a_chat_asks_in_turns(
    directory: pathlib.Path,
    generator: Generator,
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    folder = tmp_path / 'chats'
    shutil.copytree(directory, folder)
    asked = [f'--model=hf:{folder}', '--chat', '--prompt=A', f'--new-tokens={NEW}']
    with pytest.raises(SystemExit, match='has no chat template'):
        tool.main(asked)
    template = '{{ bos_token }}{% for m in messages %}[{{ m.content }}]{% endfor %}:'
    (folder / 'chat_template.jinja').write_text(template)
    prompt = np.array([BOS, *b'[A]:'], np.int32)
    (ids,) = generator.generate([prompt], Options(NEW, stop_ids=(EOS,)))
    capsys.readouterr()
    (folder / 'generation_config.json').write_text('{"repetition_penalty": 1.05}')
    tool.main([*asked, '--batch-tokens=512'])
    assert capsys.readouterr().out == f'A\n{bytes(ids.tolist()).decode()}\n'
    assert 'repetition_penalty 1.05, which stock applies' in caplog.text
    with pytest.raises(SystemExit, match=r'--chat: the template says how .*; leave out --bos'):
        tool.main([*asked, '--bos'])
    with pytest.raises(SystemExit, match="--chat: the tokenizer 'bytes' has no chat template"):
        tool.main([*asked, '--tokenizer=bytes'])


@pytest.mark.parametrize(
    ('arguments', 'expected'),
    [
        ([], Options(64)),
        (
            ['--beams=2', '--length-penalty=0.5', '--early-stopping=never', '--new-tokens=5'],
            Options(5, beams=2, length_penalty=0.5, early_stopping='never'),
        ),
        (['--beams=3', '--early-stopping=true'], Options(64, beams=3, early_stopping=True)),
        (
            ['--temperature=0.9', '--top-k=8', '--top-p=0.8', '--seed=3', '--stop=b'],
            Options(64, temperature=0.9, top_k=8, top_p=0.8, seed=3),
        ),
    ],
)
def test_what_is_asked_for_reaches_the_generator(
    directory: pathlib.Path,
    arguments: list[str],
    expected: Options,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked: list[Any] = []

    class Fake:
        def __init__(self, config: object, variables: object, mesh: object, **sizes: int) -> None:
            asked.append((config, sizes))

        def generate(self, prompts: list[np.ndarray], options: Options, ended: Any) -> list:
            ids = np.array([*b'abc'], np.int32)
            asked.extend([[bytes(row.tolist()) for row in prompts], options])
            asked.append(ended and [ended(0, ids), ended(0, ids[:1])])
            return [ids]

    monkeypatch.setattr(tool, 'Generator', Fake)
    tool.main([f'--model=hf:{directory}', '--prompt=x y', '--batch-tokens=7', *arguments])
    stops = '--stop=b' in arguments
    options = dataclasses.replace(expected, stop_ids=(EOS,))
    (model, sizes), prompts, *rest = asked
    assert model.vocab_size == 258 and (sizes, prompts) == ({'batch_tokens': 7}, [b'x y'])
    assert rest == [options, [True, False] if stops else None]
    assert capsys.readouterr().out == ('x ya\n' if stops else 'x yabc\n')


def test_an_output_that_cannot_be_written_is_refused_before_the_model_is_read(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, 'open_model', None)
    (tmp_path / 'file').write_text('')
    said = rf'--output={tmp_path}/file/made\.jsonl cannot be written: '
    with pytest.raises(SystemExit, match=said):
        tool.main(['--model=x', '--prompt=a', f'--output={tmp_path}/file/made.jsonl'])


def test_an_interrupt_ends_in_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(models, 'open_model', interrupted)
    with pytest.raises(SystemExit) as ended:
        tool.main(['--model=x', '--prompt=a'])
    assert (ended.value.code, capsys.readouterr().err.strip()) == (130, 'stopped')


def test_a_hugging_face_directory_by_its_path_alone_is_told_apart(
    directory: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool, 'Generator', None)
    with pytest.raises(SystemExit, match=rf'say so: --model=hf:{directory}$'):
        tool.main([f'--model={directory}', '--prompt=a'])


@pytest.mark.parametrize(
    ('arguments', 'said'),
    [
        (['--prompt='], '--prompt 1: the prompt is empty'),
        (['--prompt=a', '--prompt=\udc80'], '--prompt 2: the prompt is no text'),
        (['--prompts=nowhere.txt'], '--prompts=nowhere.txt: there is no such file'),
        (['--prompt=a', '--new-tokens=0'], 'new_tokens is 0'),
        (['--prompt=a', '--stop=x', '--beams=2'], "--stop='x' needs --beams=1, not 2"),
        (['--prompt=a', '--stop='], "--stop is ''"),
        (['--prompt=a', '--top-k=4'], 'need a --temperature'),
        (['--prompt=a', '--length-penalty=2'], '2 --beams or more'),
        (['--prompt=a', '--beams=2', '--temperature=1'], 'beams are not sampled'),
        (['--prompt=a', '--seed=-1'], '--seed=-1; accepted are 0 to'),
        (['--prompt=a', '--output=.'], '--output=. is there already'),
        (['--prompt=a', '--step=1'], '--step is for a run'),
        (
            ['--prompt=a', '--tokenizer=nowhere.json'],
            "--tokenizer='nowhere.json': there is no such file",
        ),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    directory: pathlib.Path,
    arguments: list[str],
    said: str,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tool, 'Generator', None)  # nothing is computed
    with pytest.raises(SystemExit) as error:
        tool.main([f'--model=hf:{directory}', *arguments])
    assert said in str(error.value) and '\n' not in str(error.value)


def test_prompts_end_where_the_positions_do(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny.model(vocab_size=258, position=Learned(20))
    run = tmp_path / 'run'
    write_run(run, Described(model, 16), tiny.variables(model), {'path': '/nowhere'})
    (tmp_path / 'prompts.txt').write_text('two\n\nthree\n')
    monkeypatch.setattr(tool, 'Generator', None)
    asked = [f'--model={run}', f'--prompts={tmp_path / "prompts.txt"}', '--new-tokens=16']
    with pytest.raises(SystemExit, match=r'txt, line 3 has 5 tokens; .* they are 21, .* at 20'):
        tool.main([*asked, '--tokenizer=bytes'])
    with pytest.raises(SystemExit, match='the model says no tokenizer; name one'):
        tool.main(asked)
    with pytest.raises(SystemExit, match='--nope is for hf:DIR'):
        tool.main([*asked, '--nope'])


def test_a_model_of_a_task_is_asked_in_the_words_of_the_task_alone(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture
) -> None:
    trained = build(small(validated(**NEVER)))
    run = spec_of(trained).run
    bench = Bench(Workspace(tmp_path), trained.compute, trained.batch_tokens)
    execute(bench, make_plan(bench.workspace, [run]).missing)
    folder = bench.workspace.folder(run)
    asked = [f'--model={folder}', '--prompt=Copy: 0 1 [SEP]', '--new-tokens=2']
    tool.main(asked)
    assert capsys.readouterr().out.startswith('Copy: 0 1 [SEP]')
    assert not spec_of(trained).task_data.load_tokenizer().prefix, 'as in training'
    tool.main([*asked, f'--tokenizer={folder / words.FILE}'])
    with pytest.raises(SystemExit, match=r'is another one than|tokens; the model has'):
        tool.main([*asked, '--tokenizer=bytes'])
    (folder / words.FILE).write_text('{}')
    with pytest.raises(SystemExit, match=r'words\.json holds no list of words'):
        tool.main(asked)
    (folder / words.FILE).unlink()
    with pytest.raises(SystemExit, match=r'no words\.json with the words of its task, cmc'):
        tool.main(asked)


def test_a_tokenizer_that_the_model_was_not_trained_with_is_a_warning(
    capsys: pytest.CaptureFixture,
) -> None:
    """That of a text may stand in another file; the words of a task may not."""
    described = Described(tiny.model(vocab_size=258), 16)
    model = models.Model(described, dict, str, 'bytes', trained_by='another')
    assert models.tokenizer_of(model).vocab_size == 258
    warned = 'warning: --tokenizer=bytes is another one than the model was trained with'
    assert warned in capsys.readouterr().err
    with pytest.raises(ValueError, match='on the task cmc: without the flag'):
        models.tokenizer_of(model._replace(task='cmc'), 'bytes')


def test_only_the_time_of_compilation_counts_and_once() -> None:
    event = '/jax/core/compile/test'
    with tool.compilation() as spans:
        assert spans.seconds == 0
        jax.monitoring.record_event_duration_secs('/jax/checkpoint/test', 50.0)
        assert spans.seconds == 0
        jax.monitoring.record_event_duration_secs(event, 2.0)
        jax.monitoring.record_event_duration_secs(event, 5.0)  # holds the first
    jax.monitoring.record_event_duration_secs(event, 70.0)
    assert spans.seconds == pytest.approx(5.0, abs=0.5)


def test_the_tokenizer_of_a_run_is_found_where_it_says_so(tmp_path: pathlib.Path) -> None:
    source = functools.partial(models.tokenizer_source, tmp_path)
    assert source({'data': {'tokenizer': load_tokenizer('bytes').fingerprint}}) == 'bytes'
    assert source({'origin': {'path': str(tmp_path)}}) == str(tmp_path)
    assert source({'origin': {'path': str(tmp_path / 'gone')}}) == ''
    assert source({'data': {'tokenizer': 'another'}}) == source({'origin': {}}) == ''
    (tmp_path / 'hf').mkdir()
    (tmp_path / 'hf/tokenizer.json').write_text('damaged')
    name_base_model(tmp_path, tmp_path / 'hf')
    assert source({'data': {'tokenizer': 'another'}}) == ''
