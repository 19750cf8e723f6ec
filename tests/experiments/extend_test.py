"""Extension of a checkpoint by the command: its outputs, read by stock `transformers` too."""

from __future__ import annotations

import json
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from nope import data, records
from nope.data import DataConfig
from nope.data.sources import Text
from nope.interop import Described, open_directory, save
from nope.model import LayerKind, ModelConfig
from nope.positions import NoPE, RoPE
from tests import tiny
from tests.experiments import run_test

ROOT = pathlib.Path(__file__).parents[2]
TRAINED_AT, TARGET, WINDOWS = 16, 48, 8
# NoPE in every second layer: only those are scaled.
MIXED = ModelConfig(
    layers=2,
    width=16,
    heads=2,
    kv_heads=1,
    mlp_width=24,
    vocab_size=258,
    head_dim=8,
    pattern=(LayerKind(RoPE()), LayerKind(NoPE())),
)


@pytest.fixture(scope='module')
def text(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp('text')
    run_test.write_texts(folder)
    return folder


@pytest.fixture(scope='module')
def workdir(text: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A work folder in which a random checkpoint was extended."""
    folder = tmp_path_factory.mktemp('work')
    described = Described(MIXED, TRAINED_AT, bos=257, eos=256)
    save(folder / 'checkpoint', tiny.variables(MIXED), described, tokenizer='bytes')
    done = subprocess.run(
        [sys.executable, '-m', 'experiments.run', *arguments(folder / 'out', text)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert 'ranges: reading (before, all ' in done.stderr
    printed = [pathlib.Path(line) for line in done.stdout.split()]
    assert all(path.exists() for path in printed) and len(printed) == 2
    return folder / 'out'


def arguments(workdir: pathlib.Path, text: pathlib.Path) -> list[str]:
    """Of the command that extends the checkpoint beside `workdir`."""
    options = {
        'init': f'hf:{workdir.parent / "checkpoint"}',
        'length': TARGET,
        'data.source': f'text:{text}',
        'search.steps': 10,
        'search.warmup_steps': 2,
        'evaluation.windows': WINDOWS,
        'grid.windows': 4,
        'grid.increment': 0.5,
        'grid.low': 1.0,
    }
    fields = [f'--config.{name}={value}' for name, value in options.items()]
    return ['--config=configs/checkpoints/extend.py', *fields, f'--workdir={workdir}']


def measured(workdir: pathlib.Path, lam: str) -> records.Records:
    found = (records.load(path) for path in (workdir / 'records').glob('positions-*'))
    return next(record for record in found if record.attributes['lam'].startswith(lam))


def test_it_leaves_a_figure_and_a_summary(workdir: pathlib.Path) -> None:
    summary = json.loads((workdir / 'figures' / 'extend' / 'summary.json').read_text())
    assert 'imported from checkpoint (L = 16)' in summary['caption']
    (ranges,) = (claim['measured'] for claim in summary['claims'] if claim['id'] == 'ranges')
    assert list(ranges) == ['before', 'one multiplier for all heads', 'after']
    assert list(ranges['after']['loss_nats']) == ['(0, L]', '(L/2, L]', '(L, 2L]', 'all']


def test_only_layers_without_positions_are_scaled(workdir: pathlib.Path) -> None:
    multipliers_LN = measured(workdir, 'HeadScale')['multiplier']
    np.testing.assert_array_equal(multipliers_LN[0], 1)
    assert (multipliers_LN[1] != 1).any() and (multipliers_LN >= 1).all()


def test_stock_transformers_gives_the_losses_of_the_figure(
    workdir: pathlib.Path, text: pathlib.Path
) -> None:
    (export,) = (workdir / 'exports').glob('extended-*')
    model, report = AutoModelForCausalLM.from_pretrained(
        export, output_loading_info=True, attn_implementation='eager'
    )
    assert not any(report.values())
    source = DataConfig((Text(str(text)),), str(export / 'tokenizer.json'))
    blocks = data.eval_blocks(
        source, split='test', length=TARGET, count=WINDOWS, seed=0, cache=workdir / 'data'
    ).tokens
    tokens = torch.tensor(blocks.astype(np.int64))
    with torch.no_grad():
        logits = model(tokens[:, :-1]).logits.float().transpose(1, 2)
    losses = torch.nn.functional.cross_entropy(logits, tokens[:, 1:], reduction='none')
    expected = losses.double().mean(0).numpy()
    np.testing.assert_allclose(measured(workdir, 'HeadScale')['loss'], expected, atol=1e-5, rtol=0)
    assert np.abs(measured(workdir, '1')['loss'] - expected).max() > 1e-4


UNDRAWABLE = """
import runpy
from experiments import draw

def fail(figure):
    raise ValueError('cannot be drawn')

draw.draw = fail
runpy.run_module('experiments.run', run_name='__main__')
"""


def test_a_figure_that_cannot_be_drawn_holds_up_no_export(
    workdir: pathlib.Path, text: pathlib.Path
) -> None:
    (export,) = (workdir / 'exports').glob('extended-*')
    there = open_directory(export).checksums
    shutil.rmtree(export)
    done = subprocess.run(
        [sys.executable, '-c', UNDRAWABLE, *arguments(workdir, text)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and 'cannot be drawn' in done.stderr
    assert str(export) in done.stdout
    assert open_directory(export).checksums == there


@pytest.mark.slow
def test_the_run_that_an_export_names_is_exported_the_same(
    workdir: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """By a tool that has its folder, which names the checkpoint that it was searched on: also whose
    tokenizer it has."""
    (export,) = (workdir / 'exports').glob('extended-*')
    facts = json.loads((export / 'nope_export.json').read_text())
    assert facts['lam'] == 'fold' and facts['length'] == TARGET
    config = json.loads((export / 'config.json').read_text())
    assert config['max_position_embeddings'] == TARGET
    run, out = workdir / 'runs' / facts['origin']['run'], tmp_path / 'out'
    command = [sys.executable, '-m', 'experiments.cli.export', str(run), str(out)]
    done = subprocess.run(
        [*command, f'--length={TARGET}'], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert open_directory(out).checksums == open_directory(export).checksums
    for name in ('config.json', 'tokenizer.json'):
        assert (out / name).read_text() == (export / name).read_text()
