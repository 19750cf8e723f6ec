"""What is counted of a program: products, and what its collectives bring."""

from __future__ import annotations

import dataclasses
import json
import logging
import math
import pathlib
import sys
import tempfile

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from experiments import ahead, programs
from nope import sharding
from nope.data import DataConfig, TaskData
from nope.evals import longbench
from nope.evals.generation import Options
from nope.model import ModelConfig, counts
from nope.positions import DynamicNTK, Linear, NoPE, Position, RoPE, Scaling
from nope.sharding import MeshConfig, make_mesh
from nope.training import optim
from nope.training.config import check_whole_sequences
from tests import tiny
from tools.bench import aot, aot_programs, aot_record, flops, hlo
from tools.bench.harness import ROOT


def traced(function, *arguments):
    return jax.jit(function).trace(*arguments).jaxpr


def step(length: int = 8, batch: int = 8, model: ModelConfig | None = None, **numbers):
    optimizer = optim.OptimizerConfig(**{'learning_rate': 1e-3, **numbers})
    return programs.Step(model or tiny.model(), optimizer, length, batch, 1)


def rope(scaling: Scaling) -> ModelConfig:
    return tiny.model(position=RoPE(scaling=scaling))


def test_products_are_counted_as_often_as_they_run() -> None:
    x, w = jnp.ones((8, 16)), jnp.ones((5, 16, 16))

    def scanned(x, w):
        return jax.lax.scan(lambda x, w: (jax.checkpoint(lambda x: jnp.sin(x @ w))(x), None), x, w)

    one = 2 * 8 * 16 * 16
    assert flops.count(traced(scanned, x, w)) == (5 * one, 0)
    # Backward: both products of every layer, and the forward one again.
    gradient = jax.grad(lambda w: scanned(x, w)[0].sum())
    assert flops.count(traced(gradient, w)) == (5 * one * (1 + 1 + 2), 0)


def test_branches_shards_loops_and_attention_are_counted() -> None:
    x, one = jnp.ones((8, 8)), 2 * 8**3
    branches = traced(lambda x: jax.lax.cond(x[0, 0] > 0, lambda x: x @ x, lambda x: x, x), x)
    assert flops.count(branches) == (one, 0)
    spec = PartitionSpec('data')
    with jax.set_mesh(make_mesh(MeshConfig(data=4, fsdp=2))):
        mapped = jax.shard_map(lambda x: x @ x.T, in_specs=spec, out_specs=spec, check_vma=False)
        assert flops.count(traced(mapped, x)) == (8 * 2 * 2 * 8 * 2, 0)
    loop = traced(lambda x: jax.lax.while_loop(lambda x: x[0, 0] < 9, lambda x: x @ x, x), x)
    assert flops.count(loop, rounds=5) == (5 * one, 0)
    with pytest.raises(ValueError, match='how often it runs is not known'):
        flops.count(loop)
    weights = jnp.ones((3, 8, 4))
    products = traced(lambda x: jnp.einsum('bij,bkj->bik', x, x), weights)
    assert flops.count(products) == (0, 2 * 3 * 8 * 8 * 4)


def test_the_flops_of_a_step_are_those_of_the_convention() -> None:
    """Where nothing is recomputed but the head's product, in the backward pass of the loss."""
    model = tiny.model(remat='none')
    found = step(16, 4, model=model)
    assert found.model_flops == 4 * 16 * counts.training_flops(model, 16)
    for program in (found, step(64, 4, model=model, trains='lam', bound=1.0)):
        head = 2.0 * model.vocab_size * model.width * 4 * program.length
        extra = aot.computed(program) - program.model_flops
        assert extra in (0, head)
    again = aot.computed(step(16, 4, model=tiny.model(remat='full')))
    assert aot.computed(found) < again < 8 / 6 * aot.computed(found)


def test_the_flops_of_a_piece_of_a_prompt_are_no_more_than_it_computes() -> None:
    """Of the keys that it computes with half are of the future, in the mean over pieces, and the
    cache has slots for one piece more."""
    for vocab, length in ((64, 64), (64, 4096), (4096, 4096)):
        program = programs.Scoring(tiny.model(vocab_size=vocab), length, 4)
        computed = aot.computed(program)
        assert 0.4 * computed <= program.model_flops <= computed


def received(function, mesh, *shaped, rounds: int = 0) -> dict[str, float]:
    """Bytes that collectives of a function bring, of float32 arguments [shape] placed by [spec]."""
    arguments = [
        jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, PartitionSpec(*spec)))
        for shape, spec in shaped
    ]
    out = NamedSharding(mesh, PartitionSpec())
    with jax.set_mesh(mesh):
        program = jax.jit(function, out_shardings=out).lower(*arguments).compile()
    return hlo.CompiledText(program.as_text(), rounds).collective_bytes()


def test_collectives_bring_what_the_other_devices_have() -> None:
    mesh = make_mesh(MeshConfig(data=8))
    rows = (64, 128), ('data',)
    assert received(lambda x: x * 2, mesh, rows) == {'all-gather': 64 * 128 * 4 * 7 / 8}
    assert received(lambda x: x.sum(0), mesh, rows) == {'all-reduce': 2 * 128 * 4 * 7 / 8}


def test_collectives_in_a_loop_count_as_often_as_it_runs() -> None:
    mesh = make_mesh(MeshConfig(data=8))

    def scanned(x, w):
        return jax.lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, w)[0]

    whole = 4 * 64 * 4 * 7 / 8
    assert received(scanned, mesh, ((4, 64), ()), ((6, 64, 64), (None, 'data'))) == {
        'all-reduce': 6 * 2 * whole, 'all-gather': whole
    }  # fmt: skip

    def alone(x):
        return jax.lax.while_loop(lambda x: x[0, 0] < 0.5, jnp.sqrt, x).sum()

    def together(x):
        return jax.lax.while_loop(lambda x: x[0, 0] < 0.5, lambda x: x / x.sum(), x).sum()

    rows = (64, 4), ('data',)
    assert received(alone, mesh, ((4, 64), ())) == {}
    with pytest.raises(ValueError, match='how often a loop runs is not known'):
        received(together, mesh, rows)
    assert received(together, mesh, rows, rounds=3)


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
    monkeypatch.setattr(aot, 'lowered', lambda program, mesh: repr(program))
    monkeypatch.setattr(aot, 'line', line)
    with pytest.raises(KeyboardInterrupt):
        aot.main()
    before = printed()
    assert len(before) == 2 and aot.main() == 1
    lines = printed()
    assert lines[:2] == before and compiled[2] == compiled[3]
    assert len(compiled) == len(lines) + 1
    assert [json.loads(text) for text in out.read_text().splitlines()] == lines


def test_a_program_that_other_code_lowers_to_the_same_is_not_compiled_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    compiled: list[str] = []

    def get(code: str, digest: str, lowered: str, compiler: str = 'libtpu') -> dict:
        monkeypatch.setattr(aot_record, 'code', lambda: code)
        record = aot_record.Record(tmp_path / 'lines.jsonl', {'compiler': compiler})
        return record.get(digest, lambda: lowered, lambda: compiled.append(lowered) or {'fits': 1})

    named = {'digest': 'a program', 'code': 'old code', 'lowered': 'its text'}
    assert get(code='old code', digest='a program', lowered='its text') == {
        'fits': 1, 'compiler': 'libtpu', **named
    }  # fmt: skip
    assert get('new code', 'the program, renamed', 'its text')['code'] == 'new code'
    assert compiled == ['its text']
    for _ in range(2):  # then it is not lowered again
        get('new code', 'a program', 'another text')
    assert compiled == ['its text', 'another text']
    get('new code', 'a program', 'another text', compiler='another')
    assert len(compiled) == 3


def test_a_program_is_the_same_wherever_its_kernels_stand() -> None:
    def digest(kernel: str, line: int, size: int = 8) -> str:
        module = f'stablehlo.custom_call @kernel {{config = "{kernel * 1000}"}} tensor<{size}xf32>'
        return aot_record.program_digest(
            module, f'kernel at /here/kernel.py:{line} 0x{line:x}; sin'
        )

    assert digest('a', 3) == digest('b', 40)
    assert digest('a', 3) != digest('a', 3, size=16)


@pytest.mark.parametrize('topology', ['v5e:4x4', 'h200:16', 'h100:1'])
def test_the_page_says_what_the_records_have(topology: str) -> None:
    name = f'{topology.replace(":", "-")}.jsonl'
    text = (ROOT / 'tools/bench/compiled' / name).read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert len({line['lowered'] for line in lines}) == len(lines)
    assert all(line['fits'] and line['topology'] == topology for line in lines)
    ((compiler, capacity),) = {(line['compiler'], line['capacity_gib']) for line in lines}
    # A float32 optimizer has two moments; a layer computed again has 8 FLOPs a weight, not 6.
    for line in lines:
        if line['program'] == 'train 2048' and line['position'] == 'none':
            assert 1.9 < line['optimizer_gib'] / line['parameters_gib'] < 2.1
            assert 1.2 < line['tflops'] / line['model_tflops'] < 1.4 and 0 < line['mfu_bound'] < 1
    largest = max(line['total_gib'] for line in lines)
    row = f'| [{name}](bench/compiled/{name}) | {compiler} | {len(lines)} | {largest:.1f} | '
    assert f'{row}{capacity:.3g} |' in (ROOT / 'tools/README.md').read_text()


def test_what_a_program_lowers_to_is_named_the_same_again() -> None:
    """By what is computed alone: neither by the call nor by the numbers of a schedule's text."""
    mesh = make_mesh(MeshConfig(data=2), jax.devices()[:2])
    wrong = dataclasses.replace(step(16), accumulate=3)
    digests = [aot.lowered(x, mesh) for x in (step(16), step(16), step(32), wrong, wrong)]
    assert digests[0] == digests[1] and digests[3] == digests[4]
    assert len(set(digests)) == 3


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
    assert found['tflops'] >= 0 and found['compile_seconds'] > 0
    assert 'fits' not in found  # a CPU has no data sheet
    sheet = dataclasses.replace(aot.hardware.DEVICES['H100'], memory=float(held))
    monkeypatch.setattr(aot.hardware, 'known', lambda kind: sheet)
    found = aot.analyse(program, mesh)
    assert not found['fits'] and '[' in found['largest']
    assert found['bound_seconds'].keys() == {'compute', 'memory', 'network'}
    assert 0 <= found['mfu_bound'] <= 1
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


def test_sizes_of_groups_and_of_shapes_are_read() -> None:
    groups = {
        "replica_groups=mesh['a'=2,'b'=8] {'b'}, dimensions={0}": 8,
        "replica_groups=mesh['a'=2,'b'=8] {'a','b'}": 16,
        'replica_groups=[4,2]<=[8]': 2,
        'replica_groups={{0,1,2},{3,4,5}}': 3,
        'channel_id=1': 0,
    }
    assert {text: hlo._group_size(text) for text in groups} == groups
    shapes = {'(s32[], bf16[8,4]{1,0:T(8,128)})': 68, 'pred[3]': 3, 'f8e4m3fn[2,2]': 4, 'u4[6]': 3}
    assert {text: hlo._bytes(text) for text in shapes} == shapes
