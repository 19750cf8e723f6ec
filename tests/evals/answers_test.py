"""Greedy answers to prompts of tasks: what is generated, scored and kept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from nope.data.tokenizers import ByteTokenizer
from nope.evals import answers
from nope.evals.answers import Part, Sample, options, run
from nope.evals.generation import Options
from nope.evals.samples import SampleLog

BYTES = ByteTokenizer()


class Echo:
    """Writes a prompt again, and a token that has no text."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[list[int]], Options]] = []

    def generate(self, prompts: Sequence[np.ndarray], options: Options) -> list[np.ndarray]:
        self.asked.append(([ids.tolist() for ids in prompts], options))
        return [np.append(ids, BYTES.vocab_size) for ids in prompts]


def part(task: str, length: int, *texts: str) -> Part:
    samples = [Sample(text, (text, 'else'), len(text)) for text in texts]
    return Part(
        task,
        length,
        budget=length // 2,
        samples=samples,
        score=lambda prediction, sample: float(prediction == sample.answers[0].upper()),
        cleaned=str.upper,
    )


def test_parts_are_answered_in_batches_of_their_own(
    log: SampleLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, 'BATCH', 2)
    echo, parts = Echo(), [part('a', 8, 'x', 'yy', 'Z'), part('b', 20, 'w')]
    run(echo, BYTES, parts, log=log, bos=False)
    assert [[bytes(ids).decode() for ids in asked] for asked, _ in echo.asked] == [
        *(['x', 'yy'], ['Z'], ['w'])
    ]
    assert [given for _, given in echo.asked] == [options(budget, BYTES) for budget in (4, 4, 10)]
    assert options(4, BYTES) == Options(new_tokens=4, stop_ids=(BYTES.eos_id,))
    assert log['a/8/1'] == {'prediction': 'YY', 'score': 1.0, 'answers': ['yy', 'else']} | {
        'tokens': 2
    }
    assert log[parts[1].key(0)]['prediction'] == 'W' and len(log) == 4


def test_what_is_answered_is_not_asked_again(log: SampleLog) -> None:
    run(Echo(), BYTES, [part('a', 8, 'x', 'y')], log=log, bos=False)
    echo = Echo()
    run(echo, BYTES, [part('a', 8, 'x', 'y', 'z')], log=log, bos=True)
    ((asked, _),) = echo.asked
    assert asked == [[BYTES.bos_id, ord('z')]]
    with pytest.raises(ValueError, match="log has another prompt for 'a/8/0': it is of other"):
        run(echo, BYTES, [part('a', 8, 'other')], log=log, bos=False)


def test_settings_that_do_not_fit_are_refused(log: SampleLog) -> None:
    echo = Echo()
    with pytest.raises(ValueError, match='bos is True; accepted: False or None; the tok'):
        run(echo, ByteTokenizer(bos_id=None), [part('a', 8, 'x')], log=log, bos=True)
    assert not echo.asked
