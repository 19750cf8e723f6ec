"""nope evaluate on a small model: one line, several evaluations, one table."""

from __future__ import annotations

import csv
import errno
import json
import pathlib
import tempfile
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

from nope import interop, records
from nope.data.sources import Text
from nope.data.tokenizers import ByteTokenizer
from nope.interop import Described, Export, save
from nope.interop.run_folder import write_run
from nope.model import apply
from nope.positions import Learned
from nope.variables import Variables, with_uniform_lam
from tests import tiny
from tests.evals.helmet import files as helmet_files
from tests.evals.longbench import files as longbench_files
from tests.evals.nolima import files as nolima_files
from tests.runtime.lfs import pointer
from tests.tools.loading import load

tool, work = load('evaluate'), load('_evaluate')
CONFIG = tiny.model(attention=None, vocab_size=258)
TEXT = ''.join(f'{i} green bottles hang on the wall. ' for i in range(40))


@pytest.fixture(scope='module')
def directory(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp('models') / 'hf'
    described = Described(CONFIG, 16, 'float32', bos=257, eos=256)
    save(folder, tiny.variables(CONFIG), described, export=Export(), tokenizer='bytes')
    return folder


@pytest.fixture(scope='module')
def text(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    path = tmp_path_factory.mktemp('text') / 'a.txt'
    path.write_text(TEXT)
    return path


def measured(directory: pathlib.Path, out: pathlib.Path, *options: str) -> list[dict[str, Any]]:
    """Lines of the table."""
    given = [f'--model=hf:{directory}', f'--out={out}', '--batch-tokens=512']
    asked = next(option for option in options if option.startswith('--eval='))
    few = {'loss:': '--windows=3', 'perplexity:': '--budget=64'}
    given += [option for name, option in few.items() if name in asked]
    tool.main([*given, *options])
    rows = [json.loads(line) for line in (out / 'results.jsonl').read_text().splitlines()]
    with (out / 'results.csv').open() as stream:
        assert [*csv.DictReader(stream)] == [
            {name: '' if value is None else str(value) for name, value in row.items()}
            for row in rows
        ]
    assert all(row.pop('seconds') > 0 for row in rows)
    return rows


def direct(directory: pathlib.Path, scale: float) -> np.ndarray:
    """Loss by position of the text's first three blocks of 32 tokens."""
    variables: Variables = with_uniform_lam(tiny.variables(CONFIG), scale)
    blocks = np.frombuffer(TEXT.encode(), np.uint8)[: 3 * 33].reshape(3, 33).astype(np.int32)
    hidden = apply(CONFIG, variables, blocks[:, :-1]).hidden
    said = jax.nn.log_softmax(np.asarray(hidden) @ np.asarray(variables['params']['head']))
    chosen = np.take_along_axis(np.asarray(said), blocks[:, 1:, None], axis=-1)
    return -chosen[..., 0].mean(axis=0)


@pytest.mark.parametrize('scale', [1.0, 1.5])
def test_loss_is_that_of_a_direct_computation_under_the_lambda(
    scale: float, directory: pathlib.Path, text: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    rows = measured(
        directory, tmp_path / 'out', f'--eval=loss:{text}', '--lengths=32', f'--scale={scale}'
    )
    loss = direct(directory, scale)
    found = {(r['what'], r['length']): r['value'] for r in rows}
    assert found['mean loss, positions 1 to 16', 16] == pytest.approx(loss[:16].mean(), rel=1e-5)
    assert found['mean loss, positions 17 to 32', 32] == pytest.approx(loss[16:].mean(), rel=1e-5)
    assert {r['unit'] for r in rows} == {'nats', 'bits'}
    assert {(r['samples'], r['tokens']) for r in rows} == {(3, 48)}


def test_multipliers_of_a_file_are_those_of_the_heads(
    directory: pathlib.Path, text: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    ask = (f'--eval=loss:{text}', '--lengths=32')
    uniform = measured(directory, tmp_path / 'a', *ask, '--scale=1.5')
    shape = (CONFIG.layers, CONFIG.heads)
    for name, write in {
        'x.npy': lambda path: np.save(path, np.full(shape, 1.5)),
        'x.npz': lambda path: np.savez(path, multiplier=np.full(shape, 1.5)),
        'x.json': lambda path: path.write_text(json.dumps(np.full(shape, 1.5).tolist())),
    }.items():
        write(tmp_path / name)
        assert (
            measured(directory, tmp_path / f'o{name}', *ask, f'--lam={tmp_path / name}') == uniform
        )
    kept = tmp_path / 'a' / 'loss' / 'records.npz'  # as records have them
    assert measured(directory, tmp_path / 'b', *ask, f'--lam={kept}') == uniform
    np.save(tmp_path / 'x.npy', np.ones((1, 1)))
    with pytest.raises(SystemExit, match=r'shape \[1, 1\]; it must hold finite numbers above 0'):
        measured(directory, tmp_path / 'c', *ask, f'--lam={tmp_path / "x.npy"}')


@pytest.mark.parametrize(('name', 'content', 'said'), [
    ('empty.npy', b'', 'holds no array of numbers'),
    ('cut.npz', b'PK\x03\x04', 'holds no array of numbers'),
    ('lfs.npz', pointer(), 'is a Git LFS pointer'), ('lfs.json', pointer(), 'is a Git LFS pointer'),
    ('object.json', b'{"lambda": [[1.0]]}', 'holds no array of numbers|has the shape'),
    ('text.json', b'"1.5"', 'has the shape'),
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
    described = Described(CONFIG, 16, 'float32', bos=257, eos=256)
    variables = with_uniform_lam(tiny.variables(CONFIG), 1.5)
    export = Export(lam='scale_param')
    save(tmp_path / 'hf', variables, described, export=export, tokenizer='bytes')
    with pytest.raises(SystemExit, match='the model has multipliers of its own, which --scale'):
        measured(
            tmp_path / 'hf', tmp_path / 'o', f'--eval=loss:{text}', '--lengths=32', '--scale=1.2'
        )


@pytest.mark.parametrize(('option', 'said'), [
    ('--tests=3', '--tests=3 is for passkey'), ('--stride=9', '--stride=9 is for perplexity'),
    ('--limit=1', '--limit=1 is for longbench and helmet and nolima'),
    ('--tasks=vt', '--tasks=vt is for ruler'),
])  # fmt: skip
def test_options_of_evaluations_that_are_not_asked_for_are_refused(
    directory: pathlib.Path, text: pathlib.Path, tmp_path: pathlib.Path, option: str, said: str
) -> None:
    with pytest.raises(SystemExit, match=f'{said}, which --eval does not ask for'):
        measured(directory, tmp_path / 'o', f'--eval=loss:{text}', '--lengths=32', option)


def test_results_are_of_the_run_that_was_there(text: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """The same one trained again in its place is told apart."""
    run, out = tmp_path / 'run', tmp_path / 'out'
    ask = [f'--model={run}', f'--out={out}', f'--eval=loss:{text}', '--lengths=32', '--windows=3']
    ask += ['--tokenizer=bytes']
    described = Described(CONFIG, 16, 'float32', bos=257, eos=256)
    write_run(run, described, tiny.variables(CONFIG), tiny.mesh(), {'path': 'DIR'})
    tool.main(ask)
    (run / 'done.json').write_text(json.dumps({'steps': 0, 'seconds': 7}))
    with pytest.raises(SystemExit, match='results of other settings: fingerprint is'):
        tool.main(ask)


def test_several_evaluations_share_a_table_and_are_measured_once(
    directory: pathlib.Path,
    text: pathlib.Path,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / 'out'
    ask = (f'--eval=passkey,perplexity:{text}', '--lengths=200,120', '--template=brief')
    rows = measured(directory, out, *ask, '--tests=1')
    assert [(r['evaluation'], r['length']) for r in rows] == [
        *(('passkey', 120), ('passkey', 200), ('perplexity', 120), ('perplexity', 200))
    ]
    kept = records.load(out / 'perplexity')
    assert rows[2]['value'] == kept['perplexity'][0]
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].split() == [
        *('evaluation', 'what', 'length', 'value', 'unit'),
        *('samples', 'tokens', 'prefix', 'seconds'),
    ]
    assert len(printed) == 6 and printed[-1] == str(out / 'results.csv')
    monkeypatch.setattr(work.records, 'save', None)  # nothing is measured again
    assert measured(directory, out, *ask, '--tests=1') == rows


def test_perplexity_of_every_length_is_of_the_same_tokens(
    directory: pathlib.Path, text: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    ask = (f'--eval=perplexity:{text}', '--bos', '--stride=8')
    rows = measured(directory, tmp_path / 'a', *ask, '--lengths=16,32')
    assert [(r['length'], r['samples'], r['tokens']) for r in rows] == [(16, 8, 64), (32, 8, 64)]
    windows = [
        np.array([257, *TEXT.encode()[end - size + 1 : end]])
        for size in (16, 32)
        for end in range(32, 96, 8)
    ]
    losses = []
    for ids in windows:
        output = apply(CONFIG, tiny.variables(CONFIG), ids[None])
        said = jax.nn.log_softmax(np.asarray(output.hidden[0]) @ np.asarray(output.head))
        losses.append(-np.mean([said[t - 1, ids[t]] for t in range(len(ids) - 8, len(ids))]))
    wanted = np.exp(np.reshape(losses, (2, -1)).mean(axis=1))
    assert [r['value'] for r in rows] == pytest.approx(wanted, rel=1e-5)
    with pytest.raises(SystemExit, match='windows of 8 tokens have to be longer than the 8'):
        measured(directory, tmp_path / 'b', *ask, '--lengths=8,32')


def test_a_stride_does_not_follow_the_shortest_length(
    directory: pathlib.Path, text: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    for n, lengths in enumerate(('32', '8,32')):
        rows = measured(
            directory, tmp_path / str(n), f'--eval=perplexity:{text}', f'--lengths={lengths}'
        )
        assert {r['what'] for r in rows} == {'last 4 tokens of each window'}


def test_longbench_takes_the_files_that_are_there(
    directory: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def generate(prompts: list, options: Any) -> list:
        asked.append(options)
        return [ByteTokenizer().encode('Paris') for _ in prompts]

    fake = SimpleNamespace(generate=generate)
    monkeypatch.setattr(work, 'Generator', lambda *model, batch_tokens: fake)
    for name in ('qasper', 'hotpotqa'):
        longbench_files.write(tmp_path / 'files', name, [longbench_files.row()] * 2)
    ask = (f'--eval=longbench:{tmp_path / "files"}', '--lengths=2048', '--beams=1')
    rows = measured(directory, tmp_path / 'out', *ask)
    assert [(r['what'], r['value'], r['samples']) for r in rows] == [
        ('qasper', 100, 2),
        ('hotpotqa', 100, 2),
        ('mean of 2 of 16 data sets', 100, 4),
    ]
    assert {options.beams for options in asked} == {1}


def test_files_of_ruler_are_asked_for_by_the_flag(
    directory: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    with pytest.raises(SystemExit, match=r'PaulGrahamEssays.* name their folder: --files=FOLDER'):
        measured(
            directory, tmp_path / 'a', '--eval=ruler', '--tasks=niah_single_2', '--lengths=512'
        )


def test_a_text_without_key_tokens_has_no_longppl(
    directory: pathlib.Path, text: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    # Weights are random: no token is below 2 nats.
    given = [f'--model=hf:{directory}', f'--eval=longppl:{text}', '--lengths=32,64']
    tool.main([*given, f'--out={tmp_path / "out"}'])
    rows = [json.loads(line) for line in (tmp_path / 'out/results.jsonl').read_text().splitlines()]
    assert [(row['what'], row['length'], row['value']) for row in rows] == [
        *(
            ('key tokens', 32, None),
            ('key tokens', 64, None),
            ('number of key tokens', 32, 0),
            ('number of key tokens', 64, 0),
        )
    ]
    facts = records.load(tmp_path / 'out/longppl').attributes
    assert (facts['short'], facts['stride']) == (16, 4)


def test_needles_of_the_users_files_are_measured(
    directory: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    says = ByteTokenizer().encode(' 0077, 0177: Bob')
    fake = SimpleNamespace(generate=lambda prompts, options: [says for _ in prompts])
    monkeypatch.setattr(work, 'Generator', lambda *model, batch_tokens: fake)
    helmet_files.write(tmp_path / 'helmet', 8192, rows=1)
    rows = measured(
        directory, tmp_path / 'a', f'--eval=helmet:{tmp_path / "helmet"}', '--lengths=8192'
    )
    assert [(r['what'], r['value'], r['unit']) for r in rows] == [
        ('ruler_niah_mk_2', 100, 'points of 100'),
        ('ruler_niah_mk_3', 100, 'points of 100'),
        ('ruler_niah_mv', 100, 'points of 100'),
        ('json_kv', 0, 'points of 100'),
        ('mean of 4 tasks', 75, 'points of 100'),
        ('contexts cut', 0, 'of 4'),
    ]
    nolima_files.write(tmp_path / 'nolima')
    ask = (f'--eval=nolima:{tmp_path / "nolima"}', '--lengths=1000,250', '--limit=1')
    rows = measured(directory, tmp_path / 'b', *ask)
    kept = records.load(tmp_path / 'b/nolima')
    bob = kept['average'].tolist()
    assert kept['score'].shape == (2, 1) and 10 < bob[0] < 60
    assert [(r['what'], r['length'], r['value']) for r in rows] == [
        ('right answers', 250, bob[0]),
        ('right answers', 1000, bob[1]),
        ('base score', 250, max(bob)),
        ('effective length', 1000, 1000),
    ]


def test_a_folder_keeps_to_its_settings(
    directory: pathlib.Path, text: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    ask, out = (f'--eval=loss:{text}', '--lengths=32'), tmp_path / 'out'
    measured(directory, out, *ask)
    with pytest.raises(SystemExit, match=r'other settings: multipliers is .* Give another --out'):
        measured(directory, out, *ask, '--scale=2')
    with pytest.raises(SystemExit, match=r'loss holds results .* length is 24 here and 32 there'):
        measured(directory, out, ask[0], '--lengths=24')
    several = f'--eval=passkey,loss:{text}'
    with pytest.raises(SystemExit, match=r'loss holds results .* length is 512 here'):
        measured(directory, out, several, '--lengths=512', '--tests=1')
    assert not (out / 'passkey').exists()  # nothing is measured before all can be


def test_texts_of_bytes_begin_with_bos_where_asked(
    directory: pathlib.Path, text: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    for bos in ([], ['--bos']):
        out = tmp_path / f'out{len(bos)}'
        (row, *_) = measured(directory, out, f'--eval=loss:{text}', '--lengths=32', *bos)
        assert row['prefix'] == ('<s>' if bos else 'none')
        assert json.loads((out / 'settings.json').read_text())['prefix'] == [257][: len(bos)]


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        (['--eval=rulers'], "--eval has 'rulers'; accepted: ruler, passkey, longbench:FOLDER"),
        (['--eval=loss'], "--eval has 'loss'; accepted: loss:PATH"),
        (['--eval=ruler:x'], "--eval has 'ruler:x'; accepted: ruler$"),
        (['--eval=ruler,ruler'], 'an evaluation twice: ruler, ruler'),
        (['--eval=loss:nowhere'], '--eval names nowhere, which does not exist'),
        (['--lengths=64,64'], '--lengths=64,64; accepted: different numbers'),
        (['--lengths=0'], '--lengths=0; accepted'),
        (['--lengths=1e3'], '--lengths=1e3; accepted'),
        (['--scale=0'], '--scale=0.0; it must be a finite number above 0'),
        (['--lam=nowhere.npz'], '--lam names nowhere.npz'),
        (['--windows=0'], '--windows=0; it must be at least 1'),
    ],
)
def test_bad_options_are_refused_before_a_model_is_read(
    options: list[str], message: str, tmp_path: pathlib.Path
) -> None:
    given = ['--model=hf:nowhere', '--eval=ruler', '--lengths=64', f'--out={tmp_path / "out"}']
    with pytest.raises(SystemExit, match=message):
        tool.main([*given, *options])
    assert not (tmp_path / 'out').exists()


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        (['--eval=passkey', '--lengths=20'], '^error: --eval=passkey: max_length is 20'),
        (
            ['--eval=passkey', '--lengths=200', '--template=long'],
            '--template=long; accepted: paper',
        ),
        (['--eval=passkey', '--lengths=200', '--tests=11'], '--tests=11; it must be at most 10'),
        (['--eval=helmet:.', '--lengths=8192'], r'validation_8192.jsonl, .* missing; it must be'),
        (['--eval=nolima:.', '--lengths=250'], 'haystack/rand_shuffle has no books'),
    ],
)
def test_what_an_evaluation_cannot_ask_is_refused_before_the_weights_are_read(
    options: list[str],
    message: str,
    directory: pathlib.Path,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(work, '_with', None)
    with pytest.raises(SystemExit, match=message):
        measured(directory, tmp_path / 'out', *options)
    assert not (tmp_path / 'out').exists()  # which another try may use


def test_a_length_beyond_the_positions_is_refused(
    text: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    config = tiny.model(attention=None, vocab_size=258, position=Learned(16))
    folder = tmp_path / 'run'
    write_run(folder, Described(config, 16), tiny.variables(config), tiny.mesh(), {})
    with pytest.raises(SystemExit, match='--lengths has 32; the positions of the model end at 16'):
        options = [f'--model={folder}', '--tokenizer=bytes', f'--eval=loss:{text}']
        tool.main([*options, '--lengths=32', f'--out={tmp_path / "out"}'])


def test_a_folder_is_read_as_training_reads_it(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / 'texts'
    for name, content in {
        **{'b.py': b'code', 'more/a.md': b'words', 'more/__init__.py': b''},
        **{'.hidden.txt': b'no', 'image.png': b'\x89PNG\0'},
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    read = load('_corpus').read
    np.testing.assert_array_equal(read(folder, ByteTokenizer(), bos=False).lengths, [4, 5])
    (tmp_path / 'empty').mkdir()
    (tmp_path / 'empty/a.txt').write_text('')
    for path, said in (('empty', 'only empty files'), ('empty/a.txt', 'is empty')):
        with pytest.raises(ValueError, match=said):
            read(tmp_path / path, ByteTokenizer(), bos=False)


def test_a_text_has_the_same_bytes_as_the_source_of_texts(tmp_path: pathlib.Path) -> None:
    """Line ends, bytes that are no UTF-8, and no byte order mark."""
    (tmp_path / 'text').mkdir()
    for name, content in {
        'a.txt': b'a line\r\n' * 50,
        'b.txt': b'\xef\xbb\xbfmarked',
        'c.txt': 'é'.encode('utf-16'),
        'd.txt': b'\xff',
    }.items():
        (tmp_path / 'text' / name).write_bytes(content)
    parts = Text(str(tmp_path / 'text')).list_parts(tmp_path)
    texts = sum(len(text) for part in parts for _, text in part.documents())
    found = load('_corpus').read(tmp_path / 'text', ByteTokenizer(), bos=False)
    assert found.lengths.tolist() == [400, 6, 2, 1] and found.lengths.sum() == texts


def test_a_text_that_is_too_short_is_refused(
    directory: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (tmp_path / 'short.txt').write_text('brief')
    with pytest.raises(SystemExit, match=r'longest document has 5 tokens; a window of 32 needs 33'):
        ask = f'--eval=loss:{tmp_path / "short.txt"}'
        measured(directory, tmp_path / 'out', ask, '--lengths=32')


@pytest.mark.parametrize('closed', ['out', 'out/loss'])
def test_a_folder_that_may_not_be_written_is_said_before_weights_are_read(
    closed: str,
    directory: pathlib.Path,
    text: pathlib.Path,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refused = tmp_path / closed
    refused.mkdir(parents=True)
    probe = tempfile.TemporaryFile

    def denied(dir: pathlib.Path) -> Any:
        if dir == refused:  # as for a user who is not root
            raise PermissionError(errno.EACCES, 'Permission denied', f'{dir}/x')
        return probe(dir=dir)

    monkeypatch.setattr(tempfile, 'TemporaryFile', denied)
    monkeypatch.setattr(interop, 'load', lambda *_: pytest.fail('weights were read'))
    with pytest.raises(SystemExit) as ended:
        measured(directory, tmp_path / 'out', f'--eval=loss:{text}', '--lengths=32')
    assert ended.value.code == f'error: --out={refused} cannot be written: Permission denied'
