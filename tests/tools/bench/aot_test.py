"""Programs of configs, compiled for devices that are not there."""

from __future__ import annotations

import dataclasses
import json
import logging
import math
import pathlib
import sys
import tempfile

import jax
import pytest

from experiments import ahead, programs
from nope import sharding
from nope.data import DataConfig, TaskData
from nope.evals import longbench
from nope.evals.generation import Options
from nope.model import ModelConfig
from nope.positions import DynamicNTK, Linear, NoPE, Position, RoPE, Scaling
from nope.sharding import MeshConfig, make_mesh
from nope.training import optim
from nope.training.config import check_whole_sequences
from tests import tiny
from tools.bench import aot, aot_programs, aot_record
from tools.bench.harness import ROOT


def step(length: int = 8, batch: int = 8, model: ModelConfig | None = None, **numbers):
    optimizer = optim.OptimizerConfig(**{'learning_rate': 1e-3, **numbers})
    return programs.Step(model or tiny.model(), optimizer, length, batch, 1)


def rope(scaling: Scaling) -> ModelConfig:
    return tiny.model(position=RoPE(scaling=scaling))


@pytest.mark.parametrize(('asked', 'kept'), [
    ([step(8, 8), step(16, 4), programs.Evaluation(tiny.model(), True, 4, 8)], [1, 2]),
    ([
        step(16, model=rope(Linear(2.0))),
        step(32, model=rope(Linear(4.0))),
        step(8, model=rope(DynamicNTK(2.0, 8))),
    ], [1, 2]),
    ([
        step(trains='lam', decay_steps=20, warmup_steps=2),
        step(learning_rate=1e-2, trains='lam', schedule='linear_tail'),
        step(trains='lam', bound=0.0),
    ], [0, 2]),
    ([
        programs.Continuing(tiny.model(), options, length, 2)
        for length, options in ((8, Options(4)), (6, Options(8)), (4, Options(4, beams=2)))
    ], [1, 2]),
])  # fmt: skip
def test_of_programs_that_differ_in_shape_or_numbers_the_longest_stay(
    asked: list[programs.Program], kept: list[int]
) -> None:
    mesh = make_mesh(MeshConfig())
    found = aot_programs.longest({(program, mesh): str(i) for i, program in enumerate(asked)})
    assert found == {(asked[i], mesh): str(i) for i in kept}


def test_a_call_goes_on_where_an_earlier_one_ended(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path
) -> None:
    compiled: list[programs.Program] = []

    def line(program: programs.Program, mesh: object, config: str) -> dict:
        compiled.append(program)
        if len(compiled) == 3:
            raise KeyboardInterrupt
        return {'config': config, 'fits': len(compiled) != 2}

    def printed() -> list[dict]:
        return [json.loads(text) for text in capsys.readouterr().out.splitlines()]

    out = tmp_path / 'lines.jsonl'
    asked = ['--config=configs/first_paper/fig1.py:paper', '--longest', f'--out={out}']
    monkeypatch.setattr('sys.argv', ['aot', *asked])
    monkeypatch.setattr(aot.targets, 'devices', lambda topology: jax.devices())
    monkeypatch.setattr(aot.targets, 'compiler', lambda topology: 'libtpu')
    monkeypatch.setattr(aot, 'line', line)
    with pytest.raises(KeyboardInterrupt):
        aot.main()
    before = printed()
    assert len(before) == 2 and aot.main() == 1
    lines = printed()
    assert lines[:2] == before and compiled[2] == compiled[3]
    assert len(compiled) == len(lines) + 1
    assert [json.loads(text) for text in out.read_text().splitlines()] == lines


def test_a_program_is_compiled_once_by_each_compiler(tmp_path: pathlib.Path) -> None:
    compiled: list[str] = []

    def get(program: str, compiler: str = 'libtpu') -> dict:
        record = aot_record.Record(tmp_path / 'lines.jsonl', {'compiler': compiler})
        return record.get(program, lambda: compiled.append(program) or {'fits': True})

    assert get('a') == get('a') and get('a') != get('b')
    assert compiled == ['a', 'b']
    assert get('a', compiler='another') == {**get('a'), 'compiler': 'another'}
    assert compiled == ['a', 'b', 'a']


@pytest.mark.parametrize('topology', ['v5e:4x4', 'h200:16', 'h100:1'])
def test_the_page_says_what_the_records_have(topology: str) -> None:
    name = f'{topology.replace(":", "-")}.jsonl'
    text = (ROOT / 'tools/bench/compiled' / name).read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert len({line['digest'] for line in lines}) == len(lines)
    assert all(line['fits'] and line['topology'] == topology for line in lines)
    ((compiler, capacity),) = {(line['compiler'], line['capacity_gib']) for line in lines}
    # A float32 optimizer has two moments.
    for line in lines:
        if line['program'] == 'train 2048' and line['position'] == 'none':
            assert 1.9 < line['optimizer_gib'] / line['parameters_gib'] < 2.1
    largest = max(line['total_gib'] for line in lines)
    row = f'| [{name}](bench/compiled/{name}) | {compiler} | {len(lines)} | {largest:.1f} | '
    assert f'{row}{capacity:.3g} |' in (ROOT / 'tools/README.md').read_text()


def test_an_output_that_is_no_list_of_lines_is_refused(tmp_path: pathlib.Path) -> None:
    out = tmp_path / 'notes.txt'
    out.write_text('compiled on Monday\n')
    for path, said in (
        (out, r'--out=.*notes\.txt: not lines of this tool'),
        (tmp_path / 'nowhere' / 'lines.jsonl', r'--out=.*nowhere.*: No such file or directory'),
    ):
        with pytest.raises(SystemExit, match=said):
            aot_record.Record(path, {'topology': 'v5e:4x4'})
    assert out.read_text() == 'compiled on Monday\n'


def test_all_configs_are_those_with_a_paper_size() -> None:
    found = aot_programs.configs()
    assert {'configs/first_paper/fig4.py:paper', 'configs/first_paper/table3.py:paper'} < set(found)
    assert {
        'configs/first_paper/table2.py:paper,longppl',
        'configs/first_paper/table4.py:paper,longbench',
    } < set(found)
    assert not {'configs/checkpoints/extend.py:paper', 'configs/shared/base.py:paper'} & set(found)


@pytest.mark.parametrize('config', aot_programs.configs())
def test_every_paper_config_is_built_without_files(
    config: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path
) -> None:
    """Its programs are listed too, on meshes that do not split what they need whole."""
    if config.startswith('configs/first_paper/table1.py'):
        pytest.importorskip('lm_eval')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path))
    with caplog.at_level(logging.WARNING):
        experiment = aot_programs.load(config)
    assert not caplog.records
    assert not list(tmp_path.iterdir())
    later = experiment.compute.later_mesh
    if later.fsdp == 8:  # of 16 devices; here are 8, of which 2 take a sequence
        compute = dataclasses.replace(
            experiment.compute, later_mesh=dataclasses.replace(later, fsdp=4)
        )
        experiment = dataclasses.replace(experiment, compute=compute)
    found = list(ahead.programs(experiment, jax.devices()))
    assert found
    for program, mesh in found:
        check_whole_sequences(program.model, mesh, 'its mesh')


def test_files_that_are_named_are_read(tmp_path: pathlib.Path) -> None:
    aot_programs.write_longbench(tmp_path)
    for name, dataset in longbench.DATASETS.items():
        assert len(longbench.read(tmp_path, [name])) == dataset.samples
    asked = f'longbench.folder={tmp_path}'
    (spec, *_) = aot_programs.load('table3:paper', [asked]).evals.values()
    assert spec.folder == str(tmp_path)
    (tmp_path / 'trec.jsonl').unlink()
    with pytest.raises(FileNotFoundError, match=r'trec\.jsonl missing'):
        aot_programs.load('table3:paper', [asked])


def test_a_change_of_a_section_that_is_not_there_is_refused() -> None:
    changes = ['longbnch.folder=/nowhere']
    aot_programs.load('fig4:paper', changes, some=True)
    with pytest.raises((KeyError, AttributeError)):
        aot_programs.load('fig4:paper', changes)


@pytest.mark.parametrize(('asked', 'said', 'mends'), [
    (['table3', '--set=longbench.folder=/nowhere'], ['longbench.folder', "'/nowhere'"], True),
    (['table1'], ['lm_eval'], False),
])  # fmt: skip
def test_what_a_config_lacks_is_named(
    asked: list[str], said: list[str], mends: bool, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    config, *changes = asked
    monkeypatch.setitem(sys.modules, 'lm_eval', None)
    monkeypatch.setattr('sys.argv', ['aot', f'--config={config}:paper', *changes])
    assert aot.main() == 2
    message = capsys.readouterr().err
    assert message.startswith(f'error: {config}:paper: ')
    assert all(word in message for word in said) and ('--set=' in message) == mends


@pytest.mark.parametrize(('arrays', 'mesh', 'position', 'parts', 'integers'), [
    # Tokens, targets, segments and positions; tokens and targets.
    (DataConfig(documents='apart').arrays, {'data': 2, 'context': 2}, RoPE(), 2, 4),
    (TaskData.arrays, {'data': 2}, NoPE(), 1, 2),
])  # fmt: skip
def test_a_step_is_lowered_without_data(
    arrays, mesh: dict, position: Position, parts: int, integers: int
) -> None:
    model = tiny.model(attention=None, position=position)
    program = programs.Step(model, optim.OptimizerConfig(1e-3), 16, 8 * parts, parts, arrays)
    placed = make_mesh(MeshConfig(**mesh), jax.devices()[: math.prod(mesh.values())])
    with sharding.use(placed, program.rules):
        text = program.trace(placed).lower().as_text()
    assert text.count(f'tensor<{parts}x8x16xi32> {{') == integers
    assert text.count(f'tensor<{parts}x8x16xf32> {{') == 1


def test_a_line_says_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    program, mesh = step(16), make_mesh(MeshConfig(fsdp=8))
    found = aot.analyse(program, mesh)
    state = program.state(mesh)
    held = sum(
        math.prod(leaf.sharding.shard_shape(leaf.shape)) * leaf.dtype.itemsize
        for leaf in jax.tree.leaves(state)
    )
    assert found['compile_seconds'] > 0
    assert 'fits' not in found  # a CPU has no data sheet
    sheet = dataclasses.replace(aot.hardware.DEVICES['H100'], memory=float(held))
    monkeypatch.setattr(aot.hardware, 'known', lambda kind: sheet)
    assert not aot.analyse(program, mesh)['fits']
    sheet = dataclasses.replace(sheet, memory=80 * 2**30)
    found = aot.analyse(program, mesh)
    assert found['fits'] and found['capacity_gib'] == 72  # the rest is the runtime's


def test_a_line_says_how_much_a_step_that_fits_computes_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = step(64, 8, model=tiny.model(layers=4, mlp_width=512, unroll=1, remat='fit'))
    mesh = make_mesh(MeshConfig(), jax.devices()[:1])
    sheet = aot.hardware.DEVICES['H100']
    for memory, chosen in ((sheet.memory, 'none'), (1.0, 'full')):
        device = dataclasses.replace(sheet, memory=memory)
        monkeypatch.setattr(aot.hardware, 'known', lambda kind, device=device: device)
        found = aot.line(asked, mesh, 'one')
        named = dataclasses.replace(asked, model=dataclasses.replace(asked.model, remat=chosen))
        assert found['remat'] == chosen and found['fits'] == (chosen == 'none')
        assert found['temporary_gib'] == aot.analyse(named, mesh)['temporary_gib'] > 0


def test_meshes_are_read() -> None:
    assert aot._sizes('fsdp=8,context=2') == {'fsdp': 8, 'context': 2}
