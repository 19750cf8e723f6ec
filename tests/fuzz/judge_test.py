"""The harness tells a wrong case from a right one."""

from __future__ import annotations

import time

import numpy as np
import pytest

from tests.fuzz import campaign, worker
from tests.fuzz.case import Case, attempt
from tests.fuzz.mutation import Draw, json_bytes, json_mutated, mutated
from tests.fuzz.targets import dying


def raises(error: BaseException) -> Case:
    def case(draw: Draw) -> bool:
        def read() -> None:
            raise error

        return attempt(read, 'the file')[0]

    return case


DRAW = np.random.default_rng(0)


def test_a_refusal_that_names_the_file_is_right() -> None:
    assert worker.outcome(raises(ValueError('the file is damaged')), DRAW) == ('refused', '')


@pytest.mark.parametrize(
    'error',
    [
        ValueError('bad'),
        ValueError('the file: ' + 'x' * 10_000),
        KeyError('the file'),
        RecursionError('the file'),
        MemoryError('the file'),
        SystemExit('the file'),
        BaseException('the file'),
    ],
)
def test_any_other_end_is_wrong(error: BaseException) -> None:
    assert worker.outcome(raises(error), DRAW)[0] == 'wrong'


def test_too_much_time_or_memory_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(draw: Draw) -> bool:
        until = time.process_time() + 0.1
        while time.process_time() < until:
            pass
        return True

    def large(draw: Draw) -> bool:
        return bool(np.ones(1 << 24).sum())

    assert worker.outcome(slow, DRAW)[0] == worker.outcome(large, DRAW)[0] == 'accepted'
    monkeypatch.setattr(worker, 'MOST_SECONDS', 0.05)
    assert worker.outcome(slow, DRAW)[0] == 'wrong'
    monkeypatch.setattr(worker, 'MOST_SECONDS', 5.0)
    monkeypatch.setattr(worker, 'MOST_BYTES', 1 << 26)
    assert worker.outcome(large, DRAW)[0] == 'wrong'


def test_cases_are_the_same_every_time() -> None:
    draws = [[worker.draw_of('a', i, 0).integers(1 << 60) for i in range(20)] for _ in range(2)]
    assert draws[0] == draws[1] and len(set(draws[0])) == 20
    value = {'a': [1, {'b': 'c'}], 'd': 2.0}
    made = [json_bytes(worker.draw_of('a', i, 0), value) for i in range(300)]
    assert made == [json_bytes(worker.draw_of('a', i, 0), value) for i in range(300)]
    assert len(set(made)) > 200


def test_a_mutation_leaves_what_it_was_made_of() -> None:
    value = {'a': [1, {'b': 'c'}], 'd': 2.0}
    data = bytes(range(200))
    for number in range(300):
        draw = worker.draw_of('b', number, 0)
        json_mutated(draw, value)
        assert len(mutated(draw, data, [data])) < 1000
    assert value == {'a': [1, {'b': 'c'}], 'd': 2.0} and data == bytes(range(200))


def test_a_process_that_dies_costs_one_case() -> None:
    (target,) = dying.TARGETS
    draws = [worker.draw_of(target.name, i, 3) for i in range(target.cases)]
    kinds = [int(draw.integers(4)) for draw in draws]
    assert set(kinds) == {dying.ABORTED, dying.WRONG, dying.ACCEPTED, dying.REFUSED}
    (tally,) = campaign.run([target], share=1.0, seed=3)
    expected = {dying.ABORTED: 'the process ends with -6', dying.WRONG: 'as asked'}
    assert dict(tally.wrong) == {i: expected[k] for i, k in enumerate(kinds) if k in expected}
    assert (tally.accepted, tally.refused) == tuple(
        kinds.count(kind) for kind in (dying.ACCEPTED, dying.REFUSED)
    )
