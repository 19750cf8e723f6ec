"""tools.bench.evals on a tiny model: what it times are the evaluations, on both sides."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from nope.data.templates import PAPER
from nope.evals import passkey
from nope.evals.generation import Options
from nope.positions import RoPE
from tests import tiny
from tools.bench import eval_cases as parts
from tools.bench import evals as tool
from tools.bench import harness

CONFIG = tiny.model(layers=1, vocab_size=258, position=RoPE())
SIZES = parts.Sizes(
    window=16, stride=4, windows=3, lengths=(160,), tests=1,
    prompt=12, new_tokens=3, rows=2, beams=2,
)  # fmt: skip
NAMES = ('perplexity', 'passkey', 'greedy_1', 'greedy_2', 'beams_2')
WHOLE, FIRST = parts.WHOLE, parts.FIRST
Cases = Mapping[str, parts.Comparison]
Results = Mapping[str, Mapping[str, Any]]


@pytest.fixture(scope='module')
def subject(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp('eval')
    made = parts.Subject(CONFIG, tiny.varied_lam(CONFIG), tiny.mesh(), folder, 640)
    made.export(SIZES.prompt + SIZES.new_tokens + 1)
    return made


@pytest.fixture(scope='module')
def cases(subject: Any) -> Cases:
    return {name: make(subject) for name, make in parts.cases(SIZES).items()}


@pytest.fixture(scope='module')
def results(cases: Cases) -> Results:
    return {name: {part: run() for part, run in case.ours.items()} for name, case in cases.items()}


def rows_of(case: Any, peer: str) -> list[np.ndarray]:
    """The token rows that a peer is given."""
    inputs = pathlib.Path(case.peers[peer][WHOLE]['inputs'])
    return [np.array(row, np.int32) for row in json.loads(inputs.read_text())['rows']]


def test_a_perplexity_may_differ_by_one_in_ten_thousand(cases: Cases) -> None:
    check = cases['perplexity'].check
    check(WHOLE, 5.0, 5.00009)
    with pytest.raises(parts.Different, match=r'perplexities are 148\.'):
        check(WHOLE, 5.0, 5.00011)
    with pytest.raises(parts.Different):
        check(WHOLE, float('nan'), 5.0)


def test_passkeys_are_those_that_greedy_decoding_writes(
    subject: Any, cases: Cases, results: Results
) -> None:
    case, matched = cases['passkey'], results['passkey'][WHOLE]
    prompts = rows_of(case, 'prompts')
    assert len(matched) == len(prompts) == 10 == case.facts['prompts']
    written = [ids.tolist() for ids in subject.generator.generate(prompts, Options(6))]
    case.check(WHOLE, matched, written)
    wrong = [row[:] for row in written]
    wrong[7][5] ^= 1
    with pytest.raises(parts.Different, match='not the most likely'):
        case.check(WHOLE, matched, wrong)
    with pytest.raises(parts.Different, match='begin right'):
        case.check(WHOLE, [matched[0] + 1, *matched[1:]], written)


def test_tests_of_a_cell_are_neighbours(subject: Any) -> None:
    """Of one length, so that a peer may read them together."""
    case = parts.cases(dataclasses.replace(SIZES, tests=2))['passkey'](subject)
    prompts = rows_of(case, 'cells')
    assert case.peers['cells'][WHOLE]['batch'] == 2 and len(prompts) == 20
    for first, second in zip(prompts[::2], prompts[1::2], strict=True):
        assert len(first) == len(second)


def test_generation_begins_with_the_first_token(cases: Cases, results: Results) -> None:
    for name, rows in (('greedy_1', 1), ('greedy_2', 2)):
        first, all_of_it = results[name][FIRST], results[name][WHOLE]
        assert [row[:1] for row in all_of_it] == first
        assert [len(row) for row in all_of_it] == [4] * rows
        with pytest.raises(parts.Different, match=r'row 0 differ at 2'):
            cases[name].check(WHOLE, all_of_it, [[*all_of_it[0][:2], -1, -1], *all_of_it[1:]])
        with pytest.raises(parts.Different, match='differ at the end'):
            cases[name].check(WHOLE, all_of_it, [all_of_it[0][:3], *all_of_it[1:]])
    assert [len(row) for row in results['beams_2'][WHOLE]] == [4]


def test_seconds_become_rates(cases: Cases) -> None:
    assert tuple(cases) == NAMES
    assert cases['perplexity'].figures({WHOLE: 2.0}) == {'seconds': 2.0, 'tokens_per_second': 24.0}
    assert cases['passkey'].figures({WHOLE: 0.5})['tokens_per_second'] == 2 * 10 * 160
    found = cases['greedy_2'].figures({FIRST: 0.5, WHOLE: 2.0})
    rates = {'ms_per_token': 500.0, 'tokens_per_second': 4.0}
    assert found == {'seconds': 2.0, 'first_seconds': 0.5, **rates}
    # A step reads matrices once and the keys and values of every row.
    layer = 32 * 8 * (2 * 4 + 2 * 2) + 3 * 32 * 48
    cached = 2 * (12 + 1) * 2 * 8
    for name, rows in (('greedy_1', 1), ('greedy_2', 2), ('beams_2', 2)):
        assert cases[name].bytes_per_step == 4 * (layer + rows * cached + 258 * 32)
    assert cases['perplexity'].bytes_per_step is None


@pytest.mark.peers
@pytest.mark.parametrize('name', NAMES)
def test_peers_find_the_same(name: str, cases: Cases, results: Results) -> None:
    pytest.importorskip('torch')
    pytest.importorskip('transformers')
    from tools.bench import peer

    for asked in cases[name].peers.values():
        for part, of_part in asked.items():
            cases[name].check(part, results[name][part], peer.prepare(of_part)())


class Fake:
    """A peer that answers at once with no result."""

    result, memory_mib, cpu_seconds = None, 8.0, 0.0

    def __init__(self, python: str, asked: Mapping[str, Any]) -> None:
        self.versions = python
        self.seconds, self.close = (lambda: 4.0), (lambda: None)


def fake_case(result: Any) -> parts.Comparison:
    def check(part: str, ours: Any, theirs: Any) -> None:
        if ours != theirs:
            raise parts.Different('no')

    return parts.Comparison(
        {FIRST: lambda: result, WHOLE: lambda: result},
        {'other': {FIRST: {}, WHOLE: {}}},
        check,
        lambda seconds: {'seconds': seconds[WHOLE], 'ms_per_token': 2 * seconds[FIRST]},
        {'rows': 3},
        bytes_per_step=2e6,
    )


def test_a_line_has_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = {'ours': 2.0, 'other': 4.0, 'limits': 4e-9 * 8192 * 4096}
    monkeypatch.setattr(harness, 'Peer', Fake)
    monkeypatch.setattr(
        harness, 'interleaved', lambda timers, *limits: {key: taken[key[0]] for key in timers}
    )
    line = tool.measure(fake_case(None), 'torch 1', 1.0, {'read': lambda: 1.0})
    assert {'rows': 3, 'seconds': 2.0, 'ms_per_token': 4.0}.items() <= line.items()
    assert line['gb_per_second'] == pytest.approx(0.5) == line['share_of_matvec']
    other = {'seconds': 4.0, 'our_seconds_over_it': 0.5, 'versions': 'torch 1'}
    other |= {'ms_per_token': 8.0, 'our_ms_per_token_over_it': 0.5}
    assert other.items() <= line['peer_other'].items()
    assert 'our_first_seconds_over_it' not in line['peer_other']
    with pytest.raises(parts.Different):
        tool.measure(fake_case('else'), 'torch 1', 1.0, {'read': lambda: 1.0})


def test_prompts_of_words_are_nearly_as_long_as_published_ones() -> None:
    words = parts.Words()
    counts = passkey.piece_counts(PAPER, words, '12345', bos=True)
    assert dataclasses.astuple(counts) == (31, 24, 28, 11, 6)
    text = PAPER.prompt('60317', 2, 1) + PAPER.answer('60317')
    ids = words.encode(text)
    assert words.decode(ids) == text and ids.min() > words.bos_id and ids.max() < words.vocab_size
