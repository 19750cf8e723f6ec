"""RULER in configs: lengths, files of the user, programs, and what is refused before any work."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest
from ml_collections import ConfigDict

from configs.checkpoints import checkpoint
from experiments.bench import Bench
from experiments.build import build
from experiments.evaluations.ruler import RulerSpec
from experiments.workspace import Workspace
from nope.evals.ruler import FREE
from nope.interop import Described, save
from nope.model import ModelConfig
from nope.training.config import Compute
from tests import tiny

MODEL = ModelConfig(
    layers=2, width=16, heads=2, kv_heads=1, mlp_width=24, vocab_size=258, head_dim=8
)


@pytest.fixture(scope='module')
def directory(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    path = tmp_path_factory.mktemp('models') / 'nope'
    save(path, tiny.variables(MODEL), Described(MODEL, 32, bos=257, eos=256), tokenizer='bytes')
    return path


def config(directory: pathlib.Path, **section: Any) -> ConfigDict:
    found = checkpoint.get_config('nothing,ruler')
    found.init, found.lengths = f'hf:{directory}', (512.0, 128.0, 256.0)
    found.ruler.update({'leave_out': False, **section})
    return found


def spec(directory: pathlib.Path, **section: Any) -> RulerSpec:
    found = build(config(directory, **section)).evals['nothing_ruler']
    assert isinstance(found, RulerSpec)
    return found


def test_lengths_are_multiples_of_the_training_length_or_tokens(directory: pathlib.Path) -> None:
    assert spec(directory).lengths == (4096, 8192, 16_384)
    assert spec(directory, lengths=(3000, 1000)).lengths == (1000, 3000)


def test_prompts_are_of_tasks_whose_files_are_there_and_bos_unless_asked_otherwise(
    directory, tmp_path
) -> None:
    (tmp_path / 'PaulGrahamEssays.json').write_text('{"text": "One. Two."}')
    essays = ('niah_single_2', 'niah_single_3', 'niah_multikey_1', 'niah_multivalue')
    assert {*spec(directory, folder=str(tmp_path), samples=1).tasks} >= {*FREE, *essays}
    found = spec(directory)
    assert (found.tasks, found.samples, found.plan_seed, found.bos) == (FREE, 50, 42, False)
    other = spec(directory, tasks=('vt,fwe',), bos=True)
    assert (other.tasks, other.bos) == (('vt', 'fwe'), True)


@pytest.mark.parametrize(
    ('section', 'message'),
    [
        ({'tasks': ('niah',)}, r"ruler\.tasks is .*'niah'.*accepted: niah_single_1, "),
        ({'samples': 0}, r'ruler\.samples is 0; it must be at least 1'),
        ({'lengths': (0,)}, r'ruler\.lengths is \(0,\); accepted: different numbers of tokens'),
        ({'lengths': (4096, 4096)}, r'ruler\.lengths .*different numbers'),
        ({'tasks': ('qa_1',)}, r'ruler\.folder is empty: .*files of ruler\.tasks.*squad\.json'),
        ({'tasks': ('qa_2',), 'folder': '.'}, r"ruler\.folder is '\.'; it has none of .*hotpotqa"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_its_field(directory, section, message) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        spec(directory, **section)


def test_a_length_without_room_for_a_prompt_is_refused_before_a_model_reads(
    directory: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    bench = Bench(Workspace(tmp_path), Compute(), 4096)
    with pytest.raises(ValueError, match=r'ruler\.lengths: vt: length is 1024 tokens; the shortes'):
        spec(directory, tasks=('vt',), lengths=(1024, 4096)).check(bench)
    spec(directory, tasks=('vt',), lengths=(2048,)).check(bench)
    with pytest.raises(ValueError, match=r'ruler\.lengths: vt: length is 1024 tokens'):
        spec(directory, tasks=('vt',), lengths=(1024, 4096), leave_out=True)


def test_each_budget_has_a_program_for_each_length(directory: pathlib.Path) -> None:
    found = spec(directory, tasks=('vt', 'cwe', 'niah_single_1'), lengths=(4096, 8192))
    programs = list(found.programs(lambda length, rules: 1))
    budgets = [program.options.new_tokens for program in programs]  # type: ignore[attr-defined]
    assert budgets == [30, 120, 128] * 2
