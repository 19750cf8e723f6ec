"""Evaluations of text from configs: what they are, and what is refused by name."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from typing import Any

import numpy as np
import pytest

from experiments.build import build
from experiments.evaluations import text_base
from experiments.evaluations.harness import HarnessSpec
from experiments.evaluations.longppl import LongpplSpec
from experiments.evaluations.multiplier_grid import GridSpec
from experiments.evaluations.passkey import PasskeySpec
from experiments.evaluations.perplexity import PerplexitySpec
from experiments.runs import RunSpec
from experiments.specs import identifier, identity
from nope.data import DataConfig, EvalBlocks
from nope.data.sources import Retrieval, Stdlib
from nope.data.tokenizers import ByteTokenizer
from nope.evals.longppl import Rule
from nope.interop import CheckpointFileError
from tests.evals.harness.documents import write_all, write_jsonl
from tests.experiments.build_test import config_of


def test_table_2_measures_windows_of_l_to_8_l_with_an_eighth_as_stride():
    specs = build(config_of('table2')).evals
    assert len(specs) == 29 + 4  # rows and factors, and the grids that multipliers come from
    measured = [spec for spec in specs.values() if isinstance(spec, PerplexitySpec)]
    assert {spec.lengths for spec in measured} == {(64, 128, 256, 512)}
    assert {spec.stride for spec in measured} == {8}
    uniform = specs['uniform_4x@stdlib/seed0']
    assert isinstance(uniform.multiplier, GridSpec) and uniform.multiplier.windows.length == 256


def test_table_2_has_longppl_of_every_row_where_it_is_asked_for():
    specs = build(config_of('table2', 'quick,longppl')).evals
    plain = build(config_of('table2')).evals
    measured = {name: spec for name, spec in specs.items() if isinstance(spec, LongpplSpec)}
    assert specs.keys() - measured.keys() == plain.keys()
    assert len(measured) == 29
    assert {spec.lengths for spec in measured.values()} == {(128, 256, 512)}
    assert {spec.rule for spec in measured.values()} == {Rule(64, 16)}
    (judge,) = {spec.evaluator for spec in measured.values()}
    assert judge == specs['yarn_raw_8x@stdlib/seed0'].run
    for name, spec in measured.items():
        perplexity = plain[name.replace('_longppl', '')]
        assert (spec.run, spec.model) == (perplexity.run, perplexity.model)
    paper = build(config_of('table2', 'paper,longppl')).evals['nope@pg19_longppl/seed0']
    assert (paper.rule, paper.lengths) == (Rule(4096, 1024), (8192, 16_384))


def test_paper_protocols_are_those_of_the_paper():
    perplexity = build(config_of('table2', 'paper')).evals['nope@pg19/seed0']
    assert (perplexity.lengths, perplexity.stride) == ((2048, 4096, 8192, 16_384), 256)
    assert (perplexity.budget, perplexity.bos) == (16_384 * 128, True)
    passkey = build(config_of('fig6', 'paper')).evals
    assert {(s.max_length, s.window) for s in passkey.values() if isinstance(s, PasskeySpec)} == {
        (4096, 2048),
        (16_384, 8192),
        (32_768, 16_384),
    }
    spec = passkey['nope_passkey/seed0']
    assert (spec.template, spec.plan_seed, spec.tests, spec.bos) == ('paper', 42, 10, True)


def passkey_spec(**entry) -> PasskeySpec:
    """Of figure 6's NoPE, with an entry's fields."""
    config = config_of('fig6')
    config.evals['nope_passkey/'] = {'kind': 'passkey', 'run': 'nope', **entry}
    return build(config).evals['nope_passkey/seed0']


def test_prompts_of_chosen_lengths_take_the_place_of_the_plan():
    spec = passkey_spec(lengths=(1.0, 64.0, 8.0))
    assert (spec.lengths, spec.max_length) == ((128, 8192, 1024), 8192)
    assert (spec.extent, spec.window) == (8192, 128)
    old, new = passkey_spec(times=2.0), passkey_spec(lengths=(2.0,))
    assert 'lengths' not in identity(old)
    assert identity(new) == {**identity(old), 'lengths': [256]}
    hard = passkey_spec(times=2.0, needles=4, alike=True, haystack='text')
    changed = {'needles': 4, 'alike': True, 'haystack': 'text'}
    assert identity(hard) == identity(old) | changed
    assert passkey_spec(times=2.0, needles=1, alike=False, haystack='filler') == old
    assert (old.read_split, hard.read_split) == (None, 'validation')


def test_attention_on_keys_has_the_prompts_of_a_passkey_evaluation():
    config = config_of('fig6')
    config.evals['looks/'] = {'kind': 'key_attention', 'run': 'nope', 'lengths': (1.0, 2.0)}
    spec, keys = build(config).evals['looks/seed0'], passkey_spec(lengths=(1.0, 2.0))
    assert spec.slug().startswith('key_attention-256-')
    assert identity(spec) == {**identity(keys), 'type': 'KeyAttentionSpec', 'span': 32}
    config.runs.nope.model = {'weights': 'entmax'}
    with pytest.raises(
        ValueError, match=r"run is 'nope'; its weights are 'entmax'; accepted: soft"
    ):
        build(config)


def test_the_context_of_a_changed_model_is_that_of_the_run_it_stands_on():
    """L, or the length of a search or of fine-tuning, for measurements and for exports."""
    config = config_of('fig6')
    law, sharp = {'lam': {'law': 'log_length'}}, {'model': {'temperature': 'entropy'}}
    with config.unlocked():
        config.runs = {
            'nope': config.runs.nope.to_dict(),
            'tuned': {'init': 'nope', 'finetune': {'times': (1.0, 4.0)}},
            'searched': {'init': 'nope', 'search': {'times': (8.0,)}},
            'law': {'init': 'nope', **law},
            'law_tuned': {'init': 'tuned', **law},
            'sharp_law_tuned': {'init': 'law_tuned', **sharp},
            'sharp_searched': {'init': 'searched', **sharp},
            'less_tuned': {'init': 'tuned', 'without': ((0, 1),)},
        }
        config.evals = {f'{name}/': {'kind': 'passkey', 'run': name} for name in config.runs}
        config.exports = {name: {'run': name} for name in ('nope', 'law_tuned', 'less_tuned')}
        panels = ({'record': 'nope/', 'label': 'NoPE'},)
        config.figure = {'kind': 'passkey_maps', 'panels': panels}
    found = build(config)
    windows = {name.partition('/')[0]: spec.window for name, spec in found.evals.items()}
    assert windows == {
        **dict.fromkeys(('nope', 'law'), 128),
        **dict.fromkeys(('tuned', 'law_tuned', 'sharp_law_tuned', 'less_tuned'), 512),
        **dict.fromkeys(('searched', 'sharp_searched'), 1024),
    }
    lengths = {spec.name.partition('-')[0]: spec.export.length for spec in found.exports}
    assert lengths == {'nope': None, 'law_tuned': 512, 'less_tuned': 512}


@pytest.mark.parametrize(
    ('entry', 'message'),
    [
        ({'lengths': ()}, r'lengths is \(\); it takes one or more multiples of L'),
        ({'lengths': (1.0, 1.0)}, r'lengths is \(1\.0, 1\.0\); each is taken once'),
        ({'lengths': (1.0, 1.001)}, r'lengths .* the same number of tokens'),
        ({'lengths': (-1.0, 2.0)}, r'lengths is -1\.0; it must be finite and above 0'),
        ({'lengths': (0.25, 2.0)}, r'lengths is \(0\.25, 2\.0\); a prompt .* take 45 tokens'),
        ({'lengths': (0.4, 2.0), 'needles': 4}, r'lengths is .* a prompt .* take 63 tokens'),
        ({'needles': 0}, r'needles is 0; accepted: a whole number from 1 to 26'),
        ({'needles': 2.0}, r'needles is 2\.0; accepted: a whole number'),
        ({'haystack': 'essays'}, r"haystack is 'essays'; accepted: filler, text"),
        ({'alike': True}, r'alike is True; accepted: .* needles above 1'),
        ({'lengths': (1.0,), 'times': 2.0}, r'lengths is .*evals\.nope_passkey/\.times stands for'),
    ],
)
def test_lengths_that_do_not_fit_are_named(entry, message):
    with pytest.raises(ValueError, match=rf'evals\.nope_passkey/\.{message}'):
        passkey_spec(**entry)


class Texts:
    """Bench of which windows alone are asked."""

    def __init__(self, longest: int) -> None:
        self.longest, self.asked = longest, []

    def blocks(self, config, *, split, block, length, count, seed):
        if length > self.longest:
            raise ValueError(f'length {length}: no document has so many tokens')
        self.asked.append((config, split, block, length, count))
        tokens = np.full((3, length + 1), ord('x'), np.int32)
        return EvalBlocks(tokens, np.zeros(3, np.int64), 1, 'x')


def test_text_around_the_keys_is_held_out_and_as_long_as_each_prompt():
    spec, bench = passkey_spec(lengths=(1.0, 4.0), haystack='text'), Texts(512)
    prompts = spec._plan(bench)
    assert bench.asked == [(spec.run.data, 'validation', n, n, 100) for n in (128, 512)]
    for question in prompts.questions[::7]:
        assert (prompts.prompt(question).ids == ord('x')).sum() > question.length - 60
    begun = dataclasses.replace(spec.run, data=dataclasses.replace(spec.run.data, bos=True))
    bench.asked.clear()
    dataclasses.replace(spec, run=begun)._plan(bench)
    assert not any(config.bos for config, *_ in bench.asked)  # which would stand in the middle
    passkey_spec(lengths=(1.0, 4.0), needles=4).check(Texts(0))
    with pytest.raises(ValueError, match='length 512: no document'):
        spec.check(Texts(511))


def test_ablations_are_searched_in_the_same_orders():
    runs = {name: spec.run for name, spec in build(config_of('fig9')).evals.items() if '/' in name}
    runs.pop('grid_9x/seed0')
    orders = {}
    for name, run in runs.items():
        orders.setdefault(name.partition('/')[0], set()).add(run.data_seed)
    assert set(orders) == {'full_passkey', 'no_bound_passkey', 'no_init_passkey'}
    assert set(map(frozenset, orders.values())) == {frozenset({314, 1001})}
    full, free = runs['full_passkey/314/seed0'], runs['no_bound_passkey/314/seed0']
    assert (full.train.optimizer.bound, free.train.optimizer.bound) == (1.0, 0.0)
    assert runs['no_init_passkey/1001/seed0'].lam_start == 1.0


def test_searches_of_retrieving_models_read_records_as_long_as_their_windows():
    run = build(config_of('table4')).evals['full_passkey/314/seed0'].run
    assert isinstance(run, RunSpec) and isinstance(run.init, RunSpec)
    assert run.data.sources == (Stdlib(), Retrieval(1152))
    assert run.init.data.sources == (Stdlib(), Retrieval(128))


def test_the_ablations_take_longbench_along():
    specs = build(config_of('table4', 'quick,longbench')).evals
    spec = specs['no_init_longbench/1001/seed0']
    assert (spec.kind, spec.run.lam_start, spec.window) == ('longbench', 1.0, 9 * 128)


def test_where_files_lie_changes_no_identity(tmp_path: pathlib.Path):
    config = config_of('table3')
    first = build(config).evals['nope_longbench/seed0']
    copy = tmp_path / 'elsewhere'
    copy.mkdir()
    for path in pathlib.Path(config.longbench.folder).iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    config.longbench.folder = str(copy)
    assert identifier(build(config).evals['nope_longbench/seed0']) == identifier(first)
    with (copy / 'trec.jsonl').open('a') as stream:
        row = json.loads((copy / 'trec.jsonl').read_text().splitlines()[0])
        stream.write(json.dumps(row | {'input': 'Who?'}) + '\n')
    assert identifier(build(config).evals['nope_longbench/seed0']) != identifier(first)


def test_a_checkpoint_of_another_library_takes_part_where_its_directory_is_named():
    rows = {row['label']: row for row in config_of('table2').figure.rows}
    assert 'mpt=DIR' in rows['MPT 7B']['missing']
    with pytest.raises(CheckpointFileError, match='nowhere'):
        build(config_of('table2', 'quick,bloom=nowhere'))
    with pytest.raises(ValueError, match="'llama=x' is unknown"):
        config_of('table2', 'quick,llama=x')


def test_missing_files_of_longbench_are_named_before_any_work(tmp_path: pathlib.Path):
    config = config_of('table3')
    config.longbench.folder = str(tmp_path)
    with pytest.raises(FileNotFoundError, match=r'narrativeqa\.jsonl.*repobench-p\.jsonl'):
        build(config)


def test_longbench_asks_for_what_the_chosen_data_sets_need_and_names_the_fields():
    config = config_of('table3')
    config.longbench.datasets = ('hotpotqa', 'lcc')
    entry = {'kind': 'longbench', 'run': 'nope', 'window': 1.0}
    config.evals['nope_longbench/'] = entry
    with pytest.raises(
        ValueError, match=r'evals\.nope_longbench/\.window .* longbench\.datasets: '
    ) as found:
        build(config)
    assert 'window is 64; it must be at least 78, 64 tokens for an answer of lcc' in str(
        found.value
    )
    assert 'longbench.max_length with longbench.beyond=True' in str(found.value)
    config.longbench.datasets = ('hotpotqa',)
    spec = build(config).evals['nope_longbench/seed0']
    assert (spec.max_length, spec.window) == (64 - 32 - 12, 64)
    (program,) = spec.programs(lambda length, rules: 1)
    assert program.options.new_tokens == 32
    config.longbench.folder = ''
    with pytest.raises(ValueError, match=r'each of longbench\.datasets \(hotpotqa\), as'):
        build(config)


def test_answers_of_longbench_end_with_the_positions():
    config = config_of('table3')
    config.runs.nope.model = {'position': {'kind': 'learned', 'size': 80}}
    config.longbench.update({'datasets': ('hotpotqa',), 'max_length': 60, 'beyond': True})
    config.evals = {'nope/': {'kind': 'longbench', 'run': 'nope', 'window': 1.0}}
    with pytest.raises(ValueError, match=r'sequences of 92 tokens; learned positions end at 80'):
        build(config)


def harness_spec(data: pathlib.Path, **section) -> HarnessSpec:
    """Of table 1's RoPE model, on PIQA with an answer of 322 bytes."""
    config = config_of('table1')
    config.harness.files = str(data)
    config.harness.tasks = ('piqa,winogrande',)
    config.harness.update(section)
    return build(config).evals['rope_tasks/seed0']


@pytest.fixture
def tasks(tmp_path: pathlib.Path) -> pathlib.Path:
    write_all(tmp_path)
    row = {'goal': 'Open a door', 'sol1': 'x' * 321, 'sol2': 'sing', 'label': 0}
    write_jsonl(tmp_path / 'piqa.jsonl', [row])
    return tmp_path


def test_answers_that_are_longer_than_the_window_are_refused_before_training(tasks):
    with pytest.raises(ValueError) as found:
        harness_spec(tasks, beyond=False).check(None)
    assert str(found.value) == (
        f'evals.rope_tasks/.window stands for 64 tokens; an answer of piqa, {" " + 39 * "x"!r}..., '
        'has 322 tokens (too long are answers of piqa). Accepted: '
        '--config.evals.rope_tasks/.window=5.032 or more, or --config.harness.beyond=True, which '
        'reads such answers whole'
    )
    harness_spec(tasks, beyond=False, limit=1, tasks=('winogrande',)).check(None)


def test_small_models_read_answers_beyond_their_window(tasks):
    spec = harness_spec(tasks)
    assert (spec.tasks, spec.window, spec.beyond) == (('piqa', 'winogrande'), 64, True)
    spec.check(None)
    assert not config_of('table1', 'paper').harness.beyond
    config = config_of('table1')
    config.harness.files = str(tasks)
    config.harness.beyond = False
    plain = identity(build(config).evals['rope_tasks/seed0'])
    assert 'beyond' not in plain and 'typed' not in plain
    learned = {'kind': 'learned', 'size': 64}
    config.harness.beyond, config.runs.rope.model.position = True, learned
    with pytest.raises(ValueError, match=r'beyond is True, but an answer of piqa.* end at 64'):
        build(config).evals['rope_tasks/seed0'].check(None)


def test_missing_data_of_tasks_name_the_field_that_asks_for_them(tmp_path: pathlib.Path):
    with pytest.raises(FileNotFoundError, match=r'^harness\.files, for harness\.tasks: .* lacks'):
        harness_spec(tmp_path)
    with pytest.raises(ValueError, match=r'the data of harness\.tasks \(piqa, winogrande\), which'):
        harness_spec(pathlib.Path(), files='')
    with pytest.raises(FileNotFoundError, match=r'include is .*nowhere'):
        harness_spec(tmp_path, tasks=('mine',), include=str(tmp_path / 'nowhere'))


def test_a_harness_record_is_of_the_files_of_its_own_tasks_and_not_of_what_python_leaves(tasks):
    include = tasks / 'mine'
    include.mkdir()
    (include / 'mine.jsonl').write_text('{}')
    name = harness_spec(tasks, include=str(include)).fingerprint
    for left in ('__pycache__/utils.cpython-311.pyc', '.cache/x', '.DS_Store'):
        (include / left).parent.mkdir(exist_ok=True)
        (include / left).write_text('left')
    assert harness_spec(tasks, include=str(include)).fingerprint == name
    (include / 'mine.jsonl').write_text('{"a": 1}')
    assert harness_spec(tasks, include=str(include)).fingerprint != name


@pytest.mark.parametrize(('ends', 'names'), [((256,), []), ((256, 65), [[256, 65]])])
def test_records_are_of_the_ends_of_texts_where_there_are_several(monkeypatch, ends, names):
    """So that those of a tokenizer with EOS alone keep their names."""
    tokenizer = dataclasses.replace(ByteTokenizer(), stop_ids=ends)
    monkeypatch.setattr(text_base, 'load_tokenizer', lambda name: tokenizer)
    run = build(config_of('table4')).evals['full_passkey/314/seed0'].run
    assert text_base.ends_of(run) == names


def test_multipliers_of_each_length_are_not_chosen_under_another_encoding_or_law():
    config = config_of('fig_dynamic')
    config.evals['x/'] = {'kind': 'lengths', 'run': 'nope', 'times': (1.0, 2.0), 'grid': {}}
    assert len(build(config).evals['x/seed0'].grids) == 2
    config.evals['x/'].position = {'kind': 'rope'}
    with pytest.raises(ValueError, match=r'evals\.x/\.grid is .* not with position'):
        build(config)
    config = config_of('laws')
    config.evals['trained_log_keys/'].grid = {}
    with pytest.raises(ValueError, match=r'grid is .* trained with lambda of the law LogPosition'):
        build(config)


@pytest.mark.parametrize(
    ('name', 'field', 'value', 'message'),
    [
        ('table2', 'perplexity.budget', 1, r'perplexity\.budget'),
        ('table2', 'corpora.stdlib.split', 'dev', r"corpora\.stdlib\.split is 'dev'"),
        ('table2', 'evals.nope@stdlib/.corpus', 'c4', r"corpus is 'c4'; .*stdlib"),
        ('table2', 'evals.nope@stdlib/.times', (), r'times is \(\); it takes one'),
        ('table2,longppl', 'longppl.short', 128, r'times is .* longer than .* 128 tokens'),
        ('table2,longppl', 'longppl.gain', 0.0, r'longppl\.gain is 0\.0; it must be .* above 0'),
        ('table2,longppl', 'longppl.budget', 511, r'longppl\.budget is 511; .* at least 512'),
        (
            'table2,longppl',
            'evals.nope@stdlib_longppl/.evaluator',
            'nobody',
            r"evaluator names 'nobody'",
        ),
        ('fig8', 'passkey.template', 'long', r"passkey\.template is 'long'; accepted: paper"),
        ('fig8', 'passkey.tests', 11, r'passkey\.tests is 11; accepted: 1 to 10'),
        ('fig8', 'passkey.seed', -1, r'passkey\.seed is -1; accepted: whole numbers from 0'),
        ('fig8', 'evals.alibi_passkey/.times', 0.0, r'times is 0'),
        ('table3', 'longbench.beams', 0, r'longbench\.beams'),
        ('table3', 'evals.nope_longbench/.longbench.beyond', False, r'more than the window, 64'),
        ('table2', 'evals.nope@stdlib/.times', (2.0, 2.0), r'each is taken once'),
    ],
)
def test_bad_fields_are_named(name, field, value, message):
    name, _, more = name.partition(',')
    config = config_of(name, f'quick,{more}' if more else 'quick')
    *sections, last = field.split('.')
    section = config
    for part in sections:
        section = section[part]
    with config.ignore_type():
        section[last] = value
    with pytest.raises(ValueError, match=message):
        build(config)


def test_a_corpus_takes_the_fields_of_its_kind_of_source(tmp_path: pathlib.Path) -> None:
    (tmp_path / 'a.jsonl').write_text('{"text": "a", "from": "b"}\n')

    def corpus_of(**fields: Any) -> DataConfig:
        config = config_of('table2')
        config.corpora.stdlib = {'source': f'jsonl:{tmp_path / "a.jsonl"}', **fields}
        spec = next(s for s in build(config).evals.values() if isinstance(s, PerplexitySpec))
        return spec.corpus

    left_out = corpus_of(leave_out=(('from', 'b'),))
    assert left_out.sources[0].leave_out == (('from', 'b'),)  # type: ignore[attr-defined]
    assert left_out != corpus_of()
    config = config_of('table2')
    config.corpora.stdlib = {'source': 'jsonl:a.jsonl'}
    settings = {k: v for k, v in build(config).settings.items() if k.startswith('corpora.')}
    assert settings == {
        'corpora.stdlib.field': 'text',
        'corpora.stdlib.source': 'jsonl:a.jsonl',
        'corpora.stdlib.split': 'test',
        'corpora.stdlib.tokenizer': 'bytes',
    }
    with pytest.raises(ValueError, match=r'corpora\.stdlib\.nesting is unknown; .*leave_out'):
        corpus_of(nesting=3)
