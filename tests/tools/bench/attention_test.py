"""tools.bench.attention on a tiny case."""

from __future__ import annotations

import json
import math
import time

import pytest

from nope.attention.cases import Trial
from tools.bench import attention as tool
from tools.bench import harness

CASE = Trial('tiny', 1, 32, 32, 2, 1, 8)


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_implementations_take_turns_and_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    tool.measure(CASE, ['gradient'], ['chunked', 'reference'], 0.01, check=True)
    found = {line['implementation']: line for line in lines(capsys)}
    assert set(found) == {'reference', 'chunked'}
    assert found['chunked']['against'] == 'reference'
    ratio = found['chunked']['seconds'] / found['reference']['seconds']
    assert found['chunked']['times_as_long'] == pytest.approx(ratio, rel=1e-2)
    assert all(line['largest_error'] < 1e-5 for line in found.values())


def test_a_program_that_fails_when_it_runs_leaves_the_others(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    described = tool.describe_program

    def describe_program(case, implementation, kind, lowered):
        program, found = described(case, implementation, kind, lowered)

        def fails(inputs):
            raise RuntimeError('an illegal address')

        return (fails if implementation == 'reference' else program), found

    monkeypatch.setattr(tool, 'describe_program', describe_program)
    tool.measure(CASE, ['forward'], ['chunked', 'reference'], 0.01, check=False)
    found = {line['implementation']: line for line in lines(capsys)}
    assert found['reference']['error'] == 'RuntimeError: an illegal address'
    assert found['chunked']['seconds'] > 0


def test_what_the_budget_leaves_out_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    kinds = ['forward', 'gradient']
    tool.measure(CASE, kinds, ['chunked'], 0.01, check=False, ends=time.perf_counter())
    found = lines(capsys)
    assert [line['pass'] for line in found] == kinds
    assert {line['error'] for line in found} == {'left out: the time is over'}


@pytest.mark.parametrize('taken', [0.001, 0.3])
def test_queued_calls_are_waited_for_once(monkeypatch: pytest.MonkeyPatch, taken: float) -> None:
    """Each takes a fixed time on a clock of ours, which waiting does not move."""
    now = [0.0]
    monkeypatch.setattr(time, 'perf_counter', lambda: now[0])
    waits = []

    def call() -> str:
        now[0] += taken
        return 'result'

    assert harness.per_call(call, waits.append, 0.05) == pytest.approx(taken)
    assert waits == ['result', 'result']
    assert now[0] == pytest.approx(taken * (1 + max(math.ceil(0.05 / taken - 0.5), 1)))
