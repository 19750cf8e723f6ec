"""`nope evaluate` on a small model: one line, several evaluations, one table."""

from __future__ import annotations

import csv
import json
import pathlib
import tempfile
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

from configs.checkpoints import checkpoint
from experiments.build import build
from experiments.cli import evaluate
from experiments.evaluations import KINDS, text_base
from experiments.specs import identity
from nope import interop, records
from nope.data.tasks import WordTokenizer
from nope.data.tokenizers import ByteTokenizer
from nope.interop import Described, Export, save
from nope.interop.run_folder import write_run
from nope.model import apply
from nope.positions import Learned
from nope.variables import with_uniform_lam
from tests import tiny
from tests.evals.helmet import files as helmet_files
from tests.evals.longbench import files as longbench_files
from tests.evals.nolima import files as nolima_files
from tests.runtime.lfs import pointer

CONFIG = tiny.model(attention=None, vocab_size=258)
DESCRIBED = Described(CONFIG, 16, 'float32', bos=257, eos=256)
TEXT = ''.join(f'{i} green bottles hang on the wall. ' for i in range(40))
Rows = list[dict[str, Any]]


@pytest.fixture(scope='module')
def directory(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp('models') / 'hf'
    save(folder, tiny.variables(CONFIG), DESCRIBED, export=Export(), tokenizer='bytes')
    return folder


@pytest.fixture(scope='module')
def text(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    path = tmp_path_factory.mktemp('text') / 'a.txt'
    path.write_text(TEXT)
    return path


def measured(directory: pathlib.Path, out: pathlib.Path, *options: str) -> Rows:
    """Lines of the table."""
    given = [f'--model=hf:{directory}', f'--out={out}', '--batch-tokens=512']
    asked = next(option for option in options if option.startswith('--eval='))
    few = {'loss:': '--windows=3', 'perplexity:': '--budget=64'}
    given += [option for name, option in few.items() if name in asked]
    assert evaluate.main([*given, *options]) == 0
    rows = [json.loads(line) for line in (out / 'results.jsonl').read_text().splitlines()]
    with (out / 'results.csv').open() as stream:
        for line, row in zip(csv.DictReader(stream), rows, strict=True):
            none = {'value': 'nan', 'tokens': ''}  # JSON has no NaN
            assert line == {name: none[name] if x is None else str(x) for name, x in row.items()}
    assert all(row.pop('seconds') > 0 for row in rows)
    return rows


def kept(out: pathlib.Path, kind: str) -> records.Records:
    (folder,) = out.glob(f'records/{kind}-*')
    return records.load(folder)


def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interop, 'load', lambda *_: pytest.fail('weights were read'))


def answering(monkeypatch: pytest.MonkeyPatch, says: str) -> list[Any]:
    """Lets every model write the same; the options that it is asked with."""
    asked: list[Any] = []

    def generate(prompts: list, options: Any) -> list:
        asked.append(options)
        return [ByteTokenizer().encode(says) for _ in prompts]

    fake = SimpleNamespace(generate=generate)
    monkeypatch.setattr(text_base, 'Generator', lambda *model, batch_tokens: fake)
    return asked


def test_help_names_the_kinds_with_their_flags(capsys: pytest.CaptureFixture[str]) -> None:
    evaluate.parser().print_help()
    said, commands = capsys.readouterr().out, evaluate.commands().values()
    assert {x.kind for x in commands} == {spec for spec in KINDS.values() if spec.command}
    for command in commands:
        assert f'  {command.form} ' in said
        assert all(f'--{flag} X' in said for flag in command.flags)


def test_loss_is_that_of_a_direct_computation_under_the_lambda(
    directory: pathlib.Path, text: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    rows = measured(directory, tmp_path, f'--eval=loss:{text}', '--lengths=32', '--scale=1.5')
    variables = with_uniform_lam(tiny.variables(CONFIG), 1.5)
    blocks = np.frombuffer(TEXT.encode(), np.uint8)[: 3 * 33].reshape(3, 33).astype(np.int32)
    hidden = apply(CONFIG, variables, blocks[:, :-1]).hidden
    said = jax.nn.log_softmax(np.asarray(hidden) @ np.asarray(variables['params']['head']))
    chosen = np.take_along_axis(np.asarray(said), blocks[:, 1:, None], axis=-1)
    loss = -chosen[..., 0].mean(axis=0)
    found = {(r['what'], r['length']): r['value'] for r in rows}
    assert found['mean loss, positions 1 to 16', 16] == pytest.approx(loss[:16].mean(), rel=1e-5)
    assert found['mean loss, positions 17 to 32', 32] == pytest.approx(loss[16:].mean(), rel=1e-5)
    assert {r['unit'] for r in rows} == {'nats', 'bits'}
    assert {(r['samples'], r['tokens']) for r in rows} == {(3, 48)}


def test_multipliers_of_a_file_are_those_of_the_heads(
    directory: pathlib.Path, text: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """Each lambda has records of its own, which lie side by side."""
    ask, out = (f'--eval=loss:{text}', '--lengths=32'), tmp_path / 'out'
    plain, uniform = measured(directory, out, *ask), measured(directory, out, *ask, '--scale=1.5')
    assert plain != uniform
    shape = (CONFIG.layers, CONFIG.heads)
    np.save(tmp_path / 'x.npy', np.full(shape, 1.5))
    np.savez(tmp_path / 'x.npz', multiplier=np.full(shape, 1.5))
    (tmp_path / 'x.json').write_text(json.dumps(np.full(shape, 1.5).tolist()))
    own = tmp_path / 'own'
    measured(directory, own, *ask, '--scale=1.5')
    (of_records,) = own.glob('records/*/records.npz')
    for path in (*tmp_path.glob('x.*'), of_records):
        assert measured(directory, out, *ask, f'--lam={path}') == uniform
    assert len([*out.glob('records/*')]) == 2
    assert measured(directory, out, *ask) == plain


@pytest.mark.parametrize(('name', 'content', 'said'), [
    ('empty.npy', b'', 'holds no array of numbers'),
    ('cut.npz', b'PK\x03\x04', 'holds no array of numbers'),
    ('lfs.npz', pointer(), 'is a Git LFS pointer'), ('lfs.json', pointer(), 'is a Git LFS pointer'),
    ('object.json', b'{"lambda": [[1.0]]}', 'holds no array of numbers|has the shape'),
    ('text.json', b'"1.5"', r'has the shape \[\]; it must hold finite numbers above 0'),
    ('zero.json', b'[[0, -1, 1, 1], [1, 1, 1, 1]]', 'it must hold finite numbers above 0'),
])  # fmt: skip
def test_files_of_lambda_that_hold_none_are_named(
    directory: pathlib.Path,
    text: pathlib.Path,
    tmp_path: pathlib.Path,
    name: str,
    content: bytes,
    said: str,
) -> None:
    (tmp_path / name).write_bytes(content)
    ask = (f'--eval=loss:{text}', '--lengths=32', f'--lam={tmp_path / name}')
    with pytest.raises(SystemExit, match=rf'--lam={tmp_path / name} .*({said})'):
        measured(directory, tmp_path / 'out', *ask)


def test_multipliers_of_the_models_own_are_not_taken_the_place_of(
    text: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """scale_param of a directory, as searches leave it."""
    variables, scaled = with_uniform_lam(tiny.variables(CONFIG), 1.5), Export(lam='scale_param')
    save(tmp_path / 'hf', variables, DESCRIBED, export=scaled, tokenizer='bytes')
    ask = (f'--eval=loss:{text}', '--lengths=32', '--scale=1.2')
    with pytest.raises(SystemExit, match=r'multipliers of its own, .*; --scale and --lam'):
        measured(tmp_path / 'hf', tmp_path / 'o', *ask)


def test_a_run_of_a_task_reads_text_in_the_words_of_the_task(tmp_path: pathlib.Path) -> None:
    variables, words = tiny.variables(CONFIG), [' [SEP]', ' Copy', ':', ' 0', ' 1']
    write_run(tmp_path / 'run', Described(CONFIG, 16), variables, {})
    WordTokenizer(('<pad>', '<bos>', '<eos>', *words)).write(tmp_path / 'run/words.json')
    (tmp_path / 'a.txt').write_text('Copy: 0 1 1 0 [SEP] 0')
    asked = [f'--eval=loss:{tmp_path}/a.txt', '--lengths=7', '--windows=1']
    evaluate.main([f'--model={tmp_path}/run', *asked, f'--out={tmp_path}/out'])
    first, *_ = map(json.loads, (tmp_path / 'out/results.jsonl').read_text().splitlines())
    ids = np.array([[4, 5, 6, 7, 7, 6, 3, 6]], np.int32)
    hidden = apply(CONFIG, variables, ids[:, :-1]).hidden
    said = jax.nn.log_softmax(np.asarray(hidden) @ np.asarray(variables['params']['head']))
    loss = -np.take_along_axis(np.asarray(said), ids[:, 1:, None], axis=-1).mean()
    assert first['value'] == pytest.approx(loss, rel=1e-5)


def test_results_are_of_the_run_that_was_there(text: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """The same one trained again in its place is told apart."""
    run, out = tmp_path / 'run', tmp_path / 'out'
    ask = [f'--model={run}', f'--out={out}', f'--eval=loss:{text}', '--lengths=32', '--windows=3']
    write_run(run, DESCRIBED, tiny.variables(CONFIG), {'path': 'DIR'})
    for times in (1, 1, 2):
        if times == 2:
            (run / 'done.json').write_text(json.dumps({'steps': 0, 'seconds': 7}))
        evaluate.main([*ask, '--tokenizer=bytes'])
        assert len([*out.glob('records/*')]) == times


def test_several_evaluations_share_a_table_and_are_measured_once(
    directory: pathlib.Path,
    text: pathlib.Path,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ask = (f'--eval=passkey,perplexity:{text}', '--lengths=200,120', '--template=brief')
    rows = measured(directory, tmp_path, *ask, '--tests=1')
    assert [(r['evaluation'], r['length']) for r in rows] == [
        *(('passkey', 120), ('passkey', 200), ('perplexity', 120), ('perplexity', 200))
    ]
    assert rows[2]['value'] == kept(tmp_path, 'perplexity')['perplexity'][0]
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].split() == [
        *('evaluation', 'what', 'length', 'value', 'unit'),
        *('samples', 'tokens', 'prefix', 'seconds'),
    ]
    assert len(printed) == 6 and printed[-1] == str(tmp_path / 'results.csv')
    unread(monkeypatch)  # nothing is measured again
    assert measured(directory, tmp_path, *ask, '--tests=1') == rows


def test_a_config_asks_for_the_same(
    directory: pathlib.Path, text: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """All but the model, of whose training a config says more. The stride does not follow the
    shortest length."""
    helmet = tmp_path / 'helmet'
    FILES['helmet'](helmet)
    config = checkpoint.get_config('nothing,loss')
    config.init, config.train.length, config.lengths = f'hf:{directory}', 16, (1.0,)
    config.corpora = {'own': {'source': f'text:{text}', 'split': 'all'}}
    config.perplexity.update({'published': False, 'budget': 64, 'per_document': None})
    of_text = {'run': 'nothing', 'tokens': (8, 32), 'corpus': 'own'}
    config.evals.text = {'kind': 'perplexity', **of_text}
    config.evals.first = {'kind': 'positions', **of_text, 'evaluation': {'windows': 3}}
    config.evals.helmet = {
        'kind': 'helmet', 'run': 'nothing', 'tokens': (8192,), 'helmet': {'folder': str(helmet)}
    }  # fmt: skip
    evals = build(config).evals
    wanted = {evals[name].kind: identity(evals[name]) for name in ('text', 'first')}
    measured(directory, tmp_path, f'--eval=perplexity:{text},loss:{text}', '--lengths=8,32')
    for path in tmp_path.glob('records/*/spec.json'):
        found = json.loads(path.read_text())
        asked = json.loads(json.dumps(wanted[path.parent.name.partition('-')[0]]))
        assert {**found, 'run': None} == {**asked, 'run': None}
    assert evals['text'].stride == 4
    assert evals['helmet'].lengths == (8192,)


def test_perplexity_of_every_length_is_of_the_same_tokens(
    directory: pathlib.Path, text: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    ask = (f'--eval=perplexity:{text}', '--bos', '--stride=8')
    rows = measured(directory, tmp_path, *ask, '--lengths=16,32')
    assert [(r['length'], r['samples'], r['tokens']) for r in rows] == [(16, 8, 64), (32, 8, 64)]
    assert {(r['what'], r['prefix']) for r in rows} == {('last 8 tokens of each window', '<s>')}
    assert kept(tmp_path, 'perplexity').attributes['bos'] is True


def write_longbench(folder: pathlib.Path) -> None:
    for name in ('qasper', 'hotpotqa'):
        longbench_files.write(folder, name, [longbench_files.row()] * 2)


FILES: dict[str, Callable[[pathlib.Path], Any]] = {
    'longppl': lambda path: path.write_text(TEXT),
    'longbench': write_longbench,
    'helmet': lambda folder: helmet_files.write(folder, 8192, rows=1),
    'nolima': nolima_files.write,
}
POINTS = 'points of 100'
ASKED = [
    ('longppl', '--lengths=32,64', '', [  # weights are random: no token is below 2 nats
        ('key tokens', 32, None, 'perplexity', 1), ('key tokens', 64, None, 'perplexity', 1),
        ('number of key tokens', 32, 0, 'tokens', 1), ('number of key tokens', 64, 0, 'tokens', 1),
    ]),
    ('longbench', '--lengths=2048', 'Paris', [
        ('qasper', 2048, 100, POINTS, 2), ('hotpotqa', 2048, 100, POINTS, 2),
        ('mean of 2 of 16 data sets', 2048, 100, POINTS, 4),
    ]),
    ('helmet', '--lengths=8192', ' 0077, 0177', [
        ('ruler_niah_mk_2', 8192, 100, POINTS, 1), ('ruler_niah_mk_3', 8192, 100, POINTS, 1),
        ('ruler_niah_mv', 8192, 100, POINTS, 1), ('json_kv', 8192, 0, POINTS, 1),
        ('mean of 4 tasks', 8192, 75, POINTS, 4), ('contexts cut', 8192, 0, 'of 4', 4),
    ]),
    ('nolima', '--lengths=1000,250', 'Ann, Bob, Cleo: a dog', [
        ('right answers', 250, 100, '%', 260), ('right answers', 1000, 100, '%', 260),
        ('base score', 250, 100, '%', 260), ('effective length', 1000, 1000, 'tokens', 260),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(('name', 'lengths', 'says', 'wanted'), ASKED)
def test_files_of_the_user_are_measured(
    name: str,
    lengths: str,
    says: str,
    wanted: list[tuple],
    directory: pathlib.Path,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """LongBench takes the files that are there. LongPPL's short contexts are of L."""
    FILES[name](tmp_path / name)
    asked = answering(monkeypatch, says) if says else []
    flags = [f'--eval={name}:{tmp_path / name}', lengths, *['--beams=1'] * (name == 'longbench')]
    rows = measured(directory, tmp_path / 'out', *flags)
    assert [(r['what'], r['length'], r['value'], r['unit'], r['samples']) for r in rows] == wanted
    assert {options.beams for options in asked} <= {1}
    if name == 'longppl':
        facts = kept(tmp_path / 'out', name).attributes
        assert (facts['short'], facts['stride']) == (16, 4)


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        (['--eval=rulers'], "--eval has 'rulers'; accepted: harness, helmet:FOLDER, long"),
        (['--eval=loss'], "--eval has 'loss'; accepted: loss:PATH"),
        (['--eval=ruler:x'], "--eval has 'ruler:x'; accepted: ruler$"),
        (['--eval=ruler,ruler'], 'an evaluation twice: ruler, ruler'),
        (['--eval=loss:nowhere'], '--eval names nowhere, which does not exist'),
        (['--lengths=64,64'], '--lengths=64,64; accepted: different numbers'),
        (['--lengths=0'], '--lengths=0; accepted'),
        (['--lengths=1e3'], '--lengths=1e3; accepted'),
        (['--scale=0'], '--scale=0.0; it must be a finite number above 0'),
        (['--lam=nowhere.npz'], '--lam names nowhere.npz'),
        (['--tests=3'], '--tests=3 is for passkey, which --eval does not ask for'),
        (['--limit=1'], '--limit=1 is for harness and helmet and longbench and nolima'),
    ],
)
def test_bad_options_are_refused_before_a_model_is_read(
    options: list[str], message: str, tmp_path: pathlib.Path
) -> None:
    given = ['--model=hf:nowhere', '--eval=ruler', '--lengths=64', f'--out={tmp_path / "out"}']
    with pytest.raises(SystemExit, match=message):
        evaluate.main([*given, *options])
    assert not (tmp_path / 'out').exists()


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        (
            ['--eval=passkey', '--lengths=20'],
            r'^error: --eval=passkey: --lengths is \(20,\); a prom',
        ),
        (
            ['--eval=passkey', '--lengths=200', '--template=long'],
            "--template is 'long'; accepted: paper",
        ),
        (['--eval=passkey', '--lengths=200', '--tests=11'], '--tests is 11; accepted: 1 to 10'),
        (['--eval=passkey', '--lengths=200', '--tests=x'], "--tests is 'x'; accepted is a int"),
        (['--eval=ruler', '--lengths=512', '--samples=0'], '--samples is 0; it must be at least 1'),
        (
            ['--eval=ruler', '--lengths=512', '--tasks=niah_single_2'],
            '--files is empty: --files=FOLDER with the files of --tasks, .*PaulGrahamEssays',
        ),
        (['--eval=helmet:.', '--lengths=8192'], r'--eval: .*validation_8192.jsonl, .* missing'),
        (['--eval=loss:SHORT', '--lengths=32'], r'has 5 tokens; a window of 32 needs 33'),
        (['--eval=loss:FOLDER', '--lengths=4'], r'--eval=loss: .* into which is written'),
        (['--eval=loss:SHORT', '--lengths=4', '--chat'], '--chat: none of the evaluations asks'),
        (['--eval=passkey', '--lengths=99999999999'], '--lengths .* numbers from 1 to 2,147,483,6'),
    ],
)
def test_what_an_evaluation_cannot_ask_is_refused_before_the_weights_are_read(
    options: list[str],
    message: str,
    directory: pathlib.Path,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / 'short.txt').write_text('brief')
    named = {'SHORT': tmp_path / 'short.txt', 'FOLDER': tmp_path}
    for name, path in named.items():
        options = [option.replace(name, str(path)) for option in options]
    unread(monkeypatch)
    with pytest.raises(SystemExit, match=message):
        measured(directory, tmp_path / 'out', *options)
    assert not (tmp_path / 'out').exists()  # which another try may use


def test_a_length_beyond_the_positions_is_refused(
    text: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    config = tiny.model(attention=None, vocab_size=258, position=Learned(16))
    folder = tmp_path / 'run'
    write_run(folder, Described(config, 16), tiny.variables(config), {})
    with pytest.raises(SystemExit, match='sequences of 32 tokens; learned positions end at 16'):
        options = [f'--model={folder}', '--tokenizer=bytes', f'--eval=loss:{text}']
        evaluate.main([*options, '--lengths=32', f'--out={tmp_path / "out"}'])


def test_a_folder_that_may_not_be_written_is_said_before_weights_are_read(
    directory: pathlib.Path,
    text: pathlib.Path,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def denied(dir: pathlib.Path) -> Any:  # as for a user who is not root
        raise PermissionError(13, 'Permission denied', f'{dir}/x')

    monkeypatch.setattr(tempfile, 'TemporaryFile', denied)
    unread(monkeypatch)
    with pytest.raises(SystemExit) as ended:
        measured(directory, tmp_path / 'out', f'--eval=loss:{text}', '--lengths=32')
    assert ended.value.code == (
        f'error: --out={tmp_path / "out"} cannot be written: Permission denied'
    )
