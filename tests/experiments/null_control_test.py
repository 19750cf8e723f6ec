"""Null control: of models that have learned nothing no claim holds, whatever figure decides it."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Mapping

import pytest
from ml_collections import ConfigDict

from experiments import config_files
from experiments.board.decisions import configs
from experiments.figures.claims.verdict import HOLDS
from tests.quick import QUICK

ROOT = pathlib.Path(__file__).parents[2]
OF_FILES = ('extend', 'checkpoint', 'whole_text', 'table1', 'table3')  # which only the user has
NAMES = sorted({name for names in configs().values() for name in names}.difference(OF_FILES))
# Section -> few of what it makes: steps, windows, prompts.
FEW: Mapping[str, Mapping[str, object]] = {
    'train': {'steps': 2},
    'search': {'steps': 2},
    'finetune': {'steps': 2},
    'evaluation': {'windows': 4},
    'grid': {'windows': 4, 'increment': 0.4},
    'passkey': {'tests': 1},
    'perplexity': {'budget': 64},
    'exact_match': {'tests': 4},
}
SECTIONS = {'positions': 'evaluation', 'lengths': 'evaluation', 'attention_shape': 'evaluation'}
SECTIONS |= {'multiplier_grid': 'grid', 'passkey': 'passkey', 'perplexity': 'perplexity'}
SECTIONS |= {'exact_match': 'exact_match'}


def few(config: ConfigDict) -> dict[str, object]:
    """Fields of a config by path, where they are read: in an entry that has its own."""
    given: dict[str, object] = {'model.width': 32, 'model.mlp_width': 32}
    given['train.warmup_steps'] = 1
    for entries in ('runs', 'evals'):
        for name, entry in config[entries].items():
            read = {section for section in FEW if section in entry}
            if entries == 'runs':
                read |= {'train'} if entry.get('init') is None else set()
            elif section := SECTIONS.get(entry.get('kind', 'positions')):
                read.add(section)
            for section in read:
                own = entry.get(section) or {}
                for field, value in FEW[section].items():
                    place = f'{entries}.{name}.{section}' if field in own else section
                    given[f'{place}.{field}'] = value
    return given


@pytest.fixture(scope='module')
def work(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """One work folder: figures share models."""
    return tmp_path_factory.mktemp('work')


@pytest.mark.parametrize(
    'name', [pytest.param(name, marks=() if name == 'fig1' else pytest.mark.slow) for name in NAMES]
)
def test_no_claim_holds_of_models_that_have_learned_nothing(name: str, work: pathlib.Path) -> None:
    config = config_files.module(name).get_config('quick')
    flags = [f'--config={config_files.place(name)}:quick']
    flags += [f'--config.{path}={value}' for path, value in few(config).items()]
    environment = {**os.environ, 'JAX_PLATFORMS': 'cpu', 'XLA_FLAGS': QUICK}
    done = subprocess.run(
        [sys.executable, '-m', 'experiments.run', *flags, f'--workdir={work}'],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    claims = json.loads((work / 'figures' / name / 'summary.json').read_text())['claims']
    assert claims
    assert [claim['id'] for claim in claims if claim['verdict'] == HOLDS] == []
